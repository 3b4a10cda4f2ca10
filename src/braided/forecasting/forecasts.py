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

    @property
    def tasks(self) -> list[TaskKey]:
        """The task of each forecast."""
        return [self.names[place] for place in self.places]

    def columns(self) -> dict[str, Any]:
        """Return them as columns of a table, such as `pandas.DataFrame(forecasts.columns())`."""
        numbers = {name: getattr(self, name) for name in ("forecast", "low", "high", "actual")}
        return {"stream": self.tasks, "time": self.times, "horizon": self.horizons} | numbers


def joined(pieces: Sequence[Forecasts]) -> Forecasts:
    """Return consecutive forecasts as one; tasks only join, so the last names are valid for all."""
    filled = [one for one in pieces if len(one.times)] or pieces[:1]  # empty pieces may have the wrong kind of time
    columns = [name for name in Forecasts._fields if name != "names"]
    arrays = {name: np.concatenate([getattr(one, name) for one in filled]) for name in columns}
    return Forecasts(names=pieces[-1].names, **arrays)
