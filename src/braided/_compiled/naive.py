"""Baselines that need no model."""

from braided._compiled import compiled
from braided.types import Floats, Ints


@compiled
def last_value_inplace(last: Floats, y: Floats, tasks: Ints, weights: Floats, ends: Ints, mean: Floats) -> int:
    """Forecast each task's last value, then store the new ones, group by group."""
    first = 0
    for end in ends:
        for i in range(first, end):
            mean[i] = last[tasks[i]]
        for i in range(first, end):
            if weights[i] > 0.0:
                last[tasks[i]] = y[i]
        first = end
    return first
