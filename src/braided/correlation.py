"""Spearman and Pearson correlations of past series, which may have gaps, be constant, or be short."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sparse

from braided.errors import InputError
from braided.types import Floats, Ints

FEWEST_STEPS = 3  # that two series must share to have a correlation
BLOCK = 1 << 22  # correlations computed together


def correlations(history: Any, ranks: bool, difference: bool) -> Floats:
    """Return the pairwise correlations of the columns over the steps both have; 0 where undefined."""
    values = _steps(history, difference)
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


def largest_correlations(history: Any, k: int, ranks: bool, difference: bool, absolute: bool) -> sparse.csr_array:
    """Return the correlations of each column with the k most similar ones, and with those that have it among theirs.

    A missing step counts as the column's mean, so that few common steps make a correlation smaller. With `absolute`,
    negative correlations rank by their size; else they are left out.
    """
    columns = _normed(_steps(history, difference), ranks)
    n_steps, n_tasks = columns.shape
    low, high = _largest_pairs(columns, k, absolute)
    width = max(BLOCK // max(n_steps, 1), 1)
    parts = [slice(first, first + width) for first in range(0, len(low), width)]
    found = np.concatenate([np.empty(0), *((columns[:, low[p]] * columns[:, high[p]]).sum(axis=0) for p in parts)])
    kept = found != 0.0 if absolute else found > 0.0
    low, high, found = low[kept], high[kept], found[kept].clip(-1.0, 1.0)
    ends = np.append(low, high), np.append(high, low)
    return sparse.csr_array((np.tile(found, 2), ends), shape=(n_tasks, n_tasks))


def _largest_pairs(columns: Floats, k: int, absolute: bool) -> tuple[Ints, Ints]:
    """Return the pairs (low, high), each once, of which one is among the k most similar to the other."""
    n_tasks = columns.shape[1]
    k = min(k, n_tasks - 1)
    if k < 1:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    rows = np.ascontiguousarray(columns.T, np.float32)  # precise enough to rank
    pairs, height = [], max(BLOCK // n_tasks, 1)
    for first in range(0, n_tasks, height):
        block = rows[first : first + height] @ rows.T
        here = np.arange(len(block))
        if absolute:
            np.abs(block, out=block)
        block[here, first + here] = -np.inf
        others = np.argpartition(block, n_tasks - k, axis=1)[:, n_tasks - k :]
        ends = np.repeat(first + here, k), others.ravel()
        pairs.append(np.minimum(*ends) * n_tasks + np.maximum(*ends))
    low, high = np.divmod(np.unique(np.concatenate(pairs)), n_tasks)
    return low, high


def _steps(history: Any, difference: bool) -> Floats:
    """Return the checked history, or its differences, as floats; NaN where a value is missing."""
    array = np.asarray(history)
    if array.dtype.kind not in "fiu" or array.ndim != 2:
        raise InputError(f"history has shape {array.shape} and dtype {array.dtype}: give numbers (steps, tasks)")
    values = array.astype(np.float64)
    if np.isinf(values).any():
        step, task = map(int, np.argwhere(np.isinf(values))[0])
        raise InputError(f"history[{step}, {task}] is {values[step, task]}: use NaN for a missing value")
    if difference:  # in units above rounding, so that equal steps stay ties
        unit = 2.0**-42 * np.abs(np.nan_to_num(values)).max(axis=0, initial=0.0)
        values = np.rint(np.diff(values / np.where(unit > 0.0, unit, 1.0), axis=0))
    return values


def _correlation(values: Floats, ranks: bool) -> Floats:
    """Correlation matrix with a zero diagonal."""
    columns = _normed(values, ranks)
    similarity: Floats = (columns.T @ columns).clip(-1.0, 1.0)
    np.fill_diagonal(similarity, 0.0)
    return similarity


def _normed(values: Floats, ranks: bool) -> Floats:
    """Columns of mean 0 and length 1, with 0 for what is missing; a series that is constant or too short is all 0."""
    if ranks:
        from scipy.stats import rankdata  # slow to import, and only needed here

        values = rankdata(values, axis=0, nan_policy="omit")
    known = ~np.isnan(values)
    count = known.sum(axis=0)
    usable = (count >= FEWEST_STEPS) & (
        np.fmax.reduce(values, initial=-np.inf) > np.fmin.reduce(values, initial=np.inf)
    )
    largest = np.fmax.reduce(np.abs(values), initial=0.0)
    values = values / np.where(usable, largest, 1.0)  # so that nothing below overflows
    centred = np.where(known & usable, values - np.nansum(values, axis=0) / np.maximum(count, 1), 0.0)
    lengths = np.linalg.norm(centred, axis=0)
    normed: Floats = centred / np.where(lengths > 0.0, lengths, 1.0)
    return normed
