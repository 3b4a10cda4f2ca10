"""Gradient descent, ADMM and the last value against their twins in plain NumPy."""

import numpy as np
import pytest
import scipy.sparse as sparse

from braided._compiled import admm, gradient, naive
from tests.compiled.batches import as_batch
from tests.reference.linear import admm_round, gradient_step

# Without the JIT, NumPy warns of the overflows that compiled code lets pass and the functions detect.
pytestmark = pytest.mark.filterwarnings("ignore:(overflow|invalid)")

A = np.array([[1.3, -0.8, 0.0], [-0.8, 1.5, -0.2], [0.0, -0.2, 0.7]])


def stream(n=12):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 2)), rng.normal(size=n), np.arange(n) % 3


def relation(penalty):
    csr = sparse.csr_array(penalty * A)
    return gradient.Relation(csr.indptr.astype(np.int64), csr.indices.astype(np.int64), csr.data)


@pytest.mark.parametrize("ends", [range(1, 13), [3, 6, 9, 12]])
def test_gradient_descent(ends):
    X, y, tasks = stream()
    weights = np.linspace(0.1, 2.0, 12)
    state, mean = gradient.Descent(np.zeros((3, 2)), np.zeros(1, np.int64)), np.empty(12)
    assert gradient.progressive_inplace(state, relation(0.3), 0.1, as_batch(X, y, tasks, ends, weights), mean) == 12
    W, expected, first = np.zeros((3, 2)), [], 0
    for end in ends:
        expected += [W[tasks[i]] @ X[i] for i in range(first, end)]
        for i in range(first, end):
            W = gradient_step(W, A, 0.3, 0.1, i + 1, X[i], y[i], tasks[i], weights[i])
        first = end
    np.testing.assert_allclose(mean, expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(state.weights, W, rtol=1e-10)
    assert state.steps[0] == 12


def test_gradient_descent_stops_where_it_diverges():
    X, y, tasks = stream(600)
    state, mean = gradient.Descent(np.zeros((3, 2)), np.zeros(1, np.int64)), np.empty(600)
    batch = as_batch(X, y, tasks, range(1, 601))
    assert 0 < gradient.progressive_inplace(state, relation(1e9), 10.0, batch, mean) < 600
    assert np.isfinite(state.weights).all()


def start(rho):
    rows = [np.zeros((3, 2)) for _ in range(4)]
    factors = np.tile(np.sqrt(rho) * np.eye(2), (3, 1, 1))
    return admm.Consensus(np.zeros((3, 2, 2)), rows[0], factors, rows[1], rows[2], rows[3])


@pytest.mark.parametrize("forgetting", [1.0, 0.9])
@pytest.mark.parametrize("ends", [range(1, 13), [3, 6, 9, 12]])
def test_admm(ends, forgetting):
    X, y, tasks = stream()
    penalty, rho = 0.4, 0.7
    weights = np.linspace(0.1, 2.0, 12)
    state, mean, fades = start(rho), np.empty(12), np.full(12, forgetting)
    smoother = np.ascontiguousarray(rho * np.linalg.inv(penalty * A + rho * np.eye(3)))
    assert admm.progressive_inplace(state, smoother, rho, as_batch(X, y, tasks, ends, weights), fades, mean) == 12
    R, p, W, Z, U = np.zeros((3, 2, 2)), *(np.zeros((3, 2)) for _ in range(4))
    expected, first = [], 0
    for end in ends:
        expected += [W[tasks[i]] @ X[i] for i in range(first, end)]
        for i in range(first, end):
            t = tasks[i]
            R[t] = forgetting * R[t] + weights[i] * np.outer(X[i], X[i])
            p[t] = forgetting * p[t] + weights[i] * y[i] * X[i]
        W, Z, U = admm_round(R, p, Z, U, A, penalty, rho)
        first = end
    np.testing.assert_allclose(mean, expected, rtol=1e-10, atol=1e-12)
    for found, true in ((state.weights, W), (state.copies, Z), (state.duals, U)):
        np.testing.assert_allclose(found, true, rtol=1e-9, atol=1e-12)


def test_admm_stops_where_moments_overflow():
    X, y, tasks = stream()
    X[5] = 1e200
    mean = np.empty(12)
    batch = as_batch(X, y, tasks, range(1, 13))
    assert admm.progressive_inplace(start(1.0), np.eye(3), 1.0, batch, np.ones(12), mean) == 5


def test_cholesky_and_solve():
    rng = np.random.default_rng(1)
    M = rng.normal(size=(5, 5))
    S = M @ M.T + np.eye(5)
    L, b = S.copy(), rng.normal(size=5)
    admm.cholesky_inplace(L, 1e-9)
    np.testing.assert_allclose(np.tril(L), np.linalg.cholesky(S), rtol=1e-12)
    x = b.copy()
    admm.solve_inplace(L, x)
    np.testing.assert_allclose(S @ x, b, rtol=1e-9, atol=1e-12)
    rank_one = np.outer([1e8, 1e8], [1e8, 1e8]) + 1e-4 * np.eye(2)  # its second pivot is rounding
    admm.cholesky_inplace(rank_one, 1e-4)
    assert np.isfinite(np.tril(rank_one)).all()
    indefinite = np.array([[1.0, 1.0], [1.0, 1.0 - 1e-12]])
    admm.cholesky_inplace(indefinite, 1e-4)
    assert indefinite[1, 1] == pytest.approx(1e-2)


@pytest.mark.parametrize(("ends", "expected"), [([1, 2, 3, 4], [7, 8, 1, 1]), ([4], [7, 8, 7, 7])])
def test_last_value(ends, expected):
    last, mean = np.array([7.0, 8.0]), np.empty(4)
    weights = np.array([1.0, 1.0, 0.0, 1.0])
    tasks = np.array([0, 1, 0, 0])
    assert naive.last_value_inplace(last, np.array([1.0, 2.0, 3.0, 4.0]), tasks, weights, np.array(ends), mean) == 4
    assert mean.tolist() == expected
    assert last.tolist() == [4.0, 2.0]
