"""The two solvers of K w = ψ for many tasks on a sparse graph; local_rls.py says what the letters are.

    push  relax a task, w_t += P_t R_t, which moves its residual to its neighbours, then those whose residual became
          large: for single samples, which reach a few tasks
    CG    conjugate gradients, preconditioned by P: for rounds, and where smooth modes of the graph must move

Of K, both need only P: K P r = r + C_off P r for the links C_off between tasks.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from braided._compiled import compiled, inlined, unlocked
from braided._compiled.linear import dot
from braided._compiled.rls_step import RESIDUAL, SCALE
from braided.types import Floats, Ints

PRIOR, TYPICAL, LATELY = 3, 4, 5  # more columns of Local.totals
CHUNK = 256  # tasks that are summed together, on whichever thread: so any number of threads gives the same bits
MOST_ITERATIONS = 1000  # of conjugate gradients


class Local(NamedTuple):
    """State of N tasks with d features, and the graph: C = what is left of the prior · (diagonal, links by row)."""

    weights: Floats  # (N, d)
    residual: Floats  # (N, d)
    covariance: Floats  # (N, d, d)
    totals: Floats  # (1, 6) as in Filters; what is left of the prior; typical size of an innovation, its count
    squares: Floats  # (d,) typical square of each feature
    starts: Ints  # (N + 1,) where each task's neighbours and links begin
    neighbours: Ints
    links: Floats
    diagonal: Floats  # (N,)
    first_links: Floats  # links and diagonal as they were before anything faded
    first_diagonal: Floats
    places: Ints  # (T,) places of the tasks among the N; tasks that have left stay among the N, without samples
    errors: Floats  # (N + 1, 3) as in Filters


class Room(NamedTuple):
    """Workspace of the solvers."""

    z: Floats  # (N, d) P r
    p: Floats  # (N, d) direction
    q: Floats  # (N, d) K p
    sums: Floats  # (chunks, 6 + d) sums of each chunk; solvers use the first two
    queue: Ints  # (N,)
    queued: Ints  # (N,)


@compiled
def apply_inplace(z: Floats, P: Floats, r: Floats) -> float:
    """z ← P r; return r'z."""
    total = 0.0
    for k in range(r.size):
        z[k] = dot(P[k], r)
        total += z[k] * r[k]
    return total


@compiled
def total_of(sums: Floats, column: int) -> float:
    """Sum over the chunks, always in the same order."""
    total = 0.0
    for chunk in range(sums.shape[0]):
        total += sums[chunk, column]
    return total


@compiled
def move_of(squares: Floats, step: Floats) -> float:
    """Mean square by which forecasts of typical inputs move when weights make this step."""
    total = 0.0
    for k in range(step.size):
        total += squares[k] * step[k] * step[k]
    return total


@unlocked
def step_inplace(local: Local, room: Room, alpha: float, first: int, last: int) -> None:
    """First half of an iteration, for tasks `first` to `last`: w += α p, r −= α q, z ← P r; sums r'z and the moves."""
    W, R, z, p, q, squares = local.weights, local.residual, room.z, room.p, room.q, local.squares
    for start in range(first, last, CHUNK):
        total, move = 0.0, 0.0
        for t in range(start, min(start + CHUNK, last)):
            for k in range(W.shape[1]):
                W[t, k] += alpha * p[t, k]
                R[t, k] -= alpha * q[t, k]
            total += apply_inplace(z[t], local.covariance[t], R[t])
            move += move_of(squares, z[t])
        room.sums[start // CHUNK, 0] = total
        room.sums[start // CHUNK, 1] = move


@unlocked
def turn_inplace(local: Local, room: Room, beta: float, first: int, last: int) -> None:
    """Second half, after the first of all tasks: p ← z + β p, q ← K z + β q; sums p'q."""
    R, z, p, q = local.residual, room.z, room.p, room.q
    d = R.shape[1]
    prior = local.totals[0, PRIOR]
    row = np.empty(d)
    for start in range(first, last, CHUNK):
        total = 0.0
        for t in range(start, min(start + CHUNK, last)):
            row[:] = 0.0
            for m in range(local.starts[t], local.starts[t + 1]):
                link, other = local.links[m], z[local.neighbours[m]]
                for k in range(d):
                    row[k] += link * other[k]
            for k in range(d):
                q[t, k] = R[t, k] + prior * row[k] + beta * q[t, k]
                p[t, k] = z[t, k] + beta * p[t, k]
                total += p[t, k] * q[t, k]
        room.sums[start // CHUNK, 0] = total


def conjugate_gradients(
    step: Callable[..., None], turn: Callable[..., None], local: Local, room: Room, limit: float, most: int
) -> int:
    """Iterate until the moves that are left add up to at most `limit`; the number of iterations, at most `most`.

    `step` and `turn` are the functions above, or run those on threads.
    """
    n = local.weights.shape[0]
    step(local, room, 0.0, 0, n)
    energy, beta = total_of(room.sums, 0), 0.0
    for iteration in range(most):
        if not total_of(room.sums, 1) > limit:
            return iteration
        turn(local, room, beta, 0, n)
        along = total_of(room.sums, 0)
        if not along > 0.0:  # by rounding
            return iteration
        step(local, room, energy / along, 0, n)
        local.totals[0, RESIDUAL] -= energy / along * energy / local.totals[0, SCALE]
        before, energy = energy, total_of(room.sums, 0)
        beta = energy / before
    return most


_conjugate_gradients = inlined(conjugate_gradients)


@compiled
def solve_inplace(local: Local, room: Room, limit: float, most: int) -> int:
    """Solve by conjugate gradients on one thread."""
    return _conjugate_gradients(step_inplace, turn_inplace, local, room, limit, most)


@compiled
def push_inplace(local: Local, room: Room, limit: float, tasks: Ints, most: int) -> int:
    """Relax tasks whose move is above `limit`, beginning with `tasks`; how many, or −1 if `most` were not enough."""
    W, R, queue, queued = local.weights, local.residual, room.queue, room.queued
    n, d = W.shape
    prior, largest = local.totals[0, PRIOR], 0.0
    for k in range(d):
        largest = max(largest, local.squares[k])
    step = np.empty(d)
    head = length = relaxed = 0
    for t in tasks:
        if not queued[t]:
            queue[length] = t
            queued[t] = 1
            length += 1
    while length > 0:
        t = queue[head]
        head = head + 1 if head + 1 < n else 0
        length -= 1
        queued[t] = 0
        energy = apply_inplace(step, local.covariance[t], R[t])
        if relaxed < most and move_of(local.squares, step) > limit:
            relaxed += 1
            local.totals[0, RESIDUAL] -= energy / local.totals[0, SCALE]
            for k in range(d):
                W[t, k] += step[k]
                R[t, k] = 0.0
            for m in range(local.starts[t], local.starts[t + 1]):
                j, link = local.neighbours[m], prior * local.links[m]
                square = 0.0
                for k in range(d):
                    R[j, k] -= link * step[k]
                    square += R[j, k] * R[j, k]
                # no step P R is longer than R / C_jj
                if not queued[j] and largest * square > limit * (prior * local.diagonal[j]) ** 2:
                    tail = head + length
                    queue[tail if tail < n else tail - n] = j
                    queued[j] = 1
                    length += 1
    return relaxed if relaxed < most else -1


@compiled
def limit_of(local: Local, tolerance: float) -> float:
    """Bound of the sum of the moves that are left: (tolerance · typical innovation)² per task."""
    return local.diagonal.size * (tolerance * local.totals[0, TYPICAL]) ** 2
