"""Many tasks on a sparse graph: the state of MTWRLS with solver="local", made, run on threads, joined and left.

Tasks are put in an order in which neighbours are near each other (reverse Cuthill–McKee), so that they are near in
memory, too. A task that leaves stays in there, as what it has taught others hangs on it, but is no longer anybody's.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee

from braided._compiled.batch import Batch
from braided._compiled.local import (
    ROUND,
    account_inplace,
    fade_inplace,
    fold_inplace,
    forecast_inplace,
    fresh_local,
    fresh_room,
    learn_range_inplace,
    learnable,
    progressive_inplace,
    weigh_inplace,
)
from braided._compiled.solve import (
    CHUNK,
    MOST,
    PRIOR,
    Local,
    Room,
    limit_of,
    solve_inplace,
    step_inplace,
    total_of,
    turn_inplace,
)
from braided._compiled.step import RESIDUAL, SCALE
from braided.errors import InputError
from braided.graph import TaskGraph
from braided.learners.parts.joining import arrival, errors_with_one_more
from braided.matrices import inverse
from braided.types import Floats, Ints
from braided.validate import insist_integers, insist_numbers, insist_offsets

THREADED = 20_000  # tasks from which a round is worth more than one thread
THREADS = 4  # at most: what bounds a round is the memory, which more of them do not make faster


def start(graph: TaskGraph, d: int, penalty: float, noise: float) -> Local:
    """Return the state before the first sample."""
    relation = sparse.csr_array(graph.relation)
    order = reverse_cuthill_mckee(sparse.csr_matrix(relation), symmetric_mode=True).astype(np.int64)
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    return fresh_local(*_rows(penalty * relation[order][:, order]), places, d, noise)


def _rows(C: sparse.csr_array) -> tuple[Ints, Ints, Floats, Floats]:
    """Return starts, neighbours, links and diagonal of C."""
    diagonal = C.diagonal()
    links = sparse.csr_array(C - sparse.diags_array(diagonal))
    links.eliminate_zeros()
    links.sort_indices()
    return links.indptr.astype(np.int64), links.indices.astype(np.int64), links.data, diagonal


def coef(local: Local) -> Floats:
    """Return the weights (T, d)."""
    return local.weights[local.places]


def variances(local: Local) -> Floats:
    """Return the variance of each weight, given those of the neighbours."""
    each: Floats = local.covariance[local.places].diagonal(axis1=1, axis2=2) * local.totals[0, SCALE]
    return each.ravel()


def left(local: Local, position: int) -> Local:
    """Return the state in which a task is nobody's any more."""
    return local._replace(places=np.delete(local.places, position))


def joined(local: Local, graph: TaskGraph, penalty: float) -> Local:
    """Return the state with one more task, whose edges and ridge enter at full strength; it is yet to be solved."""
    state = Local._make(array.copy() for array in local)
    fold_inplace(state)
    n, d = state.weights.shape
    arrived = arrival(graph)
    near, pull = state.places[arrived.near], arrived.pull
    f = arrived.precision * pull
    expected = pull @ state.weights[near]
    for place, more in zip(near, penalty * f, strict=True):
        state.covariance[place] = inverse(inverse(state.covariance[place]) + more * np.eye(d))
        gap = state.weights[place] - expected
        state.residual[place] -= more * gap
        state.totals[0, RESIDUAL] += more * gap @ gap
    # the new task's weights are those its neighbours suggest: what is left of the new part of w'Cw is its ridge
    state.totals[0, RESIDUAL] += penalty * (arrived.precision - f.sum()) * expected @ expected

    def grown(links: Floats, diagonal: Floats, strength: float) -> tuple[Ints, Ints, Floats, Floats]:
        old = sparse.csr_array((links, state.neighbours, state.starts), shape=(n, n))
        edges = sparse.csr_array((-strength * f, (np.zeros(len(near), np.int64), near)), shape=(1, n))
        diagonal = np.append(diagonal, strength * arrived.precision)
        diagonal[near] += strength * f
        return _rows(sparse.block_array([[old, edges.T], [edges, None]], format="csr") + sparse.diags_array(diagonal))

    starts, neighbours, links, diagonal = grown(state.links, state.diagonal, penalty / state.totals[0, PRIOR])
    _, _, first_links, first_diagonal = grown(state.first_links, state.first_diagonal, penalty)
    return Local(
        weights=np.vstack([state.weights, expected]),
        residual=np.vstack([state.residual, np.zeros(d)]),
        covariance=np.concatenate([state.covariance, np.eye(d)[None] / (penalty * arrived.precision)]),
        totals=state.totals,
        squares=state.squares,
        starts=starts,
        neighbours=neighbours,
        links=links,
        diagonal=diagonal,
        first_links=first_links,
        first_diagonal=first_diagonal,
        places=np.append(state.places, n),
        errors=errors_with_one_more(state.errors),
    )


