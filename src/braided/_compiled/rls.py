"""Recursive least squares on one stored triangle, for F filters that each serve an equal share of the tasks.

F = 1 is MT-WRLS (one filter of size dT serves all), F = T is WRLS (one filter of size d per task).

Letters, as in the paper: P covariance, w weights, g = P z gain direction, e innovation, z stacked input.
The stored P is the true one divided by `scale`, so that uniform forgetting costs one division; only its lower
triangle is read or written, which keeps it symmetric for ever (rounding asymmetry would grow like 1/forgetting^i).
"""

from typing import NamedTuple

import numpy as np

from braided._compiled import compiled
from braided._compiled.linear import dot
from braided.types import Floats, Ints

SCALE, RESIDUAL, COUNT = 0, 1, 2  # the columns of Filters.totals
FOLD = 2.0**40  # fold the scale into P long before either leaves the range of a double
LARGEST = 1e300  # no entry of P grows beyond, however long a task is silent under forgetting
ROUNDING = 2.0**-52
TOLERANCE = 1e-2  # how much of a forecast's variance may be rounding before the recursion is no longer trusted


def fresh_totals(n_filters: int) -> Floats:
    """Return the totals before the first sample."""
    return np.tile([1.0, 0.0, 0.0], (n_filters, 1))


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
def fade_own_inplace(P: Floats, g: Floats, n: int, start: int, d: int, own: float) -> None:
    """P ← D P D and g ← D P D z, with 1/√own on the task's own places of the diagonal D and 1 elsewhere."""
    stop = start + d
    root = 1.0 / np.sqrt(own)
    for i in range(n):
        g[i] *= root * root if start <= i < stop else root
    for i in range(start, n):
        if i < stop:
            for j in range(i + 1):
                P[i, j] *= root
        for j in range(start, min(stop, i + 1)):
            P[i, j] *= root


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
    everything: float,
    own: float,
    along: float,
) -> bool:
    """Forget, then learn one sample; False, and nothing changed, where the arithmetic breaks down.

    `everything` and `own` are what all tasks, and on top of that the sample's own, fade by, `along` what is known of
    the sample's direction alone; g is room to work in.
    """
    stop = start + x.size
    gain_inplace(g, P, n, start, x)
    scale = totals[SCALE] / everything
    variance = scale / own * dot(g[start:stop], x)
    s = along + weight * variance
    e = y - dot(w[start:stop], x)  # Eq. 16
    c = weight * scale / s  # Eq. 15, k(n) = c g
    loss = c  # of P along g
    if along < 1.0 and weight * variance > 0.0:
        loss = c * (1.0 - (1.0 - along) / (weight * variance))
    largest = 0.0
    for i in range(n):
        largest = max(largest, abs(g[i]))
    if not (s > 0.0 and np.isfinite(s) and np.isfinite(weight * e * e / s) and np.isfinite(c * e / own * largest)):
        return False
    if not rounding(P, start, x) * scale / own <= TOLERANCE * (along + max(variance, 0.0)):
        return False
    evidence = everything
    if own != 1.0:
        fade_own_inplace(P, g, n, start, x.size, own)
        evidence *= own ** (x.size / n)  # the task's share of the evidence
    if along != 1.0:
        evidence *= along ** (x.size / n)
    totals[SCALE] = scale
    totals[RESIDUAL] = evidence * totals[RESIDUAL] + along * weight * e * e / s
    totals[COUNT] = evidence * totals[COUNT] + weight
    for i in range(n):
        w[i] += c * e * g[i]  # Eq. 17
    for i in range(n):
        factor = loss * g[i]
        row = P[i]
        for j in range(i + 1):
            row[j] -= factor * g[j]  # Eq. 18
    if scale > FOLD:
        fold_inplace(P, totals, n)
    return True


@compiled
def fold_inplace(P: Floats, totals: Floats, n: int) -> None:
    """P ← scale P, scale ← 1."""
    for i in range(n):
        for j in range(i + 1):
            P[i, j] = min(max(P[i, j] * totals[SCALE], -LARGEST), LARGEST)
    totals[SCALE] = 1.0


@compiled
def move_inplace(filters: Filters, d: int, factor: float, shrink: float, noise: Floats) -> None:
    """Let all information fade by `factor`, then w ← shrink w, P ← shrink² P + noise ⊗ I."""
    n = filters.weights.shape[1]
    for f in range(filters.weights.shape[0]):
        P, totals = filters.covariance[f], filters.totals[f]
        totals[SCALE] *= shrink * shrink / factor
        totals[RESIDUAL] *= factor
        totals[COUNT] *= factor
        if not 1.0 / FOLD < totals[SCALE] < FOLD:
            fold_inplace(P, totals, n)
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
    mean: Floats,
    std: Floats,
) -> int:
    """Forecast, then learn, group by group (`ends` holds their ends); the number of samples learned.

    `fades` (n, 3) is what everything, the sample's own task, and its direction fades by before each sample; where
    `moves` is above 0, all information fades by it, and all weights move, by `shrink` and `noise`.
    """
    d = X.shape[1]
    n = filters.weights.shape[1]
    g = np.empty(n)
    first = 0
    for end in ends:
        deviations = std[first:end] if std.size else std
        predict(filters, X[first:end], tasks[first:end], mean[first:end], deviations)
        for i in range(first, end):
            f, start = tasks[i] * d // n, tasks[i] * d % n
            w, P, totals = filters.weights[f], filters.covariance[f], filters.totals[f]
            if moves[i] > 0.0:
                move_inplace(filters, d, moves[i], shrink, noise)
            fade = fades[i]
            if not learn_inplace(w, P, totals, g, n, start, X[i], y[i], weights[i], fade[0], fade[1], fade[2]):
                return i
        first = end
    return first
