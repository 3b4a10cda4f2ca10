"""MT-WRLS for many tasks on a sparse graph: the weights of the batch solution, held within a tolerance.

The weights w solve K w = ψ, where K = blkdiag Φ_t + C ⊗ I holds the information Φ_t of each task's samples and that of
the prior, C = penalty · A, which is sparse. Neither Φ_t nor ψ is stored, only what finding the solution needs:

    W  weights (N, d), the current ones
    R  residual (N, d), ψ − K w: zero at the solution
    P  covariance (N, d, d), P_t = (Φ_t + C_tt I)⁻¹: that of a task whose neighbours' weights are known

A sample of task t changes R_t, and P_t by the recursion of one small filter. Then one of two solvers (local_solve.py)
moves w until little motion is left: P_t R_t is the next step of a task's weights, and by these steps forecasts of
typical inputs may move, in the mean square, by at most `tolerance` of the typical innovation. That does not depend on
the units of inputs, targets and sample weights, on levels, or on the strength of the prior.

Uniform forgetting fades K, ψ and R alike, which moves no weight. The stored values do not fade; instead, new samples
weigh more: K = K_stored / scale, P = scale · P_stored, until the scale is folded in.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from braided._compiled import compiled, inlined, unlocked
from braided._compiled.batch import Batch
from braided._compiled.linear import dot, invert_inplace
from braided._compiled.local_solve import (
    CHUNK,
    LATELY,
    MOST_ITERATIONS,
    PRIOR,
    TYPICAL,
    Local,
    Room,
    apply_inplace,
    limit_of,
    push_inplace,
    solve_inplace,
    total_of,
)
from braided._compiled.rls_step import (
    COUNT,
    ERROR_WINDOW,
    FOLD,
    MOST_DOUBT,
    PRIOR_FLOOR,
    RESIDUAL,
    ROUNDING,
    SCALE,
    SEEN,
    SQUARE,
    UNUSUAL,
    deviation,
    fade_evidence_inplace,
    fresh_errors,
    fresh_totals,
    learn_error_inplace,
    quadratic,
    rounding,
    typical_square,
)
from braided.types import Floats, Ints

LARGEST_INNOVATION = 1e70  # also of values: squares of products of two must not overflow
SOLVE_FROM = 1 / 16  # samples per task from which a group is solved by conjugate gradients
MOST_RELAXATIONS = 4  # per task, about the cost of conjugate gradients, which then take over
SQUARES, SIZES, WEIGHTS, RATIOS, REDUCED, SAMPLES, INPUTS = range(7)  # sums of a chunk; last, inputs² by feature


def fresh_local(
    starts: Ints, neighbours: Ints, links: Floats, diagonal: Floats, places: Ints, d: int, noise: float = 0.0
) -> Local:
    """Return the state before the first sample, for C by rows without its diagonal, and its diagonal."""
    n = diagonal.size
    covariance = np.eye(d) / diagonal[:, None, None]
    totals = np.append(fresh_totals(1, noise), [[1.0, noise, 0.0]], axis=1)
    graph = starts, neighbours, links, diagonal, links.copy(), diagonal.copy(), places
    return Local(np.zeros((n, d)), np.zeros((n, d)), covariance, totals, np.zeros(d), *graph, fresh_errors(n, noise))


def fresh_room(n: int, d: int) -> Room:
    """Return room for N tasks."""
    z, p, q = np.zeros((3, n, d))
    return Room(z, p, q, np.zeros((-(-n // CHUNK), INPUTS + d)), np.zeros(n, np.int64), np.zeros(n, np.int64))


class Job(NamedTuple):
    """What is predicted and learned, and how."""

    batch: Batch  # its tasks are places
    fades: Floats  # (n,) factor by which everything fades before each sample; 1 once that is done
    stored: Floats  # (n,) workspace: weights in stored units
    mean: Floats  # (n,) forecasts
    std: Floats  # (n,) their standard deviations, or empty
    robust: float  # deviations beyond which an innovation weighs less; 0 for none
    tolerance: float


@compiled
def learnable(local: Local, batch: Batch, first: int, end: int) -> int:
    """The first sample of a group that is not finite, overflows, or for which P has no correct digits; else `end`."""
    for i in range(first, end):
        t, x, weight = batch.tasks[i], batch.X[i], batch.weights[i]
        P, stored = local.covariance[t], weight * local.totals[0, SCALE]
        doubt = stored * rounding(P, 0, x)
        if doubt > MOST_DOUBT and doubt > MOST_DOUBT * (1.0 + stored * quadratic(P, 0, x)):
            return i
        e = batch.y[i] - dot(local.weights[t], x)
        size = max(weight, 1.0) * max(e * e, dot(x, x))
        if not (0.0 <= weight <= LARGEST_INNOVATION and abs(e) <= LARGEST_INNOVATION and size <= LARGEST_INNOVATION**2):
            return i
    return end


@compiled
def learn_inplace(R: Floats, P: Floats, x: Floats, e: float, weight: float, g: Floats, variance: float) -> None:
    """Add a sample, of a weight in stored units, to its task's R and P, by e = y − x'w, g = P x and x'g; spoils g."""
    root = np.sqrt(weight / (1.0 + weight * variance))
    for k in range(x.size):
        R[k] += weight * e * x[k]
        g[k] *= root
    for k in range(x.size):
        for j in range(x.size):
            P[k, j] -= g[k] * g[j]  # a product of two: P stays symmetric to the bit
    for k in range(x.size):
        if not P[k, k] > 0.0:  # by rounding
            P[k, k] = ROUNDING * g[k] * g[k]


