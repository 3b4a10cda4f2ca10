"""Accelerated proximal gradient as in the textbook, with singular value decompositions."""

import numpy as np


def shrink_columns(W, thresholds):
    """argmin ½‖V − W‖² + Σ_k thresholds_k ‖V_k‖."""
    sizes = np.linalg.norm(W, axis=0)
    return W * np.maximum(1.0 - thresholds / np.maximum(sizes, 1e-300), 0.0)


def shrink_spectrum(W, threshold):
    """argmin ½‖V − W‖² + threshold · (sum of V's singular values)."""
    U, sizes, V = np.linalg.svd(W, full_matrices=False)
    return U * np.maximum(sizes - threshold, 0.0) @ V


def minimise(W, moments, targets, units, penalty, low_rank, steps):
    """`steps` steps from W, and the length of the subgradient at the last."""

    def slope(W):
        return np.array([moments[t] @ W[t] - targets[t] for t in range(len(W))])

    ahead, momentum = W, 1.0
    for _ in range(steps):
        z = ahead - slope(ahead)
        new = shrink_spectrum(z, penalty) if low_rank else shrink_columns(z, penalty / units)
        length = np.linalg.norm((slope(new) + z - new) * units)
        if ((ahead - new) * (new - W)).sum() > 0:
            momentum = 1.0
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = new + (momentum - 1) / following * (new - W)
        W, momentum = new, following
    return W, length


def objective(W, X, y, tasks, penalty, norm):
    """½ Σ_t ‖X_t w_t − y_t‖² + penalty · norm(W)."""
    return 0.5 * ((X * W[tasks]).sum(axis=1) - y) @ ((X * W[tasks]).sum(axis=1) - y) + penalty * norm(W)


def columns(W):
    """Sum of the lengths of the columns."""
    return np.linalg.norm(W, axis=0).sum()


def trace(W):
    """Sum of the singular values."""
    return np.linalg.norm(W, "nuc")
