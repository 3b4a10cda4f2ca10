"""Evaluation: how well a learner forecasts while it learns, from nothing but what it could have known.

| protocol      | when a sample is forecast, the learner knows                                                     |
|---------------|--------------------------------------------------------------------------------------------------|
| `synchronous` | all earlier rounds, like a forecaster in use; the default                                        |
| `interleaved` | also the earlier samples of the same round: the paper's protocol, not quite a forecast           |

A `delay` of k withholds every target for k further rounds, as when meters are read late; with `every` m the learner
learns only after each m-th round, as when a batch model is retrained now and then. (Features are used as given: if you
delay the targets, make sure that the features do not contain them.)

>>> import braided as bd
>>> panel = bd.datasets.wind_field(seed=0, steps=400)     # synthetic
>>> samples = bd.Lags(9).samples(panel.values, panel.tasks)
>>> model = bd.MTWRLS(bd.TaskGraph.pooled(panel.tasks), n_features=10, penalty=10.0)
>>> round(evaluate(model, samples).scores.mean("rmse_to_no_change"), 3)     # against the forecast "no change"
0.671
>>> model.reset()
>>> round(evaluate(model, samples, delay=100).scores.mean("rmse_to_no_change"), 3)
0.797
>>> model.reset()
>>> round(evaluate(model, samples, "interleaved").scores.mean("rmse_to_no_change"), 3)
0.666
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal, TypeAlias, final

import numpy as np

from braided.errors import InputError, NumericalError
from braided.features.lags import Samples
from braided.learners import Learner
from braided.metrics import Scores, relative
from braided.types import Floats, Ints
from braided.validate import choice, count

Protocol: TypeAlias = Literal["synchronous", "interleaved"]
PROTOCOLS: tuple[Protocol, ...] = ("synchronous", "interleaved")


@final
@dataclass(frozen=True, eq=False)
class Evaluation:
    """Forecasts and the samples they are for."""

    samples: Samples
    forecast: Floats  # (n,)
    broke_at: int | None = None  # sample at which the learner broke down; forecasts are 0 from there on

    @cached_property
    def scores(self) -> Scores:
        """Errors per task, and relative to "no change" and "last change"."""
        return relative(self.forecast, self.samples.y, self.samples.tasks, self.samples.previous)

    @property
    def levels(self) -> Floats:
        """The forecasts as levels instead of differences."""
        return self.samples.level + self.forecast

    def curve(self) -> tuple[Ints, Floats]:
        """Return the rounds, and the root mean square error up to each over that of "no change"."""
        return error_so_far(self.samples.steps, self.samples.y, self.forecast)


def error_so_far(steps: Ints, actual: Floats, forecast: Floats) -> tuple[Ints, Floats]:
    """Return the rounds, and the root mean square error up to each over that of "no change"."""
    rounds, of = np.unique(steps, return_inverse=True)
    own, zero = (np.cumsum(np.bincount(of, error**2)) for error in (actual - forecast, actual))
    ratio: Floats = np.sqrt(np.divide(own, zero, out=np.full(len(rounds), np.nan), where=zero > 0.0))
    return rounds, ratio


def evaluate(
    model: Learner, samples: Samples, protocol: Protocol = "synchronous", delay: int = 0, every: int = 1
) -> Evaluation:
    """Forecast and learn the samples in order; from a breakdown of the learner on, forecasts are "no change" (0)."""
    choice(protocol, "protocol", PROTOCOLS)
    delay, every = count(delay, "delay", least=0), count(every, "every")
    if not len(samples.y):
        raise InputError("samples is empty: give at least one")
    interleaved = protocol == "interleaved"
    if interleaved and (delay, every) != (0, 1):
        raise InputError(f"delay {delay} and every {every} count rounds: use them with protocol='synchronous'")
    forecast = np.zeros(len(samples.y))
    if (delay, every) != (0, 1):
        made = _postponed_inplace(forecast, model, samples, delay, every)
    else:
        try:
            given = samples.X, samples.y, samples.tasks
            forecast = model.progressive(*given, rounds=samples.steps, interleaved=interleaved)
            made = len(forecast)
        except NumericalError as error:
            made = len(error.forecasts)
            forecast[:made] = error.forecasts
    return Evaluation(samples, forecast, made if made < len(forecast) else None)


def _postponed_inplace(forecast: Floats, model: Learner, samples: Samples, delay: int, every: int) -> int:
    """Forecast round by round from the samples known by then; return how many could be forecast."""
    X, y, tasks, steps = samples.X, samples.y, samples.tasks, samples.steps
    starts = np.flatnonzero(np.append(True, steps[1:] != steps[:-1])).tolist()
    learned = 0
    for place, (first, end) in enumerate(pairwise([*starts, len(y)])):
        known = starts[max((place - delay) // every * every, 0)]
        try:
            if known > learned:
                new = slice(learned, known)
                model.learn_many(X[new], y[new], tasks[new], rounds=steps[new])
                learned = known
            forecast[first:end] = model.predict_many(X[first:end], tasks[first:end])
        except NumericalError:
            return int(first)
    return len(y)
