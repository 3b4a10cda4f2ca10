"""How good forecasts are: errors per task, and relative to forecasts that need no model.

Series are differenced first, so the baseline "no change" forecasts 0, and the baseline "last change" forecasts the
difference before. For white differences, "no change" has 1/√2 of the error of "last change": a ratio to "last change"
above that shows no skill.

>>> score = relative([1.0, -2.0, 2.0], actual=[1.0, -1.0, 2.0], tasks=["a", "b", "a"], previous=[0.0, 1.0, 1.0])
>>> score.tasks, score.rmse
(('a', 'b'), array([0., 1.]))
>>> score.rmse_to_no_change, score.rmse_to_last_change
(array([0., 1.]), array([0. , 0.5]))
>>> score.mean("rmse_to_no_change")
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
    rmse_to_no_change: Floats  # over the error of the baseline "no change"
    mae_to_no_change: Floats
    rmse_to_last_change: Floats  # over the error of "last change"
    mae_to_last_change: Floats

    def mean(self, name: str) -> float:
        """Return the mean of one of the columns over the tasks."""
        return float(np.mean(getattr(self, name)))


def relative(forecast: ArrayLike, actual: ArrayLike, tasks: Any, previous: ArrayLike) -> Scores:
    """Score forecasts of differences per task; `previous` is each task's difference one step before."""
    columns = {"forecast": forecast, "actual": actual, "previous": previous}
    y_hat, y, last = (floats(column, name, ndim=1) for name, column in columns.items())
    keys = list(tasks)
    same_length(y_hat, "forecast", len(y))
    same_length(last, "previous", len(y))
    same_length(keys, "tasks", len(y))
    if not len(y):
        raise InputError("no forecasts to score: give at least one")
    order = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    of = np.fromiter(map(order.__getitem__, keys), np.int64, len(keys))
    counts = np.bincount(of).astype(np.float64)
    errors = y - y_hat, y, y - last  # of the forecasts, of "no change" and of "last change"
    with np.errstate(over="ignore"):  # infinite where squares overflow
        squared = [np.sqrt(np.bincount(of, error**2) / counts) for error in errors]
    absolute = [np.bincount(of, np.abs(error)) / counts for error in errors]
    ratios = (
        np.divide(own[0], own[baseline], out=np.full(len(counts), np.nan), where=own[baseline] > 0.0)
        for baseline in (1, 2)
        for own in (squared, absolute)
    )
    return Scores(tuple(order), counts, squared[0], absolute[0], *ratios)
