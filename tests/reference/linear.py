"""Closed forms and textbook recursions of the linear learners."""

import numpy as np


def stack(x, task, n_tasks):
    """x in the place of its task, zeros elsewhere."""
    z = np.zeros(n_tasks * len(x))
    z[task * len(x) : (task + 1) * len(x)] = x
    return z


def batch(A, penalty, X, y, tasks, weights=None, prior_weight=1.0):
    """Weights, covariance and minimum of Σ vᵢ(yᵢ − zᵢ'w)² + prior_weight λ w'(A ⊗ I)w."""
    n_tasks, d = len(A), np.shape(X)[1]
    v = np.ones(len(y)) if weights is None else np.asarray(weights)
    Z = np.array([stack(x, t, n_tasks) for x, t in zip(X, tasks, strict=True)]).reshape(-1, n_tasks * d)
    prior = prior_weight * penalty * np.kron(A, np.eye(d))
    information = prior + Z.T @ (v[:, None] * Z)
    w = np.linalg.solve(information, Z.T @ (v * y))
    minimum = v @ (y - Z @ w) ** 2 + w @ prior @ w
    return w.reshape(n_tasks, d), np.linalg.inv(information), minimum


def recursion(P, w, z, y, forgetting=1.0):
    """Eqs. 15–18, as printed."""
    k = P @ z / (forgetting + z @ P @ z)
    w = w + (y - z @ w) * k
    P = (P - np.outer(k, z @ P)) / forgetting
    return P, w


def own_clock(information, w, z, y, forgetting, block):
    """Per-task forgetting in information form: fade the task's rows and columns, keep the estimate, add the sample."""
    D = np.ones(len(w))
    D[block] = np.sqrt(forgetting)
    faded = D[:, None] * information * D
    gained = faded + np.outer(z, z)
    return gained, np.linalg.solve(gained, faded @ w + y * z)


def gradient_step(W, A, penalty, step, i, x, y, t, weight=1.0):
    """MOGD: one step on task t at sample i (from 1)."""
    W = W.copy()
    W[t] -= step / np.sqrt(i) * 2 * (-weight * (y - W[t] @ x) * x + penalty * A[t] @ W)
    return W


def admm_round(R, p, Z, U, A, penalty, rho):
    """MADMM: one iteration on given moments; returns W, Z, U."""
    d = p.shape[1]
    W = np.array([np.linalg.solve(R[t] + rho * np.eye(d), p[t] + rho * (Z[t] - U[t])) for t in range(len(p))])
    Z = rho * np.linalg.solve(penalty * A + rho * np.eye(len(A)), W + U)
    return W, Z, U + W - Z
