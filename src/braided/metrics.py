"""How good forecasts are: errors per task, and relative to forecasts that need no model.

Series are differenced first, so the forecast 0 is persistence of the level ("no change"), and the last difference
is persistence of the difference ("it goes on like this"). For white differences the forecast 0 scores 1/√2 of
persistence of the difference: a relative error above that line, against that baseline, is no skill.

>>> score = relative([1.0, -2.0, 2.0], actual=[1.0, -1.0, 2.0], tasks=["a", "b", "a"], previous=[0.0, 1.0, 1.0])
>>> score.tasks, score.rmse
(('a', 'b'), array([0., 1.]))
>>> score.rmse_to_level, score.rmse_to_difference
(array([0., 1.]), array([0. , 0.5]))
>>> score.mean("rmse_to_level")
0.5
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from braided.errors import InputError
from braided.types import Floats
from braided.validate import floats, same_length


@final
@dataclass(frozen=True, eq=False)
class Scores:
    """Errors per task, in the order of `tasks`; a ratio to a baseline without error is NaN."""

    tasks: tuple[Any, ...]
    samples: Floats  # (T,) how many forecasts
    rmse: Floats
    mae: Floats
    rmse_to_level: Floats  # over the error of "no change"
    mae_to_level: Floats
    rmse_to_difference: Floats  # over the error of "it goes on like this"
    mae_to_difference: Floats

    def mean(self, name: str) -> float:
        """Return the mean of one of the columns over the tasks."""
        return float(np.mean(getattr(self, name)))


def relative(forecast: ArrayLike, actual: ArrayLike, tasks: Any, previous: ArrayLike) -> Scores:
    """Score forecasts of differences per task; `previous` is each task's difference one step before."""
    columns = {"forecast": forecast, "actual": actual, "previous": previous}
    y_hat, y, last = (floats(column, name, ndim=1) for name, column in columns.items())
    keys = np.asarray(list(tasks), dtype=object)
    for name, column in {"forecast": y_hat, "previous": last, "tasks": keys}.items():
        same_length(column, name, len(y))
    if not len(y):
        raise InputError("no forecasts to score: give at least one")
    names = tuple(dict.fromkeys(keys.tolist()))
    rows = [_errors(y_hat[own], y[own], last[own]) for own in (keys == name for name in names)]
    return Scores(names, *np.array(rows).T)


def rmse(error: Floats) -> float:
    """Root mean square error; infinite where squares overflow."""
    with np.errstate(over="ignore"):
        return float(np.sqrt(np.mean(error**2)))


def mae(error: Floats) -> float:
    """Mean absolute error."""
    return float(np.mean(np.abs(error)))


def _errors(y_hat: Floats, y: Floats, last: Floats) -> tuple[float, ...]:
    own, level, difference = y - y_hat, y, y - last
    ratios = (_ratio(measure(own), measure(base)) for base in (level, difference) for measure in (rmse, mae))
    return float(y.size), rmse(own), mae(own), *ratios


def _ratio(error: float, baseline: float) -> float:
    return error / baseline if baseline > 0.0 else np.nan
