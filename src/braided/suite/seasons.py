"""Seasons: after how many rounds the clock repeats, and where in its day, week and year a round lies."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from braided.forecasting import Clock
from braided.forecasting.auto.seasons import KNOWN_AFTER, YEAR_DAYS
from braided.forecasting.clock import DAY, as_stamps
from braided.types import Floats, Ints, Times

QUARTER = (89 * DAY, 92 * DAY)


class Season(NamedTuple):
    """A season of the clock."""

    name: str
    length: float  # in rounds

    @property
    def lag(self) -> int:
        """The whole number of rounds nearest to the length."""
        return round(self.length)

    @property
    def known_after(self) -> int:
        """The number of rounds after which the season is used."""
        return int(np.ceil(KNOWN_AFTER * self.length))


def seasons_of(times: Times, clock: Clock) -> tuple[Season, ...]:
    """Return the seasons of a clock, the shortest first; none where times are no dates.

    >>> hours = np.arange("2024-01-01", "2024-01-03", dtype="datetime64[h]")
    >>> [(season.name, season.lag) for season in seasons_of(hours, Clock.measure(hours))]
    [('day', 24), ('week', 168)]
    """
    if times.dtype.kind != "M":
        return ()
    if clock.monthly:
        return (Season("year", 12.0),)
    if QUARTER[0] <= clock.step <= QUARTER[1]:
        return (Season("year", 4.0),)
    if clock.step == 7 * DAY:
        return (Season("year", 52.0),)
    typical = float(np.mean(clock.weekdays)) if clock.weekdays else float(clock.step)
    if clock.step < DAY:
        found = Season("day", DAY / typical), Season("week", 7 * DAY / typical)
    elif clock.step == DAY:
        found = Season("week", 7 * DAY / typical), Season("year", YEAR_DAYS * DAY / typical)
    else:
        return ()
    return tuple(season for season in found if season.lag >= 2)


def calendar(times: Times, clock: Clock) -> Floats:
    """Return what the clock says of each time (n, k): time of day, day of the week, day of the year or month."""
    stamps = as_stamps(times)
    if times.dtype.kind != "M" or clock.step > 31 * DAY:
        return np.empty((len(stamps), 0))
    days = times.astype("datetime64[D]")
    months = times.astype("datetime64[M]")
    columns: list[Ints | Floats] = []
    if clock.step < DAY:
        columns.append(stamps % DAY / DAY)
    if clock.step <= DAY:
        columns.append(days.astype(np.int64) % 7)
    if clock.step <= 7 * DAY:
        columns.append((days - times.astype("datetime64[Y]")).astype(np.int64))
    else:
        columns.append(months.astype(np.int64) % 12)
    return np.stack(columns, axis=1).astype(np.float64)
