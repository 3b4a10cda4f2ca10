"""Online alternating direction method of multipliers on the graph-regularised loss (MADMM): one iteration per round."""

from typing import NamedTuple

import numpy as np

from braided._compiled import compiled
from braided._compiled.batch import Batch
from braided._compiled.linear import dot, forecast_inplace
from braided.types import Floats

LARGEST_ADDEND = 1e290  # so that sums stay finite


class Consensus(NamedTuple):
    """State of the ADMM learner; rows are tasks."""

    moments: Floats  # (T, d, d) R, faded sum of x x'
    targets: Floats  # (T, d) p, faded sum of y x
    factors: Floats  # (T, d, d) lower Cholesky factors of R + ρI
    weights: Floats  # (T, d) W
    copies: Floats  # (T, d) Z, the copy that the graph smooths
    duals: Floats  # (T, d) U


@compiled
def cholesky_inplace(L: Floats, least: float) -> None:
    """Replace the lower triangle of L by its Cholesky factor; only rounding can make a pivot smaller than `least`."""
    for j in range(L.shape[0]):
        L[j, j] = np.sqrt(max(L[j, j] - dot(L[j, :j], L[j, :j]), least))
        for i in range(j + 1, L.shape[0]):
            L[i, j] = (L[i, j] - dot(L[i, :j], L[j, :j])) / L[j, j]


@compiled
def solve_inplace(L: Floats, b: Floats) -> None:
    """b ← (L L')⁻¹ b."""
    n = b.size
    for i in range(n):
        b[i] = (b[i] - dot(L[i, :i], b[:i])) / L[i, i]
    for i in range(n - 1, -1, -1):
        b[i] /= L[i, i]
        for j in range(i):
            b[j] -= L[i, j] * b[i]


@compiled
def iterate_inplace(consensus: Consensus, smoother: Floats, rho: float) -> None:
    """One iteration: W from the data, Z from the graph, U from their difference."""
    W, Z, U = consensus.weights, consensus.copies, consensus.duals
    n_tasks, d = W.shape
    for t in range(n_tasks):
        for k in range(d):
            W[t, k] = consensus.targets[t, k] + rho * (Z[t, k] - U[t, k])
        solve_inplace(consensus.factors[t], W[t])
        for k in range(d):
            U[t, k] += W[t, k]
            Z[t, k] = 0.0
    for t in range(n_tasks):
        for j in range(n_tasks):
            for k in range(d):
                Z[t, k] += smoother[t, j] * U[j, k]
    for t in range(n_tasks):
        for k in range(d):
            U[t, k] -= Z[t, k]


@compiled
def progressive_inplace(
    consensus: Consensus, smoother: Floats, rho: float, batch: Batch, fades: Floats, mean: Floats
) -> int:
    """Forecast, absorb and iterate once, group by group; return the number of samples learned.

    `smoother` is ρ(λA + ρI)⁻¹; a sample's task first fades by its entry of `fades` (n,).
    """
    R, p, L = consensus.moments, consensus.targets, consensus.factors
    X, y, tasks, weights = batch.X, batch.y, batch.tasks, batch.weights
    d = X.shape[1]
    first = 0
    for end in batch.ends:
        forecast_inplace(mean[first:end], consensus.weights, X[first:end], tasks[first:end])
        for i in range(first, end):  # a round is absorbed whole, or not at all
            size = 0.0
            for k in range(d):
                size = max(size, abs(X[i, k]))
            if not size * max(size, abs(y[i])) * max(weights[i], 1.0) * max(1.0 / rho, 1.0) < LARGEST_ADDEND:
                return first
        for i in range(first, end):
            t = tasks[i]
            for k in range(d):
                p[t, k] = fades[i] * p[t, k] + weights[i] * y[i] * X[i, k]
                for j in range(d):
                    R[t, k, j] = fades[i] * R[t, k, j] + weights[i] * X[i, k] * X[i, j]
                    L[t, k, j] = R[t, k, j]
                L[t, k, k] += rho
            cholesky_inplace(L[t], rho)
        iterate_inplace(consensus, smoother, rho)
        first = end
    return first
