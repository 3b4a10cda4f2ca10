"""The local solver of MT-WRLS, for many tasks on a sparse graph: each task's own block of P, and weights by iteration.

Tasks are stored in an order that puts neighbours near each other in memory (reverse Cuthill–McKee). A task that leaves
stays in the state, because what the others have learned from it depends on it, but no position refers to it.
"""

import os
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import Any, NoReturn, final

import numpy as np
import scipy.sparse as sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee

from braided._compiled.batch import NO_ROUND, Batch, Clock
from braided._compiled.local_rls import (
    SOLVE_FROM,
    Job,
    fold_inplace,
    forecast_inplace,
    fresh_local,
    fresh_room,
    learn_group,
    learn_range_inplace,
    progressive_inplace,
)
from braided._compiled.local_solve import (
    CHUNK,
    MOST_ITERATIONS,
    PRIOR,
    Local,
    Room,
    conjugate_gradients,
    limit_of,
    solve_inplace,
    step_inplace,
    turn_inplace,
)
from braided._compiled.rls_step import RESIDUAL, SCALE
from braided.errors import InputError
from braided.forgetting.steps import NO_PRIOR
from braided.graph import TaskGraph
from braided.learners.base import Health
from braided.learners.parts.joining import arrival, errors_with_one_more
from braided.learners.solvers.filter_solver import Setting
from braided.matrices import inverse
from braided.types import Floats, Ints
from braided.validate import insist_integers, insist_numbers, insist_offsets

ONE, OPENS, NOTHING = np.ones(1, np.int64), np.ones(1, np.bool_), np.empty(0)  # of a batch of one sample
THREADED = 2_000_000  # numbers in P from which a round is worth more than one thread
MOST_THREADS = 4  # memory bandwidth bounds a round, and more threads do not help


