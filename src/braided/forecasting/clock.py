"""Clock: times as integers, typical steps, gaps, the next time; and times and steps as short text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from braided.errors import InputError
from braided.types import Ints, Times
from braided.validate import count

GAP_FACTOR = 1.5  # a step longer than this multiple of `Clock.longest` is a gap
NEVER = -(2**63)  # the time of the last round, before the first
LARGEST_STAMP = 2**62 - 1  # so that a time plus a step fits 64 bits
DAY = 86_400_000_000  # microseconds
TIME_UNITS = {"day": DAY, "h": 3_600_000_000, "min": 60_000_000, "s": 1_000_000, "ms": 1000, "µs": 1}


def as_stamps(times: Times) -> Ints:
    """Return times as integers: dates in microseconds."""
    return (times.astype("datetime64[us]") if times.dtype.kind == "M" else times).astype(np.int64)


@final
@dataclass(frozen=True)
class Clock:
    """When rounds are expected, measured on past ones.

    >>> days = np.arange("2024-01-04", "2024-01-18", dtype="datetime64[D]")
    >>> stamps = as_stamps(days[np.is_busday(days)])
    >>> clock = Clock.measure(stamps.view("datetime64[us]"))
    >>> step_in_words(clock.step, True), [time_in_words(clock.after(int(stamp)), True) for stamp in stamps[:2]]
    ('1 day', ['2024-01-05', '2024-01-08'])
    """

    step: int = 1  # the most frequent one, in microseconds or whole numbers
    longest: int = 1  # the 90th percentile of the steps
    weekdays: tuple[int, ...] = ()  # the most frequent step after each day of the week, if they are days
    monthly: bool = False

    def __post_init__(self) -> None:
        for step in (self.step, self.longest, *self.weekdays):
            count(step, "step of the clock", most=LARGEST_STAMP)
        object.__setattr__(self, "monthly", bool(self.monthly))
        if len(self.weekdays) not in (0, 7):
            raise InputError(f"weekdays has {len(self.weekdays)} steps: give one for each day of the week, or none")

    @classmethod
    def measure(cls, times: Times) -> Clock:
        """Measure the steps of past rounds."""
        stamps = as_stamps(times)
        if len(stamps) < 2:
            raise InputError(f"{len(stamps)} rounds have no step: give at least two")
        steps = np.diff(stamps)
        step, longest = _mode(steps), int(np.quantile(steps, 0.9, method="lower"))
        if times.dtype.kind != "M" or (steps == step).all():
            return cls(step, longest)
        if steps.min() >= 28 * DAY and longest <= 31 * DAY:
            return cls(step, longest, monthly=True)
        if (stamps % DAY == stamps[0] % DAY).all():
            weekday = stamps[:-1] // DAY % 7
            after = [_mode(steps[weekday == day]) if (weekday == day).any() else step for day in range(7)]
            return cls(step, longest, tuple(after))
        return cls(step, longest)

    def gaps(self, stamps: Ints, before: int) -> Ints:
        """Return the indices of the times right after a gap; `before` is the time before the first."""
        return np.flatnonzero(np.diff(stamps, prepend=before) > GAP_FACTOR * self.longest)

    def after(self, stamp: int) -> int:
        """Return when the next round is expected; for monthly or weekday rounds, by the calendar."""
        return int(self.all_after(np.array([stamp]))[0])

    def ahead(self, stamps: Ints, n: int) -> Ints:
        """Return the times themselves and when the n − 1 rounds after each are expected (…, n)."""
        times = [stamps]
        for _ in range(n - 1):
            times.append(np.minimum(self.all_after(times[-1]), LARGEST_STAMP))
        return np.stack(times, axis=-1)

    def all_after(self, stamps: Ints) -> Ints:
        """Return when the round after each of the times is expected."""
        if self.weekdays:
            return stamps + np.array(self.weekdays)[stamps // DAY % 7]
        if not self.monthly:
            return stamps + self.step
        moments, day = stamps.astype("datetime64[us]"), np.timedelta64(1, "D")
        months = moments.astype("datetime64[M]")
        into = moments - months
        are_last = (moments + day).astype("datetime64[M]") != months
        following = (months + 1).astype("datetime64[us]") + into
        are_last |= following.astype("datetime64[M]") != months + 1
        last_days = (months + 2).astype("datetime64[D]").astype("datetime64[us]") - day + into % day
        return np.where(are_last, last_days, following).astype(np.int64)


def _mode(steps: Ints) -> int:
    """The most frequent step; the shortest of several."""
    values, counts = np.unique(steps, return_counts=True)
    return int(values[np.argmax(counts)])


def step_in_words(step: int, is_dated: bool) -> str:
    """Return a step in the largest unit of which it is a multiple.

    >>> step_in_words(600_000_000, True), step_in_words(86_400_000_000, True), step_in_words(1, False)
    ('10 min', '1 day', '1')
    """
    if not is_dated:
        return f"{step:,}"
    unit, size = next((unit, size) for unit, size in TIME_UNITS.items() if step % size == 0)
    return f"{step // size:,} {unit}{'s' * (unit == 'day' and step != size)}"


def time_in_words(stamp: int, is_dated: bool) -> str:
    """Return a time; a date without trailing zeros.

    >>> time_in_words(1_577_840_400_000_000, True), time_in_words(2009, False)
    ('2020-01-01 01:00', '2009')
    """
    if stamp == NEVER:
        return "the start"
    return str(np.datetime_as_string(np.datetime64(stamp, "us"), "auto")).replace("T", " ") if is_dated else f"{stamp}"
