"""Forecasts as columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from braided.graph import TaskKey
from braided.types import Floats, Ints, Times


class Forecasts(NamedTuple):
    """Forecasts, sorted by time, then by horizon, then in the order of the tasks."""

    times: Times  # (n,) of the values
    places: Ints  # (n,) of the tasks, in `names`
    horizons: Ints  # (n,) how many rounds ahead; 1 for those of the next round
    names: tuple[TaskKey, ...]
    actual: Floats  # (n,) the value; NaN where it is not known yet
    forecast: Floats  # (n,)
    low: Floats  # (n,) ends of the interval; NaN where there is none yet
    high: Floats
    quantiles: Floats  # (n, Q) of the levels; NaN where there is no interval yet
    levels: tuple[float, ...]

    @property
    def tasks(self) -> list[TaskKey]:
        """The task of each forecast."""
        return [self.names[place] for place in self.places]

    def columns(self) -> dict[str, Any]:
        """Return them as columns of a table, such as `pandas.DataFrame(forecasts.columns())`."""
        return {"stream": self.tasks, "time": self.times, "horizon": self.horizons} | self.numbers()

    def numbers(self) -> dict[str, Floats]:
        """Return the columns of numbers: forecast, interval, quantiles and actual value."""
        numbers = {name: getattr(self, name) for name in ("forecast", "low", "high")}
        return numbers | dict(zip(quantile_names(self.levels), self.quantiles.T, strict=True)) | {"actual": self.actual}


def quantile_names(levels: Sequence[float]) -> tuple[str, ...]:
    """Return the names of the columns of quantiles.

    >>> quantile_names((0.1, 0.5))
    ('q0.1', 'q0.5')
    """
    return tuple(f"q{level}" for level in levels)


def joined(pieces: Sequence[Forecasts]) -> Forecasts:
    """Return consecutive forecasts as one; tasks only join, so the last names are valid for all."""
    filled = [one for one in pieces if len(one.times)] or pieces[:1]  # empty pieces may have the wrong kind of time
    columns = [name for name in Forecasts._fields if name not in ("names", "levels")]
    arrays = {name: np.concatenate([getattr(one, name) for one in filled]) for name in columns}
    return Forecasts(names=pieces[-1].names, levels=pieces[-1].levels, **arrays)
