"""How alike past series are: Spearman and Pearson correlations with gaps, constant and short series."""

from __future__ import annotations

from typing import Any

import numpy as np

from braided.errors import InputError
from braided.types import Floats

SHORTEST = 3  # fewer common steps than this say nothing about similarity


def correlations(history: Any, ranks: bool, difference: bool) -> Floats:
    """Return the pairwise correlations of the columns over the steps both have; 0 where they say nothing."""
    array = np.asarray(history)
    if array.dtype.kind not in "fiu" or array.ndim != 2:
        raise InputError(f"history has shape {array.shape} and dtype {array.dtype}: give numbers (steps, tasks)")
    values = array.astype(np.float64)
    if np.isinf(values).any():
        step, task = map(int, np.argwhere(np.isinf(values))[0])
        raise InputError(f"history[{step}, {task}] is {values[step, task]}: use NaN for a missing value")
    if difference:  # equal steps differ by rounding, which would break their ties: count them in units above it
        unit = 2.0**-42 * np.abs(np.nan_to_num(values)).max(axis=0, initial=0.0)
        values = np.rint(np.diff(values / np.where(unit > 0.0, unit, 1.0), axis=0))
    if not np.isnan(values).any():
        return _correlation(values, ranks)
    n_tasks = values.shape[1]
    result = np.zeros((n_tasks, n_tasks))
    for i in range(n_tasks):
        for j in range(i):
            pair = values[:, [i, j]]
            both = pair[~np.isnan(pair).any(axis=1)]
            result[i, j] = result[j, i] = _correlation(both, ranks)[0, 1]
    return result


def _correlation(values: Floats, ranks: bool) -> Floats:
    """Correlation matrix with a zero diagonal; a constant or too short series correlates with nothing."""
    n_steps, n_tasks = values.shape
    if n_steps < SHORTEST:
        return np.zeros((n_tasks, n_tasks))
    if ranks:
        from scipy.stats import rankdata  # slow to import, and only needed here

        values = rankdata(values, axis=0)
    varies = np.ptp(values, axis=0) > 0.0
    values = values / np.where(varies, np.abs(values).max(axis=0), 1.0)  # no overflow below, whatever the units
    centred = (values - values.mean(axis=0)) * varies
    lengths = np.linalg.norm(centred, axis=0)
    units: Floats = centred / np.where(lengths > 0.0, lengths, 1.0)
    similarity = (units.T @ units).clip(-1.0, 1.0)
    np.fill_diagonal(similarity, 0.0)
    return similarity
