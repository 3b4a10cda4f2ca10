"""Closed forms of many tasks on a sparse graph, by dense matrices."""

import numpy as np


def information(C, Phi):
    """K = blkdiag Φ_t + C ⊗ I."""
    d = Phi.shape[1]
    K = np.kron(C, np.eye(d))
    for t, block in enumerate(Phi):
        K[t * d : (t + 1) * d, t * d : (t + 1) * d] += block
    return K


def moments(n_tasks, X, y, tasks, weights):
    """Φ (N, d, d), ψ (N, d) and Σ v y² of weighted samples."""
    d = X.shape[1]
    Phi, psi = np.zeros((n_tasks, d, d)), np.zeros((n_tasks, d))
    for x, target, t, v in zip(X, y, tasks, weights, strict=True):
        Phi[t] += v * np.outer(x, x)
        psi[t] += v * target * x
    return Phi, psi, weights @ y**2


def solution(C, Phi, psi):
    """The weights that solve K w = ψ."""
    return np.linalg.solve(information(C, Phi), psi.ravel()).reshape(psi.shape)


def objective(C, Phi, psi, squares, W):
    """Σ v (y − x'w)² + w'(C ⊗ I)w."""
    w = W.ravel()
    return squares - 2.0 * psi.ravel() @ w + w @ information(C, Phi) @ w


def residual(C, Phi, psi, W):
    """ψ − K w."""
    return psi - (information(C, Phi) @ W.ravel()).reshape(W.shape)


def conditional(C, Phi):
    """Each task's covariance where its neighbours' weights are known."""
    return np.array([np.linalg.inv(block + c * np.eye(len(block))) for block, c in zip(Phi, np.diag(C), strict=True)])


def star(C, Phi, t):
    """Task t's covariance where its neighbours have no neighbours but it: a block of the inverse of their system."""
    near = [t, *(j for j in np.flatnonzero(C[t]) if j != t)]
    links = np.diag(np.diag(C)[near])
    links[0, 1:] = links[1:, 0] = C[t, near[1:]]
    d = Phi.shape[1]
    return np.linalg.inv(information(links, Phi[near]))[:d, :d]


def bound(V, P, x):
    """Of x'V x, from below: (x'z)² / z'V⁻¹z at z = P x."""
    z = P @ x
    return (x @ z) ** 2 / (z @ np.linalg.solve(V, z))


def conjugate_gradients(K, w, r, P, steps):
    """w and r after so many steps, preconditioned by P, as in any textbook."""
    z = P @ r
    p = z
    for _ in range(steps):
        alpha = r @ z / (p @ K @ p)
        w, left = w + alpha * p, r - alpha * K @ p
        before = r @ z
        r, z = left, P @ left
        p = z + r @ z / before * p
    return w, r


def relax(C, W, R, P, t):
    """W and R after task t is relaxed."""
    step = P[t] @ R[t]
    W, R = W.copy(), R.copy()
    W[t] += step
    moved = np.outer(C[:, t], step)
    moved[t] = R[t]
    return W, R - moved
