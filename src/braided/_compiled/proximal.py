"""Accelerated proximal gradient with adaptive restart, for penalties that are norms of the tasks' weights W.

Beck & Teboulle, SIAM Journal on Imaging Sciences 2 (2009); O'Donoghue & Candès, Foundations of Computational
Mathematics 15 (2015), the gradient scheme.
"""

from typing import NamedTuple

import numpy as np

from braided._compiled import compiled
from braided._compiled.linear import dot
from braided.types import Floats

MOST_SWEEPS = 60  # many more than the Jacobi method needs
GRADIENT_ROUNDING = 1e-15  # relative to weights whose moments have no eigenvalue above 1
PARALLEL = 1e-12  # cosine below which two rows count as orthogonal


class Problem(NamedTuple):
    """Minimise ½ Σ_t w_t'Φ_t w_t − ψ_t'w_t + penalty · norm; no eigenvalue of a Φ_t may be above 1."""

    moments: Floats  # (T, d, d) Φ
    targets: Floats  # (T, d) ψ
    units: Floats  # (d,) of the features
    penalty: float


@compiled
def shrink_columns_inplace(W: Floats, thresholds: Floats) -> None:
    """Shorten each column of W by its threshold, to zero if it is shorter."""
    for k in range(W.shape[1]):
        squares = 0.0
        for t in range(W.shape[0]):
            squares += W[t, k] * W[t, k]
        size = np.sqrt(squares)
        rest = 1.0 - thresholds[k] / size if size > thresholds[k] else 0.0
        for t in range(W.shape[0]):
            W[t, k] *= rest


@compiled
def rotate_inplace(M: Floats, i: int, j: int, cosine: float, sine: float) -> None:
    """Rotate rows i and j of M in their plane."""
    for k in range(M.shape[1]):
        a, b = M[i, k], M[j, k]
        M[i, k] = cosine * a - sine * b
        M[j, k] = sine * a + cosine * b


@compiled
def orthogonalise_inplace(rows: Floats, basis: Floats, threshold: float) -> None:
    """Rotate the rows until they are orthogonal, and the basis with them (one-sided Jacobi).

    What remains moves the shrunken matrix by less than PARALLEL · threshold, or by rounding.
    """
    n = rows.shape[0]
    squares = np.empty(n)
    for _ in range(MOST_SWEEPS):
        for i in range(n):
            squares[i] = dot(rows[i], rows[i])
        floor = max(PARALLEL * threshold, 1e-15 * np.sqrt(squares.max()))
        done = True
        for i in range(n):
            for j in range(i + 1, n):
                product = dot(rows[i], rows[j])
                least = max(PARALLEL * np.sqrt(min(squares[i], squares[j])), floor)
                if abs(product) <= least * np.sqrt(max(squares[i], squares[j])):
                    continue
                done = False
                half = (squares[j] - squares[i]) / (2.0 * product)
                tangent = 1.0 / (abs(half) + np.sqrt(1.0 + half * half))
                tangent = tangent if half >= 0.0 else -tangent
                cosine = 1.0 / np.sqrt(1.0 + tangent * tangent)
                rotate_inplace(rows, i, j, cosine, cosine * tangent)
                rotate_inplace(basis, i, j, cosine, cosine * tangent)
                squares[i] -= tangent * product
                squares[j] += tangent * product
        if done:
            return


@compiled
def shrink_spectrum_inplace(W: Floats, basis: Floats, threshold: float) -> None:
    """Lower each singular value of W by the threshold, to zero if it is smaller.

    `basis` is orthogonal, of the smaller dimension of W, and becomes the singular vectors on that side: a good start
    for the next matrix, which is nearly the same.
    """
    turned = W.shape[1] < W.shape[0]
    short = np.ascontiguousarray(W.T) if turned else W.copy()
    n = short.shape[0]
    rows = np.zeros_like(short)
    for i in range(n):
        for j in range(n):
            for k in range(short.shape[1]):
                rows[i, k] += basis[i, j] * short[j, k]
    orthogonalise_inplace(rows, basis, threshold)
    for i in range(n):  # subtracting keeps rounding as small as the threshold
        size = np.sqrt(dot(rows[i], rows[i]))
        share = threshold / size if size > threshold else 1.0
        for j in range(n):
            for k in range(short.shape[1]):
                short[j, k] -= share * basis[i, j] * rows[i, k]
    for j in range(n):
        for k in range(short.shape[1]):
            W[k if turned else j, j if turned else k] = short[j, k]


@compiled
def gradient_inplace(gradient: Floats, W: Floats, moments: Floats, targets: Floats) -> None:
    """Row t of the gradient ← Φ_t w_t − ψ_t."""
    for t in range(W.shape[0]):
        for k in range(W.shape[1]):
            gradient[t, k] = dot(moments[t, k], W[t]) - targets[t, k]


@compiled
def minimise_inplace(W: Floats, problem: Problem, low_rank: bool, tolerance: float, steps: int) -> bool:
    """Solve the problem from W on; return whether it converged within that many steps.

    The norm is the sum of the singular values of W if it is to have low rank, else the sum of the lengths of its
    columns, each over its unit. Converged is a subgradient, each column times its unit, no longer than the tolerance,
    or than rounding of W makes it (at most a thousand times the tolerance).
    """
    moments, targets, units, penalty = problem.moments, problem.targets, problem.units, problem.penalty
    n_tasks, d = W.shape
    thresholds = penalty / units
    basis = np.eye(min(n_tasks, d))
    slope, new, new_slope = np.empty_like(W), np.empty_like(W), np.empty_like(W)
    gradient_inplace(slope, W, moments, targets)
    ahead, ahead_slope = W.copy(), slope.copy()
    momentum = 1.0
    for _ in range(steps):
        for t in range(n_tasks):
            for k in range(d):
                new[t, k] = ahead[t, k] - ahead_slope[t, k]
        if low_rank:
            shrink_spectrum_inplace(new, basis, penalty)
        else:
            shrink_columns_inplace(new, thresholds)
        gradient_inplace(new_slope, new, moments, targets)
        squares, size, uphill = 0.0, 0.0, 0.0
        for t in range(n_tasks):
            for k in range(d):
                # The step solves 0 = ahead_slope + new − ahead + s, s a subgradient of the penalty at `new`.
                step = ahead[t, k] - new[t, k]
                squares += (units[k] * (new_slope[t, k] - ahead_slope[t, k] + step)) ** 2
                size += (units[k] * new[t, k]) ** 2
                uphill += step * (new[t, k] - W[t, k])
        if uphill > 0.0:
            momentum = 1.0
        following = (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum)) / 2.0
        share = (momentum - 1.0) / following
        momentum = following
        for t in range(n_tasks):
            for k in range(d):  # the slope is affine: that of `ahead` needs no product
                ahead[t, k] = new[t, k] + share * (new[t, k] - W[t, k])
                ahead_slope[t, k] = new_slope[t, k] + share * (new_slope[t, k] - slope[t, k])
                W[t, k], slope[t, k] = new[t, k], new_slope[t, k]
        if np.sqrt(squares) <= max(tolerance, min(GRADIENT_ROUNDING * np.sqrt(size), 1e3 * tolerance)):
            return True
    return False
