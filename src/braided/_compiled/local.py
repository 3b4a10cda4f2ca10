"""MT-WRLS for many tasks on a sparse graph: the weights of the batch solution, held within a tolerance.

The weights w solve K w = ψ, where K = blkdiag Φ_t + C ⊗ I holds the information Φ_t of each task's samples and that of
the prior, C = penalty · A, which is sparse. Neither Φ_t nor ψ is stored, but what the solution is found with:

    W  weights (N, d), as they are
    R  residual (N, d), ψ − K w: zero at the solution
    P  covariance (N, d, d), P_t = (Φ_t + C_tt I)⁻¹: that of a task whose neighbours' weights are known

A sample of task t changes R_t, and P_t by the recursion of one small filter. Then one of two solvers (solve.py) moves w
until little is left to be moved: P_t R_t is what a task's weights would move by next, and forecasts, on the mean over
usual inputs, may then move by no more than `tolerance` of the usual innovation. That hangs neither on the units of
inputs, targets and sample weights, nor on levels, nor on how strong the prior is.

Uniform forgetting fades K, ψ and R alike, which moves no weight. What is stored does not fade; samples count the more
instead: K = K_stored / scale, P = scale · P_stored, until the scale is folded in.
"""

import numpy as np

from braided._compiled import compiled, unlocked
from braided._compiled.linear import dot, invert_inplace
from braided._compiled.solve import (
    CHUNK,
    LATELY,
    MOST,
    PRIOR,
    USUAL,
    Local,
    Room,
    apply_inplace,
    limit_of,
    push_inplace,
    solve_inplace,
    total_of,
)
from braided._compiled.step import (
    COUNT,
    DOUBT,
    FLOOR,
    FOLD,
    RESIDUAL,
    ROUNDING,
    SCALE,
    SEEN,
    SQUARE,
    UNUSUAL,
    WINDOW,
    deviation,
    fade_evidence_inplace,
    fresh_errors,
    fresh_totals,
    learn_error_inplace,
    quadratic,
    rounding,
    usual_square,
)
from braided.types import Floats, Ints

LARGE = 1e70  # no value, and no innovation, may be larger: squares of products of two must not overflow
ROUND = 16  # a group of more samples than a sixteenth of the tasks is solved as a round
PATIENCE = 4  # relaxations for each task, which cost about as much as conjugate gradients that take over then
SQUARES, SIZES, WEIGHTS, RATIOS, REDUCED, SAMPLES, INPUTS = range(7)  # what chunks sum; last, inputs² by feature


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


@compiled
def learnable(local: Local, X: Floats, y: Floats, tasks: Ints, weights: Floats) -> int:
    """How many samples of a group come before the first that is not finite, overflows, or finds P without digits."""
    for i in range(tasks.size):
        x, P, weight = X[i], local.covariance[tasks[i]], weights[i]
        stored = weight * local.totals[0, SCALE]
        doubt = stored * rounding(P, 0, x)
        if doubt > DOUBT and doubt > DOUBT * (1.0 + stored * quadratic(P, 0, x)):
            return i
        e = y[i] - dot(local.weights[tasks[i]], x)
        if not (0.0 <= weight <= LARGE and abs(e) <= LARGE and max(weight, 1.0) * max(e * e, dot(x, x)) <= LARGE**2):
            return i
    return tasks.size


@compiled
def learn_inplace(R: Floats, P: Floats, x: Floats, e: float, weight: float, g: Floats, variance: float) -> None:
    """Take a sample, of a weight in stored units, into its task's R and P, by e = y − x'w, g = P x and x'g.

    g is spoilt.
    """
    root = np.sqrt(weight / (1.0 + weight * variance))
    for k in range(x.size):
        R[k] += weight * e * x[k]
        g[k] *= root
    for k in range(x.size):
        for j in range(x.size):
            P[k, j] -= g[k] * g[j]  # a product of two: P stays symmetric to the bit
    for k in range(x.size):
        if not P[k, k] > 0.0:  # rounding has made it so
            P[k, k] = ROUNDING * g[k] * g[k]