@final
class LocalSolver:
    """Keeps the weights within a tolerance of the exact solution, at a cost of O(d²) per task."""

    has_fixed_shapes = False  # tasks that have left are still in the state
    gain_size = 0  # it iterates instead
    moves_weights = False  # a sample is refused before anything moves

    def __init__(self, setting: Setting) -> None:
        """Refuse forgetting that does not fade all tasks alike."""
        if not setting.forgetting.is_uniform:
            raise InputError(
                f'solver="local" can only fade all tasks alike, not by {setting.forgetting!r}: use Exponential or '
                'HalfLife, or "blocked" for few tasks'
            )
        self.setting = setting
        self._room: Room | None = None
        fixed = setting.forgetting.has_fixed_steps
        self._fade_of_one = {opens: self._fades(Clock.of_one(opens))[0] for opens in (False, True)} if fixed else {}

    def start(self) -> Local:
        """Return the state before the first sample."""
        relation = sparse.csr_array(self.setting.graph.relation)
        order = reverse_cuthill_mckee(sparse.csr_matrix(relation), symmetric_mode=True).astype(np.int64)
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        rows = _rows(self.setting.penalty * relation[order][:, order])
        return fresh_local(*rows, places, self.setting.n_features, self.setting.noise)

    def predict(self, state: Local, X: Floats, tasks: Ints, mean: Floats, std: Floats) -> None:
        """Predict into `mean`, and into `std` unless that is empty."""
        forecast_inplace(state, X, state.places[tasks], mean, std, 0, len(X))

    def progressive(self, state: Local, batch: Batch, mean: Floats, std: Floats) -> int:
        """Predict and learn group by group; return how many samples could be learned."""
        setting, room, n, done = self.setting, self._room_of(state), len(state.weights), 0
        fades, batch = self._fades(batch.clock), batch._replace(tasks=state.places[batch.tasks])
        job = Job(batch, fades, np.empty(len(fades)), mean, std, setting.robust, setting.tolerance)
        if state.covariance.size < THREADED or len(fades) <= SOLVE_FROM * n:  # no group is worth threads
            return progressive_inplace(state, room, job, 0, len(batch.ends))
        large = np.diff(batch.ends, prepend=0) > SOLVE_FROM * n
        cuts = np.flatnonzero(np.diff(large, prepend=~large[:1]) | large)  # each large group, and runs of others
        for group, after in pairwise([*cuts.tolist(), len(large)]):
            end = int(batch.ends[after - 1])
            if large[group]:
                done = _learn_on_threads(state, room, job, done, end)
            else:
                done = progressive_inplace(state, room, job, group, after)
            if done < end:
                break
        return done

    def _fades(self, clock: Clock) -> Floats:
        policy = self.setting.forgetting
        steps = policy.steps(clock, NO_PRIOR)
        if (steps.fades[:, 1] != 1.0).any():
            raise InputError(f'{policy!r} fades single tasks: solver="local" can only fade all tasks alike')
        return steps.fades[:, 0] * np.where(steps.moves > 0.0, steps.moves, 1.0)

    def _room_of(self, state: Local) -> Room:
        if self._room is None or len(self._room.z) != len(state.weights):
            self._room = fresh_room(*state.weights.shape)
        return self._room

    def learn_one(self, state: Local, x: Floats, y: float, task: int, weight: float, opens: bool) -> bool:
        """Fast path for one sample; returns False, with the state unchanged, where it is not enough."""
        if not self._fade_of_one:
            return False
        given, fade = np.array([y, weight]), np.array([self._fade_of_one[opens]])
        place = state.places[task : task + 1]
        batch = Batch(x.reshape(1, -1), given[:1], place, given[1:], ONE, OPENS, ONE, NO_ROUND)
        job = Job(batch, fade, np.empty(1), np.empty(1), NOTHING, self.setting.robust, self.setting.tolerance)
        return progressive_inplace(state, self._room_of(state), job, 0, 1) == 1

    def coef(self, state: Local) -> Floats:
        """Return the weights (T, d)."""
        return state.weights[state.places]

    def covariance(self, state: Local) -> NoReturn:
        """Refuse: P of all tasks is not kept."""
        raise AttributeError('no covariance with solver="local", which keeps none: use "blocked"')

    def health(self, state: Local, samples: int) -> Health:
        """Return the numerical condition after that many samples; variances are given the neighbours' weights."""
        variances = state.covariance[state.places].diagonal(axis1=1, axis2=2) * state.totals[0, SCALE]
        return Health.of(samples, 0, variances.ravel(), state.errors)

    def leave(self, state: Local, position: int) -> Local:
        """Return the state with the task detached."""
        return state._replace(places=np.delete(state.places, position))

    def join(self, state: Local, graph: TaskGraph) -> Local:
        """Return the state with one more task, whose edges and ridge enter at full strength."""
        penalty, state = self.setting.penalty, Local._make(array.copy() for array in state)
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
        # the new task's weights are those its neighbours suggest: the rest of the new part of w'Cw is its ridge
        state.totals[0, RESIDUAL] += penalty * (arrived.precision - f.sum()) * expected @ expected

        def grown(links: Floats, diagonal: Floats, strength: float) -> tuple[Ints, Ints, Floats, Floats]:
            old = sparse.csr_array((links, state.neighbours, state.starts), shape=(n, n))
            edges = sparse.csr_array((-strength * f, (np.zeros(len(near), np.int64), near)), shape=(1, n))
            diagonal = np.append(diagonal, strength * arrived.precision)
            diagonal[near] += strength * f
            C = sparse.block_array([[old, edges.T], [edges, None]], format="csr") + sparse.diags_array(diagonal)
            return _rows(C)

        starts, neighbours, links, diagonal = grown(state.links, state.diagonal, penalty / state.totals[0, PRIOR])
        _, _, first_links, first_diagonal = grown(state.first_links, state.first_diagonal, penalty)
        state = state._replace(
            weights=np.vstack([state.weights, expected]),
            residual=np.vstack([state.residual, np.zeros(d)]),
            covariance=np.concatenate([state.covariance, np.eye(d)[None] / (penalty * arrived.precision)]),
            starts=starts,
            neighbours=neighbours,
            links=links,
            diagonal=diagonal,
            first_links=first_links,
            first_diagonal=first_diagonal,
            places=np.append(state.places, n),
            errors=errors_with_one_more(state.errors),
        )
        solve_inplace(state, self._room_of(state), limit_of(state, self.setting.tolerance), MOST_ITERATIONS)
        return state

    @classmethod
    def check(cls, arrays: Mapping[str, Any], n_tasks: int, d: int) -> None:
        """Refuse loaded arrays that are not the state of that many tasks, or whose indices are out of range."""
        n, n_links = len(arrays["weights"]), len(arrays["links"])
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys(("weights", "residual"), (n, d))
        shapes |= dict.fromkeys(("links", "first_links"), (n_links,))
        shapes |= dict.fromkeys(("diagonal", "first_diagonal"), (n,))
        shapes |= {"covariance": (n, d, d), "totals": (1, 6), "squares": (d,), "errors": (n + 1, 3)}
        for name, shape in shapes.items():
            insist_numbers(arrays[name], name, shape)
        places = arrays["places"]
        insist_offsets(arrays["starts"], "starts", n, n_links)
        insist_integers(arrays["neighbours"], "neighbours", (n_links,), 0, n - 1)
        insist_integers(places, "places", (n_tasks,), 0, n - 1)
        if len(np.unique(places)) < n_tasks:
            raise InputError("two tasks have the same place")


def _rows(C: sparse.csr_array) -> tuple[Ints, Ints, Floats, Floats]:
    """Return starts, neighbours, links and diagonal of C."""
    diagonal = C.diagonal()
    links = sparse.csr_array(C - sparse.diags_array(diagonal))
    links.eliminate_zeros()
    links.sort_indices()
    return links.indptr.astype(np.int64), links.indices.astype(np.int64), links.data, diagonal


def _learn_on_threads(state: Local, room: Room, job: Job, first: int, end: int) -> int:
    """Predict and learn one group as `progressive_inplace` does, with the work over tasks divided among threads."""
    threads = min(os.cpu_count() or 1, MOST_THREADS)
    with ThreadPoolExecutor(threads) as pool:
        divide = partial(partial, _divided, pool, threads)
        solve = partial(conjugate_gradients, divide(step_inplace), divide(turn_inplace))
        return learn_group(divide(forecast_inplace), divide(learn_range_inplace), solve, state, room, job, first, end)


def _divided(pool: Executor, threads: int, function: Callable[..., None], *arguments: Any) -> None:
    """Run a function whose last two arguments are the range that it works on, with a part of it on each thread."""
    *given, first, last = arguments
    for done in [pool.submit(function, *given, *part) for part in ranges(first, last, threads)]:
        done.result()


def ranges(first: int, last: int, parts: int) -> list[tuple[int, int]]:
    """Return up to `parts` ranges of whole chunks, of tasks or samples."""
    cuts = {first + (last - first) * k // parts // CHUNK * CHUNK for k in range(parts)} | {last}
    return list(pairwise(sorted(cuts)))
