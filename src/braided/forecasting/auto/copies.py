"""Copies: streams that repeat another one, perhaps in another unit or shifted.

The same sensor under two names adds no information, and makes streams look more related than they are, so a user should
know. Two streams are copies if their changes are proportional, with a positive factor, wherever both are known.

>>> walk = np.random.default_rng(0).normal(size=(60, 2)).cumsum(axis=0)
>>> values = np.column_stack([walk, 1.8 * walk[:, 0] + 32.0])     # the first, in another unit
>>> find_copies(values, TaskGraph.pooled(range(3)))
((0, 2),)
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sparse
from scipy.sparse.csgraph import connected_components

from braided.graph import TaskGraph
from braided.types import Flags, Floats, Ints

LEAST_CORRELATION = 0.9999  # of the changes
LEAST_CHANGES = 15  # known of both, other than 0
CLIP_COPIES_AT = 10.0  # times the median change: one wild value must not make two streams agree
CHANGES_AT_ONCE = 1 << 22  # changes that are compared together


def find_copies(values: Floats, graph: TaskGraph) -> tuple[tuple[int, ...], ...]:
    """Return groups of places of streams (rounds, T) that are copies of each other.

    Only streams that are tied are compared, so the time it takes grows with the number of ties.
    """
    ties = sparse.triu(sparse.csr_array(graph.similarity), k=1).tocoo()
    low, high = (ends.astype(np.int64) for ends in (ties.row, ties.col))
    changes = np.diff(values, axis=0)
    largest = np.fmax.reduce(np.abs(changes), axis=0, initial=0.0)
    changes /= np.where(largest > 0.0, largest, 1.0)  # no square overflows below
    width = max(CHANGES_AT_ONCE // max(len(changes), 1), 1)
    parts = [slice(first, first + width) for first in range(0, len(low), width)]
    same = np.concatenate([np.empty(0, np.bool_), *(_agree(changes[:, low[p]], changes[:, high[p]]) for p in parts)])
    return _groups(low[same], high[same], graph.n_tasks)


def _agree(x: Floats, y: Floats) -> Flags:
    """Return which pairs of columns (n, P) agree, with and without their wild values."""
    both = ~np.isnan(x) & ~np.isnan(y)
    moves = both & (x != 0.0) & (y != 0.0)
    agree: Flags = (np.count_nonzero(moves, axis=0) >= LEAST_CHANGES) & _are_proportional(x, y, both)
    found = np.flatnonzero(agree)
    x, y = (_without_wild(one[:, found], moves[:, found]) for one in (x, y))
    agree[found] = _are_proportional(x, y, both[:, found])
    return agree


def _without_wild(changes: Floats, moves: Flags) -> Floats:
    """Changes (n, P), clipped at a multiple of the median size of those marked in each column."""
    limits = CLIP_COPIES_AT * np.nanmedian(np.where(moves, np.abs(changes), np.nan), axis=0)
    return np.clip(changes, -limits, limits)


def _are_proportional(x: Floats, y: Floats, both: Flags) -> Flags:
    n = np.maximum(np.count_nonzero(both, axis=0), 1)
    x, y = (np.where(both, one, 0.0) for one in (x, y))
    x, y = (np.where(both, one - one.sum(axis=0) / n, 0.0) for one in (x, y))
    size = np.sqrt((x * x).sum(axis=0) * (y * y).sum(axis=0))
    are: Flags = (size > 0.0) & ((x * y).sum(axis=0) >= LEAST_CORRELATION * size)
    return are


def _groups(low: Ints, high: Ints, n: int) -> tuple[tuple[int, ...], ...]:
    """Return the groups of places that the pairs form, in order of their first place."""
    links = sparse.csr_array((np.ones(len(low)), (low, high)), shape=(n, n))
    labels = connected_components(links, directed=False)[1]
    groups: dict[int, list[int]] = {}
    for place in np.union1d(low, high).tolist():
        groups.setdefault(int(labels[place]), []).append(place)
    return tuple(map(tuple, groups.values()))