@unlocked
def learn_range_inplace(local: Local, room: Room, job: Job, begin: int, end: int, first: int, last: int) -> None:
    """Learn those of the samples `begin` to `end` whose task is one of `first` to `last`; sums for `account_inplace`.

    Where `robust` is above 0, an innovation of more deviations is given the weight that makes it one of that many, by
    the errors of its task, and of all tasks when the group began.
    """
    X, y, tasks, weights, robust = job.batch.X, job.batch.y, job.batch.tasks, job.batch.weights, job.robust
    W, R, P, errors, g = local.weights, local.residual, local.covariance, local.errors, np.empty(X.shape[1])
    for chunk in range(first // CHUNK, -(-last // CHUNK)):
        for column in range(room.sums.shape[1]):
            room.sums[chunk, column] = 0.0
    for i in range(begin, end):
        t, weight = tasks[i], job.stored[i]
        if not (first <= t < last and weight > 0.0):
            continue
        sums, x = room.sums[t // CHUNK], X[i]
        e = y[i] - dot(W[t], x)
        variance = max(apply_inplace(g, P[t], x), 0.0)
        size = abs(e)
        sums[WEIGHTS] += weight
        sums[SAMPLES] += 1.0
        for k in range(x.size):
            sums[INPUTS + k] += x[k] * x[k]
        if robust > 0.0:
            square = weights[i] * e * e / (1.0 + weight * variance)
            most = robust * robust * typical_square(errors, t)
            unusual = square > most > 0.0
            if unusual:
                square, weight = most, 1.0 / (weights[i] * e * e / (most * weight) - variance)
                size = np.sqrt(most * (1.0 + weight * variance) / weights[i])
            learn_error_inplace(errors[t], square, unusual)
            sums[RATIOS] += square
            sums[REDUCED] += unusual
        learn_inplace(R[t], P[t], x, e, weight, g, variance)
        sums[SQUARES] += weight * e * e
        sums[SIZES] += size


@compiled
def weigh_inplace(job: Job, first: int, end: int, scale: float) -> tuple[int, float]:
    """Find weights in stored units, up to a fade that must be folded in; return the sample after it, and the scale."""
    for i in range(first, end):
        if scale / job.fades[i] > FOLD:
            return i, scale
        scale /= job.fades[i]
        job.stored[i] = job.batch.weights[i] * scale
    return end, scale


@compiled
def account_inplace(local: Local, sums: Floats, scale: float, robust: float) -> None:
    """Add the sums of chunks, whose samples were learned up to `scale`, to the totals."""
    totals, pooled = local.totals[0], local.errors[-1]
    fade_evidence_inplace(totals, totals[SCALE] / scale)
    totals[SCALE] = scale
    totals[RESIDUAL] += total_of(sums, SQUARES) / scale
    totals[COUNT] += total_of(sums, WEIGHTS) / scale
    many = total_of(sums, SAMPLES)
    if many > 0.0:
        totals[LATELY] = min(totals[LATELY] + many, local.diagonal.size)
        share = min(many / totals[LATELY], 1.0)
        totals[TYPICAL] += (total_of(sums, SIZES) / many - totals[TYPICAL]) * share
        for k in range(local.squares.size):
            local.squares[k] += (total_of(sums, INPUTS + k) / many - local.squares[k]) * share
    if robust > 0.0 and many > 0.0:
        pooled[SEEN] = min(pooled[SEEN] + many, ERROR_WINDOW)
        pooled[SQUARE] += (total_of(sums, RATIOS) / many - pooled[SQUARE]) * min(many / pooled[SEEN], 1.0)
        pooled[UNUSUAL] += total_of(sums, REDUCED)


@compiled
def fade_inplace(local: Local, factor: float) -> bool:
    """Fold a fade in before the next sample is learned, so that P keeps its digits; whether the prior was held."""
    fade_evidence_inplace(local.totals[0], factor)
    local.totals[0, SCALE] /= factor
    fold_inplace(local)
    return hold_inplace(local)


@compiled
def fold_inplace(local: Local) -> None:
    """P ← scale P, R ← R / scale, and the same for what is left of the prior; scale ← 1."""
    P, R, totals = local.covariance, local.residual, local.totals[0]
    scale = totals[SCALE]
    for t in range(R.shape[0]):
        for k in range(R.shape[1]):
            R[t, k] /= scale
            for j in range(R.shape[1]):
                P[t, k, j] *= scale
    totals[PRIOR] /= scale
    totals[SCALE] = 1.0


@compiled
def hold_inplace(local: Local) -> bool:
    """Put back what the prior has lost below its PRIOR_FLOOR, without moving w; whether it had lost any.

    The same is put back for all tasks; edges of tasks that joined late, and have faded less, go on fading to that.
    """
    W, R, totals = local.weights, local.residual, local.totals[0]
    left, more = totals[PRIOR], PRIOR_FLOOR - totals[PRIOR]
    if not more > 0.0:
        return False
    totals[PRIOR] = PRIOR_FLOOR
    for m in range(local.links.size):
        local.links[m] = (left * local.links[m] + more * local.first_links[m]) / PRIOR_FLOOR
    d = W.shape[1]
    for t in range(W.shape[0]):
        local.diagonal[t] = (left * local.diagonal[t] + more * local.first_diagonal[t]) / PRIOR_FLOOR
        for k in range(d):
            pull = local.first_diagonal[t] * W[t, k]
            for m in range(local.starts[t], local.starts[t + 1]):
                pull += local.first_links[m] * W[local.neighbours[m], k]
            R[t, k] -= more * pull
            totals[RESIDUAL] += more * pull * W[t, k]
        information = local.covariance[t].copy()
        if invert_inplace(information):
            for k in range(d):
                information[k, k] += more * local.first_diagonal[t]
            if invert_inplace(information):
                for k in range(d):
                    for j in range(d):
                        local.covariance[t, k, j] = information[k, j]
    return True


@compiled
def variance_of(local: Local, t: int, x: Floats) -> float:
    """A lower bound of x'V x in stored units; V = (P⁻¹ − S)⁻¹ is t's covariance if all but its neighbours are known.

    S = Σ link² P_j is the information lost because the neighbours are not. For any z, x'V x ≥ (x'z)² / z'V⁻¹z; here
    z = P x, which needs no inverse.
    """
    z = np.empty(x.size)
    own = apply_inplace(z, local.covariance[t], x)
    lost = 0.0
    for m in range(local.starts[t], local.starts[t + 1]):
        link = local.totals[0, PRIOR] * local.links[m]
        lost += link * link * quadratic(local.covariance[local.neighbours[m]], 0, z)
    return own / (1.0 - lost / own) if lost < own else own  # else rounding has made V⁻¹ indefinite


@unlocked
def forecast_inplace(local: Local, X: Floats, tasks: Ints, mean: Floats, std: Floats, first: int, end: int) -> None:
    """Predict samples `first` to before `end` into `mean`, and their deviations into `std` unless it is empty."""
    for i in range(first, end):
        mean[i] = dot(local.weights[tasks[i]], X[i])
        if std.size:
            std[i] = deviation(local.totals[0], local.totals[0, SCALE] * variance_of(local, tasks[i], X[i]))


def learn_group(
    forecast: Callable[..., None],
    learn: Callable[..., None],
    solve: Callable[..., int],
    local: Local,
    room: Room,
    job: Job,
    first: int,
    end: int,
) -> int:
    """Predict samples `first` to before `end`, then learn them; return where it ended, before what can't be learned.

    `forecast`, `learn` and `solve` are `forecast_inplace`, `learn_range_inplace` and `solve_inplace`, or run what those
    do on threads.
    """
    batch, n, held, begin = job.batch, local.diagonal.size, False, first
    forecast(local, batch.X, batch.tasks, job.mean, job.std, first, end)
    stop = learnable(local, batch, first, end)
    while begin < stop:  # learn without moving w
        after, scale = weigh_inplace(job, begin, stop, local.totals[0, SCALE])
        if after > begin:
            tasks = batch.tasks[begin:after]
            low, high = tasks.min() // CHUNK, tasks.max() // CHUNK + 1  # of one sample, one chunk
            learn(local, room, job, begin, after, low * CHUNK, high * CHUNK)
            account_inplace(local, room.sums[low:high], scale, job.robust)
        if after < stop:
            held |= fade_inplace(local, job.fades[after])
            job.fades[after] = 1.0
        begin = after
    if stop > first:
        limit, changed = limit_of(local, job.tolerance), batch.tasks[first:stop]
        large = held or end - first > SOLVE_FROM * n
        if large or push_inplace(local, room, limit / n, changed, MOST_RELAXATIONS * n) < 0:
            solve(local, room, limit, MOST_ITERATIONS)
    return stop


_learn_group = inlined(learn_group)


@compiled
def progressive_inplace(local: Local, room: Room, job: Job, group: int, last: int) -> int:
    """Predict, then learn, groups `group` to before `last`; return where it ended, before what can't be learned."""
    ends = job.batch.ends
    first = ends[group - 1] if group > 0 else 0
    for g in range(group, last):
        stop = _learn_group(forecast_inplace, learn_range_inplace, solve_inplace, local, room, job, first, ends[g])
        first = stop
        if stop < ends[g]:
            break
    return first
