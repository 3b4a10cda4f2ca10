"""Zones: from UTC to the wall clock of a time zone, for many times at once.

What people do follows the clock on the wall, which daylight saving moves twice a year against UTC: the rush hour of
08:00 in Melbourne is 21:00 UTC in summer and 22:00 in winter.

>>> import numpy as np
>>> stamps = np.array(["2015-01-15T21:00", "2015-07-15T22:00"], dtype="datetime64[us]").astype(np.int64)
>>> local_stamps(stamps, "Australia/Melbourne").view("datetime64[us]").astype("datetime64[m]")
array(['2015-01-16T08:00', '2015-07-16T08:00'], dtype='datetime64[m]')
>>> local_stamps(stamps, "Australia/Melborne")
Traceback (most recent call last):
braided.errors.InputError: no timezone 'Australia/Melborne': did you mean 'Australia/Melbourne'?
"""

from __future__ import annotations

import zoneinfo
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from functools import cache, lru_cache

import numpy as np

from braided.errors import InputError
from braided.forecasting.clock import DAY, TIME_UNITS
from braided.types import Ints

SECOND = TIME_UNITS["s"]  # in microseconds
FEW_YEARS = 10  # looking up the offsets of all is faster than finding out which are needed
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# The calendar repeats every 400 years. Before the first of these years every zone has its local mean time, and after
# the last its latest rule. So any year has the offsets of one of these, even a year that Python's dates don't have.
FIRST_YEAR, LAST_YEAR = 1600, 2439
CYCLE = 146_097 * DAY  # 400 years
FIRST_STAMP, END_STAMP = (
    int(np.datetime64(f"{year}-01-01", "us").astype(np.int64)) for year in (FIRST_YEAR, LAST_YEAR + 1)
)


def local_stamps(stamps: Ints, timezone: str) -> Ints:
    """Return what the clock of a zone shows at times in UTC; both in microseconds since 1970-01-01 00:00.

    The hour that is repeated in autumn appears twice, and the one that is skipped in spring does not appear.
    """
    check_timezone(timezone)
    if not len(stamps):
        return stamps.copy()
    moments = _in_known_years(stamps)
    parts = [_offsets_in(timezone, year) for year in _years(moments)]
    starts, offsets = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return stamps + offsets[np.searchsorted(starts, moments, "right") - 1]


def utc_stamps(local: Ints, timezone: str) -> Ints:
    """Return the times in UTC at which the clock of a zone shows `local`; one of two where that comes twice.

    >>> midnights = np.array(["2022-10-30", "2022-10-31"], dtype="datetime64[us]").astype(np.int64)
    >>> utc_stamps(midnights, "Europe/Berlin").view("datetime64[us]").astype("datetime64[m]")
    array(['2022-10-29T22:00', '2022-10-30T23:00'], dtype='datetime64[m]')
    """
    near = local - (local_stamps(local, timezone) - local)  # a few hours off the change of the clock at most
    return local - (local_stamps(near, timezone) - near)


def check_timezone(timezone: str) -> None:
    """Refuse a name that is not a zone of the IANA database, such as "Europe/Lisbon"."""
    if not isinstance(timezone, str):
        raise InputError(f"timezone is {timezone!r}: give a name, such as 'Europe/Lisbon'")
    if not _is_there(timezone):
        raise InputError(f"no timezone {timezone!r:.80}: {_remedy(timezone)}")


@lru_cache(maxsize=256)
def _is_there(timezone: str) -> bool:
    try:
        zoneinfo.ZoneInfo(timezone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):  # a folder of zones is an OSError
        return False
    return True


def _remedy(timezone: str) -> str:
    names = _names()
    if not names:
        return "no time zone data on this computer: pip install tzdata"
    near = get_close_matches(timezone.lower().replace(" ", "_"), names, n=1)
    return f"did you mean {names[near[0]]!r}?" if near else "give a name such as 'Europe/Lisbon' or 'UTC'"


@cache
def _names() -> dict[str, str]:
    """All zones by their names in lower case, and by the names of their cities."""
    known = sorted(zoneinfo.available_timezones())
    return {name.lower().rpartition("/")[2]: name for name in known} | {name.lower(): name for name in known}


def _in_known_years(stamps: Ints) -> Ints:
    """The stamps, moved by whole cycles of the calendar into years whose offsets are looked up."""
    if stamps.min() >= FIRST_STAMP and stamps.max() < END_STAMP:
        return stamps
    early = np.maximum(-((stamps - FIRST_STAMP) // CYCLE), 0)
    late = np.maximum((stamps - END_STAMP) // CYCLE + 1, 0)
    return stamps + (early - late) * CYCLE


def _years(moments: Ints) -> list[int]:
    """The years that hold the moments; where they lie close together, all from the first to the last."""
    ends = np.array([moments.min(), moments.max()])
    first, last = (1970 + _years_since_1970(ends)).tolist()
    if last - first < FEW_YEARS:
        return list(range(first, last + 1))
    return (first + np.flatnonzero(np.bincount(_years_since_1970(moments) + (1970 - first)))).tolist()


def _years_since_1970(moments: Ints) -> Ints:
    return moments.view("datetime64[us]").astype("datetime64[Y]").astype(np.int64)


@lru_cache(maxsize=4096)
def _offsets_in(timezone: str, year: int) -> tuple[Ints, Ints]:
    """When the offsets of a year (in UTC) begin, the first with the year, and the offsets; in microseconds."""
    zone = zoneinfo.ZoneInfo(timezone)
    first, end = (int(np.datetime64(f"{one}-01-01", "s").astype(np.int64)) for one in (year, year + 1))
    step = DAY // SECOND
    days = range(first, end + 1, step)
    offsets = [_offset(zone, day) for day in days]
    found = [(first, offsets[0])]
    for day, before, after in zip(days, offsets, offsets[1:], strict=False):
        found += _changes(zone, day, day + step, before, after)
    times, values = (np.array(numbers, np.int64) * SECOND for numbers in zip(*found, strict=True))
    return times, values


def _changes(zone: zoneinfo.ZoneInfo, low: int, high: int, before: int, after: int) -> Iterator[tuple[int, int]]:
    """When between two times the offset changes, and to what."""
    if before == after:
        return
    if high - low == 1:
        yield high, after
        return
    middle = (low + high) // 2
    between = _offset(zone, middle)
    yield from _changes(zone, low, middle, before, between)
    yield from _changes(zone, middle, high, between, after)


def _offset(zone: zoneinfo.ZoneInfo, second: int) -> int:
    """How far the clock of a zone is ahead of UTC at a time, in seconds."""
    ahead = (EPOCH + timedelta(seconds=second)).astimezone(zone).utcoffset()
    return 0 if ahead is None else round(ahead.total_seconds())