def check(arrays: Mapping[str, Any], n_tasks: int, d: int) -> None:
    """Refuse loaded arrays that are not the state of so many tasks, or whose indices are out of range."""
    n, n_links = len(arrays["weights"]), len(arrays["links"])
    shapes = {
        "weights": (n, d),
        "residual": (n, d),
        "covariance": (n, d, d),
        "totals": (1, 6),
        "squares": (d,),
        "links": (n_links,),
        "diagonal": (n,),
        "first_links": (n_links,),
        "first_diagonal": (n,),
        "errors": (n + 1, 3),
    }
    for name, shape in shapes.items():
        insist_numbers(arrays[name], name, shape)
    places = arrays["places"]
    insist_offsets(arrays["starts"], "starts", n, n_links)
    insist_integers(arrays["neighbours"], "neighbours", (n_links,), 0, n - 1)
    insist_integers(places, "places", (n_tasks,), 0, n - 1)
    if len(np.unique(places)) < n_tasks:
        raise InputError("two tasks have the same place")


class Runner:
    """Runs samples through a state: the room that solvers need, and threads where a round is worth them."""

    def __init__(self, tolerance: float, robust: float) -> None:
        """Take what does not change."""
        self.tolerance, self.robust = tolerance, robust
        self._room: Room | None = None

    def room(self, local: Local) -> Room:
        """Return room for as many tasks as there are."""
        if self._room is None or len(self._room.z) != len(local.weights):
            self._room = fresh_room(*local.weights.shape)
        return self._room

    def settle(self, local: Local) -> None:
        """Solve for what has changed."""
        solve_inplace(local, self.room(local), limit_of(local, self.tolerance), MOST)

    def progressive(self, local: Local, batch: Batch, fades: Floats, mean: Floats, std: Floats) -> int:
        """Forecast and learn group by group; return how many samples could be learned."""
        tasks, n, limits = local.places[batch.tasks], len(local.weights), (self.robust, self.tolerance)
        if n < THREADED or ROUND * len(tasks) <= n:  # no group is worth threads
            samples = batch.X, batch.y, tasks, batch.weights, batch.ends, fades
            return progressive_inplace(local, self.room(local), *samples, *limits, mean, std)
        sizes = np.diff(batch.ends, prepend=0)
        large = ROUND * sizes > n
        cuts = np.flatnonzero(np.diff(large, prepend=~large[:1]) | large)  # each large group, and others as they follow
        for group, after in pairwise(np.append(cuts, len(sizes)).tolist()):
            first, end = int(batch.ends[group] - sizes[group]), int(batch.ends[after - 1])
            part = slice(first, end)
            given = batch.X[part], batch.y[part], tasks[part], batch.weights[part]
            made = mean[part], std[part]
            if large[group]:
                done = self._learn_round(local, *given, fades[part], *made)
            else:
                ends = batch.ends[group:after] - first
                done = progressive_inplace(local, self.room(local), *given, ends, fades[part], *limits, *made)
            if done < end - first:
                return first + done
        return len(tasks)

    def _learn_round(
        self,
        local: Local,
        X: Floats,
        y: Floats,
        tasks: Ints,
        weights: Floats,
        fades: Floats,
        mean: Floats,
        std: Floats,
    ) -> int:
        """One group as `progressive_inplace` does it, to the bit, but on threads."""
        room, n = self.room(local), len(local.weights)
        threads = min(os.cpu_count() or 1, THREADS)
        with ThreadPoolExecutor(threads) as pool:

            def on_threads(size: int, function: Callable[..., None], *arguments: object) -> None:
                for done in [pool.submit(function, *arguments, *part) for part in ranges(size, threads)]:
                    done.result()

            def over_tasks(function: Callable[..., None], *arguments: object) -> float:
                on_threads(n, function, local, room, *arguments)
                return total_of(room.sums, 0)

            on_threads(len(tasks), forecast_inplace, mean, std, local, X, tasks)
            learned = learnable(local, X, y, tasks, weights)
            if not learned:
                return 0
            stored, left, first = np.empty(learned), fades.copy(), 0
            while first < learned:
                end, scale = weigh_inplace(stored, weights[:learned], left, first, local.totals[0, SCALE])
                if end > first:
                    samples = (column[first:end] for column in (X, y, tasks, weights, stored))
                    over_tasks(learn_range_inplace, *samples, self.robust)
                    account_inplace(local, room.sums, scale, self.robust)
                if end < learned:
                    fade_inplace(local, left[end])
                    left[end] = 1.0
                first = end
            limit, beta = limit_of(local, self.tolerance), 0.0
            energy = over_tasks(step_inplace, 0.0)
            for _ in range(MOST):  # as solve_inplace
                along = over_tasks(turn_inplace, beta) if total_of(room.sums, 1) > limit else 0.0
                if not along > 0.0:
                    break
                local.totals[0, RESIDUAL] -= energy / along * energy / local.totals[0, SCALE]
                before, energy = energy, over_tasks(step_inplace, energy / along)
                beta = energy / before
        return learned


def ranges(n: int, parts: int) -> list[tuple[int, int]]:
    """Return up to `parts` ranges of whole chunks, of tasks or samples, for as many threads."""
    cuts = {min(n * k // parts // CHUNK * CHUNK, n) for k in range(parts)} | {n}
    return list(pairwise(sorted(cuts)))
