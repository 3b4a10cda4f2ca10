"""Panel: several streams on one clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from braided.errors import InputError
from braided.types import Flags, Floats, Times
from braided.validate import count


@final
@dataclass(frozen=True, eq=False, repr=False)
class Panel:
    """Values (steps, tasks), NaN where one is missing, with the time of each step.

    With a `timezone`, such as "Australia/Melbourne", times are UTC, and seasons follow the clock of that zone.

    >>> import numpy as np
    >>> panel = Panel("two", ("a", "b"), np.arange(3), np.array([[1.0, 2.0], [np.nan, 3.0], [4.0, 5.0]]), "made up")
    >>> panel
    Panel('two': 3 steps × 2 streams, 0 to 2, 1 value missing)
    >>> panel.complete_runs(1)
    [(0, 1), (2, 3)]
    """

    name: str
    tasks: tuple[str, ...]
    times: Times  # (steps,)
    values: Floats  # (steps, tasks)
    source: str  # of the numbers, and the licence
    synthetic: bool = False
    timezone: str | None = None  # of the clock that seasons follow; times are then UTC

    def __post_init__(self) -> None:
        """Check that the parts fit, and keep frozen copies."""
        expected = (len(self.times), len(self.tasks))
        if self.values.shape != expected:
            raise InputError(f"values has shape {self.values.shape}: times and tasks say {expected}")
        if self.timezone is not None and self.times.dtype.kind != "M":
            raise InputError(f"timezone is {self.timezone!r}, but times are {self.times.dtype}: give dates, in UTC")
        rising = self.times[1:] > self.times[:-1]
        if not rising.all():
            place = int(np.argmin(rising)) + 1
            raise InputError(f"times[{place}] is {self.times[place]}, not after the one before: sort by time")
        for name in ("times", "values"):
            array = getattr(self, name).copy()
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    def complete_runs(self, length: int) -> list[tuple[int, int]]:
        """Return the stretches (first, end) of at least `length` steps, evenly spaced, in which nothing is missing.

        Months count as evenly spaced.
        """
        least = count(length, "length")
        complete: Flags = np.asarray(~np.isnan(self.values).any(axis=1))
        gaps, typical = _gaps(self.times)
        goes_on = complete[1:] & complete[:-1] & (gaps == typical)
        starts = np.flatnonzero(complete & ~np.append(False, goes_on))
        ends = np.flatnonzero(complete & ~np.append(goes_on, False)) + 1
        return [(first, end) for first, end in zip(starts.tolist(), ends.tolist(), strict=True) if end - first >= least]

    def __repr__(self) -> str:
        missing = int(np.isnan(self.values).sum())
        zone = " UTC" * (self.timezone is not None)
        span = f"{self.times[0]} to {self.times[-1]}{zone}" if len(self.times) else "empty"
        shape = f"{len(self.times)} steps × {len(self.tasks)} stream{'s' * (len(self.tasks) != 1)}"
        what = "synthetic, " * self.synthetic + shape
        return f"Panel({self.name!r}: {what}, {span}, {missing} value{'s' * (missing != 1)} missing)"


def _gaps(times: Times) -> tuple[Any, Any]:
    """The steps between times, in months where most are a month, and their median (or nothing)."""
    gaps = np.diff(times)
    typical = np.sort(gaps)[len(gaps) // 2 : len(gaps) // 2 + 1]
    month = np.timedelta64(28, "D"), np.timedelta64(31, "D")
    if times.dtype.kind != "M" or not len(gaps) or gaps.min() < month[0] or typical[0] > month[1]:
        return gaps, typical
    return np.diff(times.astype("datetime64[M]")), np.array([np.timedelta64(1, "M")])
