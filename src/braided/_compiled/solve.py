"""The two solvers of many tasks on a sparse graph, K w = ψ; what they work on is told in local.py.

    push  relax a task, w_t += P_t R_t, which moves its residual to its neighbours, and go on with those whose residual
          is large: for single samples, which reach a few tasks
    CG    conjugate gradients, preconditioned by P: for rounds, and where smooth modes of the graph have to move

Both need no more of K than P: K P r = r + C_off P r for the links C_off between tasks.
"""

from typing import NamedTuple

import numpy as np

from braided._compiled import compiled, unlocked
from braided._compiled.linear import dot
from braided._compiled.step import RESIDUAL, SCALE
from braided.types import Floats, Ints

PRIOR, USUAL, LATELY = 3, 4, 5  # more columns of Local.totals
CHUNK = 256  # tasks whose sums are taken together, whichever thread takes them: the same bits on one as on many
MOST = 1000  # iterations of conjugate gradients


class Local(NamedTuple):
    """State of N tasks with d features, and the graph: C = what is left of the prior · (diagonal, links by row)."""

    weights: Floats  # (N, d)
    residual: Floats  # (N, d)
    covariance: Floats  # (N, d, d)
    totals: Floats  # (1, 6) as in Filters; what is left of the prior; usual size of an innovation, and of how many
    squares: Floats  # (d,) usual square of each feature
    starts: Ints  # (N + 1,) of each task's neighbours
    neighbours: Ints
    links: Floats
    diagonal: Floats  # (N,)
    first_links: Floats  # both as they were when they came, before anything faded
    first_diagonal: Floats
    places: Ints  # (T,) where each task is among the N; those that have left are there still, and teach no more
    errors: Floats  # (N + 1, 3) as in Filters


class Room(NamedTuple):
    """Room for the solvers to work in."""

    z: Floats  # (N, d) P r
    p: Floats  # (N, d) direction
    q: Floats  # (N, d) K p
    sums: Floats  # (chunks, 6 + d) what each chunk sums; solvers use the first two
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
    """The square of what a forecast moves by, on the mean over usual inputs, when weights make this step."""
    total = 0.0
    for k in range(step.size):
        total += squares[k] * step[k] * step[k]
    return total


@unlocked
def step_inplace(local: Local, room: Room, alpha: float, first: int, last: int) -> None:
    """First half of an iteration, for tasks `first` to `last`: w += α p, r −= α q, z ← P r; sums of r'z and moves."""
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
    """Second half, when all have done the first: p ← z + β p, q ← K z + β q; sums of p'q."""
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


@compiled
def solve_inplace(local: Local, room: Room, limit: float, most: int) -> int:
    """Conjugate gradients until the moves that are left add up to at most `limit`; the iterations, of `most`."""
    n = local.weights.shape[0]
    step_inplace(local, room, 0.0, 0, n)
    energy, beta = total_of(room.sums, 0), 0.0
    for iteration in range(most):
        if not total_of(room.sums, 1) > limit:
            return iteration
        turn_inplace(local, room, beta, 0, n)
        along = total_of(room.sums, 0)
        if not along > 0.0:  # rounding has made it so
            return iteration
        step_inplace(local, room, energy / along, 0, n)
        local.totals[0, RESIDUAL] -= energy / along * energy / local.totals[0, SCALE]
        before, energy = energy, total_of(room.sums, 0)
        beta = energy / before
    return most


@compiled
def push_inplace(local: Local, room: Room, limit: float, tasks: Ints, most: int) -> int:
    """Relax tasks whose move is above `limit`, from `tasks` on; how many were, or −1 if `most` were not enough."""
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
    """What the moves that are left may add up to: (tolerance · usual innovation)² for each task."""
    return local.diagonal.size * (tolerance * local.totals[0, USUAL]) ** 2
