"""Recursive least squares on one stored triangle, for F filters that each serve an equal share of the tasks.

F = 1 is MT-WRLS (one filter of size dT serves all), F = T is WRLS (one filter of size d per task).

Letters, as in the paper: P covariance, w weights, g = P z gain direction, e innovation, z stacked input.
The stored P is the true one divided by `scale`, so that uniform forgetting costs one division; only its lower
triangle is read or written, which keeps it symmetric for ever (rounding asymmetry would grow like 1/forgetting^i).
"""

from typing import NamedTuple

import numpy as np

from braided._compiled import compiled
from braided._compiled.linear import dot, invert_inplace
from braided.types import Floats, Ints

SCALE, RESIDUAL, COUNT = 0, 1, 2  # the columns of Filters.totals
SQUARE, SEEN, UNUSUAL = 0, 1, 2  # the columns of Filters.errors
FOLD = 2.0**10  # fold the scale into P, and look whether it winds up
BOUND = 1e8  # times the prior variance, beyond which it does
FLOOR = 1e-6  # of the prior, which comes back then
LARGEST = 1e300  # no entry of P grows beyond where there is no guard
HUGE = 1e140  # no value, and no step of a weight, may be larger: squares of what follows must not overflow
LITTLE = 1e-3  # of a sample, what an expected noise counts for
TINY = 1e-100  # evidence does not fade below
ROUNDING = 2.0**-52
POOLED = 10.0  # as many errors count those of all tasks in the scale that a robust step goes by
WINDOW = 200.0  # errors that it remembers
TOLERANCE = 1e-2  # how much of a forecast's variance may be rounding before the recursion is no longer trusted


def fresh_totals(n_filters: int, noise: float = 0.0) -> Floats:
    """Return the totals before the first sample; noise that is expected, a deviation, counts as a little of one."""
    return np.tile([1.0, LITTLE * noise * noise, LITTLE if noise > 0.0 else 0.0], (n_filters, 1))


def fresh_errors(n_tasks: int, noise: float = 0.0) -> Floats:
    """Return the errors before the first sample, of each task and of all."""
    errors = np.zeros((n_tasks + 1, 3))
    errors[-1, [SQUARE, SEEN]] = noise * noise, LITTLE if noise > 0.0 else 0.0
    return errors


def symmetric(lower: Floats) -> Floats:
    """Return the matrix, or matrices, whose lower triangle is given."""
    return np.tril(lower) + np.tril(lower, -1).swapaxes(-1, -2)


def noise_variance(totals: Floats) -> Floats:
    """Return the estimated variance of the noise of each filter; infinite before its first sample."""
    seen = totals[:, COUNT] > 0.0
    return np.where(seen, totals[:, RESIDUAL] / np.where(seen, totals[:, COUNT], 1.0), np.inf)


class Filters(NamedTuple):
    """State of F filters of size n = d T / F."""

    weights: Floats  # (F, n) the tasks' weights, stacked
    covariance: Floats  # (F, n, n) lower triangle of P / scale
    totals: Floats  # (F, 3) scale of P, minimum of the objective, effective number of samples
    base: Floats  # (F, n, n) scale times the information that P started from
    gained: Floats  # (T, d, d) scale times what samples have added to it, task by task
    guarded: Ints  # (F,) how often P was made anew from the information
    errors: (
        Floats  # (T + 1, 3) if robust: mean of innovation² / variance, how many, how many unusual; of all at the end
    )


