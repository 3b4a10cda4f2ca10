"""The proximal gradient method against its twin in plain NumPy."""

import numpy as np
import pytest

from braided._compiled import proximal
from braided._compiled.proximal import Problem
from tests.reference.proximal import minimise, shrink_columns, shrink_spectrum

SHAPES = [(1, 1), (1, 4), (4, 1), (3, 5), (5, 3), (4, 4)]


def problem(n_tasks, d, rank=None):
    """Moments with eigenvalues of at most 1."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_tasks, rank or 2 * d, d))
    moments = X.transpose(0, 2, 1) @ X
    moments /= np.linalg.eigvalsh(moments).max()
    return moments, np.einsum("tjk,tk->tj", moments, rng.normal(size=(n_tasks, d)))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("threshold", [0.0, 0.5, 2.0, 100.0])
def test_shrinking(shape, threshold):
    W = np.random.default_rng(1).normal(size=shape)
    thresholds = threshold * np.linspace(0.5, 1.5, shape[1])
    found = W.copy()
    proximal.shrink_columns_inplace(found, thresholds)
    np.testing.assert_allclose(found, shrink_columns(W, thresholds), rtol=1e-12, atol=1e-15)
    basis = np.eye(min(shape))
    for M in (W, W + 0.01, np.zeros(shape)):  # the basis of one is a start for the next
        found = M.copy()
        proximal.shrink_spectrum_inplace(found, basis, threshold)
        np.testing.assert_allclose(found, shrink_spectrum(M, threshold), rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(basis @ basis.T, np.eye(min(shape)), atol=1e-14)


def test_singular_values_of_any_size_are_told_apart():
    rng = np.random.default_rng(2)
    U, V = (np.linalg.qr(rng.normal(size=(n, 4)))[0] for n in (6, 4))
    W = U * [1.0, 1.0, 1e-5, 1e-10] @ V.T
    proximal.shrink_spectrum_inplace(W, np.eye(4), 1e-6)
    np.testing.assert_allclose(W, U * [1.0 - 1e-6, 1.0 - 1e-6, 9e-6, 0.0] @ V.T, atol=1e-15)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("low_rank", [False, True])
@pytest.mark.parametrize("penalty", [1e-3, 0.05])
@pytest.mark.parametrize("steps", [1, 2, 40])
def test_steps(shape, low_rank, penalty, steps):
    moments, targets = problem(*shape)
    units = np.ones(shape[1]) if low_rank else np.linspace(0.5, 1.0, shape[1])
    W = np.full(shape, 0.1)
    expected, _ = minimise(W, moments, targets, units, penalty, low_rank, steps)
    found = W.copy()
    assert not proximal.minimise_inplace(found, Problem(moments, targets, units, penalty), low_rank, -1.0, steps)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("low_rank", [False, True])
@pytest.mark.parametrize(("share", "stops"), [(0.999, False), (1.001, True)])
def test_stops_where_the_subgradient_is_short_enough(low_rank, share, stops):
    moments, targets = problem(4, 3)
    given = Problem(moments, targets, np.array([1.0, 0.7, 0.9]), 0.05)
    _, length = minimise(np.zeros((4, 3)), *given, low_rank, 1)
    assert proximal.minimise_inplace(np.zeros((4, 3)), given, low_rank, share * length, 1) == stops


@pytest.mark.parametrize("low_rank", [False, True])
def test_stops_at_the_minimum(low_rank):
    moments, targets = problem(4, 3, rank=2)
    W, units = np.zeros((4, 3)), np.ones(3)
    assert proximal.minimise_inplace(W, Problem(moments, targets, units, 0.05), low_rank, 1e-9, 5000)
    expected, length = minimise(np.zeros((4, 3)), moments, targets, units, 0.05, low_rank, 2000)
    assert length < 1e-9
    np.testing.assert_allclose(W, expected, atol=1e-6)


@pytest.mark.parametrize(("tolerance", "stops"), [(1e-9, True), (1e-12, False)])
def test_is_content_with_what_rounding_leaves_up_to_a_thousand_tolerances(tolerance, stops):
    W = np.full((1, 1), 1e9)
    penalty = 2 * np.spacing(1e9)  # so the subgradient is as long as the rounding of W
    given = Problem(np.full((1, 1, 1), 0.5), 0.5 * W, np.ones(1), penalty)
    assert proximal.minimise_inplace(W, given, False, tolerance, 1) == stops
