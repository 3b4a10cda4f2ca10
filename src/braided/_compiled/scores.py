"""Errors, pinball losses of quantiles, and values inside intervals and below quantiles, summed by task."""

from __future__ import annotations

from typing import NamedTuple

from braided._compiled import compiled
from braided.types import Floats, Ints

LARGEST_LOSS = 1e100  # in units of the scale


class Losses(NamedTuple):
    """Sums for T tasks and L levels."""

    measured: Floats  # (T,) forecasts
    losses: Floats  # (T, L)
    below: Floats  # (T, L)


@compiled
def add_losses_inplace(sums: Losses, levels: Floats, scale: Floats, ends: Floats, actual: Floats, places: Ints) -> None:
    """Add those of quantiles `ends` (n, L) of values (n,) of the tasks at these places; of none with a NaN."""
    for i in range(len(actual)):
        t, are_known = places[i], True
        for q in range(len(levels)):
            are_known = are_known and ends[i, q] == ends[i, q]
        if are_known:
            sums.measured[t] += 1.0
            for q in range(len(levels)):
                error = min(max((actual[i] - ends[i, q]) / scale[t], -LARGEST_LOSS), LARGEST_LOSS)
                sums.losses[t, q] += max(levels[q] * error, (levels[q] - 1.0) * error)
                sums.below[t, q] += 1.0 if error < 0.0 else 0.0


class Errors(NamedTuple):
    """Sums for T tasks and K contenders."""

    counts: Floats  # (T,) forecasts
    squares: Floats  # (T, K)
    intervals: Floats  # (T,) forecasts with an interval
    covered: Floats  # (T,) values inside


@compiled
def add_errors_inplace(sums: Errors, errors: Floats, inside: Floats, places: Ints) -> None:
    """Add errors (n, K) of the tasks at these places; `inside` is 1 or 0, NaN without an interval."""
    for i in range(len(places)):
        t = places[i]
        sums.counts[t] += 1.0
        for k in range(errors.shape[1]):
            sums.squares[t, k] += errors[i, k] * errors[i, k]
        if inside[i] == inside[i]:
            sums.intervals[t] += 1.0
            sums.covered[t] += inside[i]
