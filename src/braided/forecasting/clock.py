"""The clock of a stream: times as integers, the usual step, gaps, and how they are told."""

from __future__ import annotations

import numpy as np

from braided.errors import InputError
from braided.types import Ints, Times

GAP = 1.5  # a step this many times the usual one is a gap
NEVER = -(2**63)  # the last time, before the first round
UNITS = {"day": 86_400_000_000, "h": 3_600_000_000, "min": 60_000_000, "s": 1_000_000, "ms": 1000, "µs": 1}


def as_stamps(times: Times) -> Ints:
    """Return times as integers: dates in microseconds."""
    return (times.astype("datetime64[us]") if times.dtype.kind == "M" else times).astype(np.int64)


def usual_step(times: Times) -> int:
    """Return the step that nine of ten do not exceed, in microseconds or whole numbers; gaps are much longer."""
    if len(times) < 2:
        raise InputError(f"{len(times)} rounds tell no step: give two at least")
    return int(np.quantile(np.diff(as_stamps(times)), 0.9, method="lower"))


def gaps_in(stamps: Ints, step: int, before: int) -> Ints:
    """Return the places of the times that come after a gap; `before` is the time before the first."""
    return np.flatnonzero(np.diff(stamps, prepend=before) > GAP * step)


def step_in_words(step: int, is_dated: bool) -> str:
    """Return a step in the largest unit in which it is whole.

    >>> step_in_words(600_000_000, True), step_in_words(86_400_000_000, True), step_in_words(1, False)
    ('10 min', '1 day', '1')
    """
    if not is_dated:
        return f"{step:,}"
    unit, size = next((unit, size) for unit, size in UNITS.items() if step % size == 0)
    return f"{step // size:,} {unit}{'s' * (unit == 'day' and step != size)}"


def time_in_words(stamp: int, is_dated: bool) -> str:
    """Return a time; of a date, no more than is needed.

    >>> time_in_words(1_577_840_400_000_000, True), time_in_words(2009, False)
    ('2020-01-01 01:00', '2009')
    """
    if stamp == NEVER:
        return "the start"
    return str(np.datetime_as_string(np.datetime64(stamp, "us"), "auto")).replace("T", " ") if is_dated else f"{stamp}"