def fresh_filters(weights: Floats, covariance: Floats, information: Floats, d: int, noise: float = 0.0) -> Filters:
    """Return F filters (F, n) with their covariances and informations (F, n, n), before the first sample."""
    n_filters, n = weights.shape
    gained = np.zeros((n_filters * n // d, d, d))
    return Filters(
        weights=weights,
        covariance=np.tril(covariance),
        totals=fresh_totals(n_filters, noise),
        base=information,
        gained=gained,
        guarded=np.zeros(n_filters, np.int64),
        errors=fresh_errors(len(gained), noise),
    )


def variances(covariance: Floats, totals: Floats) -> Floats:
    """Return the diagonals of P, of all filters."""
    diagonals: Floats = covariance.diagonal(axis1=1, axis2=2) * totals[:, SCALE, None]
    return diagonals.ravel()


@compiled
def gain_inplace(g: Floats, P: Floats, n: int, start: int, x: Floats) -> None:
    """g ← P z, for z that holds x from `start` on and zeros elsewhere: reads d columns of P only."""
    stop = start + x.size
    g[:stop] = 0.0
    for k in range(x.size):
        row = P[start + k]
        for j in range(start + k):
            g[j] += row[j] * x[k]
        g[start + k] += dot(row[start : start + k], x[:k]) + row[start + k] * x[k]
    for i in range(stop, n):
        g[i] = dot(P[i, start:stop], x)


@compiled
def quadratic(P: Floats, start: int, x: Floats) -> float:
    """z' P z, from the diagonal block of P that belongs to x."""
    total = 0.0
    for k in range(x.size):
        row = P[start + k]
        total += x[k] * (2.0 * dot(row[start : start + k], x[:k]) + row[start + k] * x[k])
    return total


@compiled
def rounding(P: Floats, start: int, x: Floats) -> float:
    """Bound of the rounding in z' P z; it outgrows z' P z itself where P winds up in directions nobody visits."""
    total = 0.0
    for k in range(x.size):
        total += abs(x[k]) * np.sqrt(P[start + k, start + k])
    return ROUNDING * total * total


@compiled
def deviation(totals: Floats, variance: float) -> float:
    """Standard deviation of a forecast, √(noise variance · (1 + z'Pz)); infinite before the first sample."""
    if totals[COUNT] <= 0.0 or np.isnan(variance):
        return np.inf
    return np.sqrt(max(totals[RESIDUAL], 0.0) / totals[COUNT] * max(1.0 + variance, 0.0))


@compiled
def limited(value: float) -> float:
    """An entry of P, no larger than there is arithmetic for."""
    return min(max(value, -LARGEST), LARGEST)


@compiled
def fade_own_inplace(P: Floats, g: Floats, n: int, start: int, d: int, own: float) -> None:
    """P ← D P D and g ← D P D z, with 1/√own on the task's own places of the diagonal D and 1 elsewhere."""
    stop = start + d
    root = 1.0 / np.sqrt(own)
    for i in range(n):
        g[i] *= root * root if start <= i < stop else root
    for i in range(start, n):
        if i < stop:
            for j in range(i + 1):
                P[i, j] = limited(P[i, j] * root)
        for j in range(start, min(stop, i + 1)):
            P[i, j] = limited(P[i, j] * root)


@compiled
def account_inplace(filters: Filters, f: int, task: int, start: int, x: Floats, added: float, own: float) -> None:
    """Take the sample that filter f has just learned into the information, after what is known of its task fades."""
    n, d = filters.weights.shape[1], x.size
    scale = filters.totals[f, SCALE]
    gained = filters.gained[task]
    if own != 1.0:
        root = np.sqrt(own)
        base = filters.base[f]
        for k in range(start, start + d):
            for j in range(n):
                base[k, j] *= root
                base[j, k] *= root
        gained *= own
    for k in range(d):
        for j in range(d):
            gained[k, j] += added * scale * x[k] * x[j]


@compiled
def rebuild_inplace(filters: Filters, f: int, d: int, relation: Floats) -> bool:
    """Make P of filter f anew from the information, with a little of the prior `relation` ⊗ I put back.

    False, and nothing changed, where even that is not positive definite.
    """
    n = filters.weights.shape[1]
    m = n // d
    w, totals = filters.weights[f], filters.totals[f]
    information = filters.base[f] / totals[SCALE]
    pull = np.zeros(n)
    for t in range(m):
        block = filters.gained[f * m + t] / totals[SCALE]
        for k in range(d):
            for j in range(d):
                information[t * d + k, t * d + j] += block[k, j]
            for s in range(m):
                more = FLOOR * relation[f, t, s]
                information[t * d + k, s * d + k] += more
                pull[t * d + k] += more * w[s * d + k]
    if not invert_inplace(information):
        return False
    for i in range(n):
        w[i] -= dot(information[i], pull)
        for j in range(i + 1):
            filters.covariance[f, i, j] = information[i, j]
    for t in range(m):
        filters.gained[f * m + t] /= totals[SCALE]
        for s in range(m):
            for k in range(d):
                filters.base[f, t * d + k, s * d + k] += FLOOR * relation[f, t, s] * totals[SCALE]
    filters.base[f] /= totals[SCALE]
    totals[SCALE] = 1.0
    filters.guarded[f] += 1
    return True


@compiled
def wound_up(P: Floats, limits: Floats, d: int, start: int, stop: int) -> bool:
    """Whether a variance between `start` and `stop` is far beyond that of the prior, one of `limits` per task."""
    for i in range(start, stop):  # noqa: SIM110 (compiled)
        if not P[i, i] <= BOUND * limits[i // d]:
            return True
    return False


@compiled
def settle_inplace(filters: Filters, f: int, d: int, relation: Floats, limits: Floats) -> None:
    """Fold the scale of filter f; where P has wound up far beyond the prior variances (`limits`), make it anew."""
    P, totals = filters.covariance[f], filters.totals[f]
    scale = totals[SCALE]
    fold_inplace(P, totals, filters.weights.shape[1])
    if relation.size:
        m = filters.weights.shape[1] // d
        filters.base[f] /= scale
        for t in range(m):
            filters.gained[f * m + t] /= scale
        if wound_up(P, limits[f], d, 0, m * d):
            rebuild_inplace(filters, f, d, relation)


@compiled
def usual_square(errors: Floats, task: int) -> float:
    """The square that an innovation usually has, over its variance: of the task's own, and a little of all tasks'."""
    own, pooled = errors[task], errors[-1]
    return (own[SEEN] * own[SQUARE] + POOLED * pooled[SQUARE]) / (own[SEEN] + POOLED)


@compiled
def learn_errors_inplace(errors: Floats, task: int, square: float, unusual: bool) -> None:
    """Take up the square of an innovation over its variance, for its task and for all."""
    for row in (errors[task], errors[-1]):
        row[SEEN] = min(row[SEEN] + 1.0, WINDOW)
        row[SQUARE] += (square - row[SQUARE]) / row[SEEN]
        row[UNUSUAL] += unusual


@compiled
def learn_inplace(
    w: Floats,
    P: Floats,
    totals: Floats,
    g: Floats,
    n: int,
    start: int,
    x: Floats,
    y: float,
    weight: float,
    fade: Floats,
    errors: Floats,
    task: int,
    robust: float,
) -> float:
    """Forget, then learn one sample; its weight, or −1, and nothing changed, where the arithmetic breaks down.

    `fade` is what all tasks, on top of that the sample's own, and what is known of the sample's direction alone fade
    by; g is room to work in. Where `robust` is above 0, an innovation of more than so many deviations is given the
    weight that makes it one of just so many, by the `errors` of its task so far.
    """
    everything, own, along = fade[0], fade[1], fade[2]
    stop = start + x.size
    gain_inplace(g, P, n, start, x)
    scale = totals[SCALE] / everything
    variance = scale / own * dot(g[start:stop], x)
    s = along + weight * variance
    e = y - dot(w[start:stop], x)  # Eq. 16
    square, given = along * weight * e * e / s, weight
    if robust > 0.0:
        most = robust * robust * usual_square(errors, task)
        if square > most > 0.0:
            weight = along / (along * e * e / most - variance)
            s = along + weight * variance
            square = most
    c = weight * scale / s  # Eq. 15, k(n) = c g
    loss = c  # of P along g
    if along < 1.0 and weight * variance > 0.0:
        loss = c * (1.0 - (1.0 - along) / (weight * variance))
    largest = 0.0
    for i in range(n):
        largest = max(largest, abs(g[i]))
    if not (max(weight, 1.0) * dot(x, x) <= HUGE * HUGE and weight * abs(y) <= HUGE):
        return -1.0
    if not (0.0 < s <= LARGEST and square <= LARGEST and abs(loss) * largest * largest <= LARGEST):
        return -1.0
    if not c * abs(e) * largest <= own * HUGE:  # of what a weight would move by
        return -1.0
    if not rounding(P, start, x) * scale / own <= TOLERANCE * (along + max(variance, 0.0)):
        return -1.0
    if own != 1.0:
        fade_own_inplace(P, g, n, start, x.size, own)
    totals[SCALE] = scale
    evidence = everything
    if own * along < 1.0:
        evidence *= (own * along) ** (x.size / max(n, 1))  # of the task's own share
    fade_evidence_inplace(totals, evidence)
    totals[RESIDUAL] += square
    totals[COUNT] += given
    if robust > 0.0 and given > 0.0:
        learn_errors_inplace(errors, task, square, weight < given)
    for i in range(n):
        w[i] += c * e * g[i]  # Eq. 17
    for i in range(n):
        factor = loss * g[i]
        row = P[i]
        for j in range(i + 1):
            row[j] -= factor * g[j]  # Eq. 18
    for i in range(n):
        if not P[i, i] > 0.0:  # rounding has made it so
            P[i, i] = ROUNDING * loss * g[i] * g[i]
    return weight


@compiled
def rescue_inplace(
    filters: Filters,
    f: int,
    relation: Floats,
    g: Floats,
    start: int,
    x: Floats,
    y: float,
    weight: float,
    fade: Floats,
    robust: float,
) -> float:
    """Learn a sample that was refused, by a P made anew; what `learn_inplace` returns."""
    n, d = filters.weights.shape[1], x.size
    m = n // d
    w, P, totals, base = filters.weights[f], filters.covariance[f], filters.totals[f], filters.base[f]
    gained = filters.gained[f * m : (f + 1) * m]
    before = w.copy(), P.copy(), totals.copy(), base.copy(), gained.copy(), filters.guarded[f]
    if rebuild_inplace(filters, f, d, relation):
        task = f * m + start // d
        counted = learn_inplace(w, P, totals, g, n, start, x, y, weight, fade, filters.errors, task, robust)
        if counted >= 0.0:
            return counted
        w[:], P[:], totals[:], base[:], gained[:], filters.guarded[f] = before
    return -1.0


@compiled
def fold_inplace(P: Floats, totals: Floats, n: int) -> None:
    """P ← scale P, scale ← 1."""
    for i in range(n):
        for j in range(i + 1):
            P[i, j] = limited(P[i, j] * totals[SCALE])
    totals[SCALE] = 1.0


@compiled
def fade_evidence_inplace(totals: Floats, factor: float) -> None:
    """Let the evidence of the noise fade; what is estimated from it stays however long nothing comes."""
    if totals[COUNT] * factor > TINY:
        totals[RESIDUAL] *= factor
        totals[COUNT] *= factor


@compiled
def move_inplace(filters: Filters, d: int, factor: float, shrink: float, noise: Floats) -> None:
    """Let all information fade by `factor`, then w ← shrink w, P ← shrink² P + noise ⊗ I."""
    n = filters.weights.shape[1]
    for f in range(filters.weights.shape[0]):
        P, totals = filters.covariance[f], filters.totals[f]
        totals[SCALE] *= shrink * shrink / factor
        fade_evidence_inplace(totals, factor)
        for i in range(n):
            filters.weights[f, i] *= shrink
        for t in range(n // d):
            for s in range(t + 1):
                more = noise[f, t, s] / totals[SCALE]
                for k in range(d):
                    P[t * d + k, s * d + k] += more


@compiled
def predict(filters: Filters, X: Floats, tasks: Ints, mean: Floats, std: Floats) -> None:
    """Forecast each sample into `mean`, and its deviation into `std` unless that is empty."""
    d = X.shape[1]
    share = filters.weights.shape[1] // d
    for i in range(tasks.size):
        f, start = tasks[i] // share, tasks[i] % share * d
        mean[i] = dot(filters.weights[f, start : start + d], X[i])
        if std.size:
            totals = filters.totals[f]
            std[i] = deviation(totals, totals[SCALE] * quadratic(filters.covariance[f], start, X[i]))


@compiled
def progressive_inplace(
    filters: Filters,
    X: Floats,
    y: Floats,
    tasks: Ints,
    weights: Floats,
    ends: Ints,
    fades: Floats,
    moves: Floats,
    shrink: float,
    noise: Floats,
    relation: Floats,
    limits: Floats,
    robust: float,
    mean: Floats,
    std: Floats,
) -> int:
    """Forecast, then learn, group by group (`ends` holds their ends); the number of samples learned.

    `fades` (n, 3) is what everything, the sample's own task, and its direction fades by before each sample; where
    `moves` is above 0, all information fades by it, and all weights move, by `shrink` and `noise`. `relation` (F, m, m)
    is the information of the prior and `limits` (F, m) its variances, for the guard against wind-up; empty without.
    `robust` is the number of deviations beyond which an innovation weighs less, 0 for none.
    """
    d = X.shape[1]
    n = filters.weights.shape[1]
    g = np.empty(n)
    guard = relation.size > 0
    first = 0
    for end in ends:
        deviations = std[first:end] if std.size else std
        predict(filters, X[first:end], tasks[first:end], mean[first:end], deviations)
        for i in range(first, end):
            f, start = tasks[i] * d // n, tasks[i] * d % n
            w, P, totals = filters.weights[f], filters.covariance[f], filters.totals[f]
            if moves[i] > 0.0:
                move_inplace(filters, d, moves[i], shrink, noise)
                for other in range(filters.weights.shape[0]):
                    if not 1.0 / FOLD < filters.totals[other, SCALE] < FOLD:
                        settle_inplace(filters, other, d, relation, limits)
            sample = (start, X[i], y[i], weights[i], fades[i])
            weight = learn_inplace(w, P, totals, g, n, *sample, filters.errors, tasks[i], robust)
            if weight < 0.0 and guard:
                weight = rescue_inplace(filters, f, relation, g, *sample, robust)
            if weight < 0.0:
                return i
            if guard:
                account_inplace(filters, f, tasks[i], start, X[i], weight, fades[i, 1])
            if totals[SCALE] > FOLD or (guard and fades[i, 1] < 1.0 and wound_up(P, limits[f], d, start, start + d)):
                settle_inplace(filters, f, d, relation, limits)
        first = end
    return first
