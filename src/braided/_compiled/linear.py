"""What linear learners share: inner products, forecasts from one row of weights per task, and an inverse."""

import numpy as np

from braided._compiled import compiled
from braided.types import Floats, Ints

JITTER = 2.0**-52
FOUR = 4  # rows, or terms, that are processed together


@compiled
def dot(a: Floats, b: Floats) -> float:
    """Inner product."""
    total = 0.0
    for k in range(a.size):
        total += a[k] * b[k]
    return total


@compiled
def forecast_inplace(mean: Floats, W: Floats, X: Floats, tasks: Ints) -> None:
    """mean ← w_t' x of each sample."""
    for i in range(tasks.size):
        mean[i] = dot(W[tasks[i]], X[i])


@compiled
def invert_inplace(A: Floats) -> bool:
    """A ← A⁻¹ of a symmetric positive definite matrix, whatever its units; False, with A spoilt, if it is not one.

    A is scaled to a unit diagonal first. If rounding has made it indefinite, slightly more than that is added to it.
    """
    n = A.shape[0]
    root = np.empty(n)
    for i in range(n):
        if not 0.0 < A[i, i] < np.inf:
            return False
        root[i] = np.sqrt(A[i, i])
    L = np.empty((n, n))
    jitter, done = 0.0, False
    while not done:
        done = True
        for i in range(n):
            for j in range(i + 1):
                total = A[i, j] / root[i] / root[j] - dot(L[i, :j], L[j, :j])
                if i == j:
                    total += jitter
                    if not total > JITTER:
                        done = False
                        break
                    L[i, i] = np.sqrt(total)
                else:
                    L[i, j] = total / L[j, j]
            if not done:
                break
        if not done:
            jitter = max(10.0 * jitter, 10.0 * n * JITTER)
            if not jitter < 1e-6:
                return False
    for i in range(n):  # L ← L⁻¹, row by row
        pivot = 1.0 / L[i, i]
        for j in range(i):
            total = 0.0
            for k in range(j, i):
                total += L[i, k] * L[k, j]
            L[i, j] = 0.0
            A[i, j] = -pivot * total
        for j in range(i):
            L[i, j] = A[i, j]
        L[i, i] = pivot
    for i in range(n):
        for j in range(i + 1):
            total = 0.0
            for k in range(i, n):
                total += L[k, i] * L[k, j]
            A[i, j] = A[j, i] = total / root[i] / root[j]
    return True
