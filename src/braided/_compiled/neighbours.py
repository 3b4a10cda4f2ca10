"""Means over the neighbours, weighted by similarity."""

import numpy as np

from braided._compiled import compiled
from braided.types import Floats, Ints


@compiled
def mean_of_others(values: Floats, ends: Ints, others: Ints, shares: Floats) -> Floats:
    """Weighted mean over the neighbours that have a value; 0 for a task without neighbours, NaN if all are missing.

    `others` holds the neighbours of all tasks one after the other, up to `ends`, and `shares` their weights. Every
    step is summed by itself, so that a long panel and its pieces give the same bits.
    """
    mean = np.empty(values.shape)
    for step in range(values.shape[0]):
        row = values[step]
        first = 0
        for task in range(ends.size):
            total, weight = 0.0, 0.0
            for k in range(first, ends[task]):
                value = row[others[k]]
                if not np.isnan(value):
                    total += shares[k] * value
                    weight += shares[k]
            alone = first == ends[task]
            mean[step, task] = 0.0 if alone else total / weight if weight > 0.0 else np.nan
            first = ends[task]
    return mean