@unlocked
def learn_range_inplace(
    local: Local,
    room: Room,
    X: Floats,
    y: Floats,
    tasks: Ints,
    weights: Floats,
    stored: Floats,
    robust: float,
    first: int,
    last: int,
) -> None:
    """Learn the samples of tasks `first` to `last`, whose weights are `stored` in such units; sums for `account`.

    Where `robust` is above 0, an innovation of more than so many deviations is given the weight that makes it one of
    just so many, by the errors of its task, and of all when the group began.
    """
    W, R, P, errors, g = local.weights, local.residual, local.covariance, local.errors, np.empty(X.shape[1])
    for chunk in range(first // CHUNK, -(-last // CHUNK)):
        for column in range(room.sums.shape[1]):
            room.sums[chunk, column] = 0.0
    for i in range(tasks.size):
        t, weight = tasks[i], stored[i]
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
            most = robust * robust * usual_square(errors, t)
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
def weigh_inplace(stored: Floats, weights: Floats, fades: Floats, first: int, scale: float) -> tuple[int, float]:
    """stored ← weights in stored units, up to before a fade that should be folded in; how many, and the scale."""
    for i in range(first, weights.size):
        if scale / fades[i] > FOLD:
            return i, scale
        scale /= fades[i]
        stored[i] = weights[i] * scale
    return weights.size, scale


@compiled
def account_inplace(local: Local, sums: Floats, scale: float, robust: float) -> None:
    """Take what chunks learned up to `scale` into the totals."""
    totals, pooled = local.totals[0], local.errors[-1]
    fade_evidence_inplace(totals, totals[SCALE] / scale)
    totals[SCALE] = scale
    totals[RESIDUAL] += total_of(sums, SQUARES) / scale
    totals[COUNT] += total_of(sums, WEIGHTS) / scale
    many = total_of(sums, SAMPLES)
    if many > 0.0:
        totals[LATELY] = min(totals[LATELY] + many, local.diagonal.size)
        share = min(many / totals[LATELY], 1.0)
        totals[USUAL] += (total_of(sums, SIZES) / many - totals[USUAL]) * share
        for k in range(local.squares.size):
            local.squares[k] += (total_of(sums, INPUTS + k) / many - local.squares[k]) * share
    if robust > 0.0 and many > 0.0:
        pooled[SEEN] = min(pooled[SEEN] + many, WINDOW)
        pooled[SQUARE] += (total_of(sums, RATIOS) / many - pooled[SQUARE]) * min(many / pooled[SEEN], 1.0)
        pooled[UNUSUAL] += total_of(sums, REDUCED)


@compiled
def fade_inplace(local: Local, factor: float) -> bool:
    """Fold a fade in before what follows is learned, so that P keeps its digits; whether the prior was held."""
    fade_evidence_inplace(local.totals[0], factor)
    local.totals[0, SCALE] /= factor
    fold_inplace(local)
    return hold_inplace(local)


@compiled
def fold_inplace(local: Local) -> None:
    """P ← scale P, R ← R / scale, and what is left of the prior alike; scale ← 1."""
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
    """Put back what the prior has lost below its FLOOR, without moving w; whether it had.

    As much is put back for all; edges that came late, and have not faded as far, go on fading to that.
    """
    W, R, totals = local.weights, local.residual, local.totals[0]
    left, more = totals[PRIOR], FLOOR - totals[PRIOR]
    if not more > 0.0:
        return False
    totals[PRIOR] = FLOOR
    for m in range(local.links.size):
        local.links[m] = (left * local.links[m] + more * local.first_links[m]) / FLOOR
    d = W.shape[1]
    for t in range(W.shape[0]):
        local.diagonal[t] = (left * local.diagonal[t] + more * local.first_diagonal[t]) / FLOOR
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

    S = Σ link² P_j is what is lost as the neighbours are not. For any z, x'V x ≥ (x'z)² / z'V⁻¹z; here z = P x, which
    needs no inverse.
    """
    z = np.empty(x.size)
    own = apply_inplace(z, local.covariance[t], x)
    lost = 0.0
    for m in range(local.starts[t], local.starts[t + 1]):
        link = local.totals[0, PRIOR] * local.links[m]
        lost += link * link * quadratic(local.covariance[local.neighbours[m]], 0, z)
    return own / (1.0 - lost / own) if lost < own else own  # else rounding has made V⁻¹ indefinite


@unlocked
def forecast_inplace(mean: Floats, std: Floats, local: Local, X: Floats, tasks: Ints, first: int, end: int) -> None:
    """Forecast the samples from `first` to before `end` into `mean`, and their deviations into `std` unless empty."""
    for i in range(first, end):
        mean[i] = dot(local.weights[tasks[i]], X[i])
        if std.size:
            std[i] = deviation(local.totals[0], local.totals[0, SCALE] * variance_of(local, tasks[i], X[i]))


@compiled
def absorb_inplace(
    local: Local, room: Room, X: Floats, y: Floats, tasks: Ints, weights: Floats, fades: Floats, robust: float
) -> bool:
    """Learn samples without moving w; whether the prior was held."""
    stored, left = np.empty(weights.size), fades.copy()
    first, held = 0, False
    while first < weights.size:
        end, scale = weigh_inplace(stored, weights, left, first, local.totals[0, SCALE])
        if end > first:
            low, high = tasks[first:end].min() // CHUNK, tasks[first:end].max() // CHUNK + 1  # of one sample, one chunk
            samples = (X[first:end], y[first:end], tasks[first:end], weights[first:end], stored[first:end])
            learn_range_inplace(local, room, *samples, robust, low * CHUNK, high * CHUNK)
            account_inplace(local, room.sums[low:high], scale, robust)
        if end < weights.size:
            held |= fade_inplace(local, left[end])
            left[end] = 1.0
        first = end
    return held


@compiled
def progressive_inplace(
    local: Local,
    room: Room,
    X: Floats,
    y: Floats,
    tasks: Ints,
    weights: Floats,
    ends: Ints,
    fades: Floats,
    robust: float,
    tolerance: float,
    mean: Floats,
    std: Floats,
) -> int:
    """Forecast, then learn, group by group (`ends` holds their ends); the number of samples learned.

    `fades` (n,) is what everything fades by before each sample. It ends before the first that cannot be learned.
    """
    n = local.diagonal.size
    first = 0
    for end in ends:
        forecast_inplace(mean, std, local, X, tasks, first, end)
        stop = first + learnable(local, X[first:end], y[first:end], tasks[first:end], weights[first:end])
        if stop == first and first < end:
            return first
        samples = (X[first:stop], y[first:stop], tasks[first:stop], weights[first:stop], fades[first:stop])
        held = absorb_inplace(local, room, *samples, robust)
        limit = limit_of(local, tolerance)
        if held or ROUND * (end - first) > n or push_inplace(local, room, limit / n, samples[2], PATIENCE * n) < 0:
            solve_inplace(local, room, limit, MOST)
        first = stop
        if stop < end:
            break
    return first
