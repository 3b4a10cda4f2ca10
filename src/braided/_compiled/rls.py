"""Recursive least squares on one stored triangle, for F filters that each serve an equal share of the tasks.

F = 1 is MT-WRLS (one filter of size dT serves all), F = T is WRLS (one filter of size d a task).

Letters, as in the paper: P covariance, w weights, g = P z gain direction, e innovation, z stacked input.
The stored P is the true one divided by `scale`, so that uniform forgetting costs one division; only its lower
triangle is read or written, which keeps it symmetric for ever (rounding asymmetry would grow like 1/forgetting^i).
"""

from typing import NamedTuple

import numpy as np

from braided._compiled import compiled
from braided._compiled.linear import dot
from braided.validate import Floats, Ints

SCALE, RESIDUAL, COUNT = 0, 1, 2  # the columns of Filters.totals
FOLD = 2.0**40  # fold the scale into P long before either leaves the range of a double


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
def deviation(totals: Floats, variance: float) -> float:
    """Standard deviation of a forecast: noise · √(1 + z'Pz); infinite before the first sample."""
    if totals[COUNT] <= 0.0:
        return np.inf
    return np.sqrt(max(totals[RESIDUAL], 0.0) / totals[COUNT] * max(1.0 + variance, 0.0))


@compiled
def fade_inplace(P: Floats, totals: Floats, n: int, start: int, d: int, everything: float, own: float) -> None:
    """Forget before a sample: P ← P / everything, then the task's own rows and columns by √own each."""
    evidence = everything
    if everything != 1.0:
        totals[SCALE] /= everything
        if totals[SCALE] > FOLD:
            for i in range(n):
                for j in range(i + 1):
                    P[i, j] *= totals[SCALE]
            totals[SCALE] = 1.0
    if own != 1.0:
        stop = start + d
        root = 1.0 / np.sqrt(own)
        evidence *= own ** (d / n)  # a task's own clock fades its share of the evidence
        for i in range(start, n):
            if i < stop:
                for j in range(i + 1):
                    P[i, j] *= root
            for j in range(start, min(stop, i + 1)):
                P[i, j] *= root
    totals[RESIDUAL] *= evidence
    totals[COUNT] *= evidence


@compiled
def learn_inplace(
    w: Floats, P: Floats, totals: Floats, g: Floats, n: int, start: int, x: Floats, y: float, weight: float
) -> bool:
    """One recursive least squares step; False, and nothing changed, where the arithmetic breaks down."""
    gain_inplace(g, P, n, start, x)
    stop = start + x.size
    s = 1.0 + weight * totals[SCALE] * dot(g[start:stop], x)
    e = y - dot(w[start:stop], x)  # Eq. 16
    c = weight * totals[SCALE] / s  # Eq. 15, k(n) = c g
    largest = 0.0
    for i in range(n):
        largest = max(largest, abs(g[i]))
    if not (s > 0.0 and np.isfinite(s) and np.isfinite(weight * e * e / s) and np.isfinite(c * e * largest)):
        return False
    for i in range(n):
        w[i] += c * e * g[i]  # Eq. 17
    for i in range(n):
        factor = c * g[i]
        row = P[i]
        for j in range(i + 1):
            row[j] -= factor * g[j]  # Eq. 18
    totals[RESIDUAL] += weight * e * e / s
    totals[COUNT] += weight
    return True


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
    fades: Floats,
    ends: Ints,
    mean: Floats,
    std: Floats,
) -> int:
    """Forecast, then learn, group by group (`ends` holds their ends); the number of samples learned."""
    d = X.shape[1]
    n = filters.weights.shape[1]
    g = np.empty(n)
    first = 0
    for end in ends:
        deviations = std[first:end] if std.size else std
        predict(filters, X[first:end], tasks[first:end], mean[first:end], deviations)
        for i in range(first, end):
            f, start = tasks[i] * d // n, tasks[i] * d % n
            P, totals = filters.covariance[f], filters.totals[f]
            fade_inplace(P, totals, n, start, d, fades[i, 0], fades[i, 1])
            if not learn_inplace(filters.weights[f], P, totals, g, n, start, X[i], y[i], weights[i]):
                return i
        first = end
    return first
