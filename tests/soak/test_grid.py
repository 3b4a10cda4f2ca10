"""Every point of the paper's grid, over many rounds."""

import itertools

import numpy as np
import pytest

import braided as bd
from tests.soak import either
from tests.soak.configurations import SIGMAS, insist_finite, least_eigenvalue
from tests.streams import random_graph, random_stream

T, D = 3, 3
N_ROUNDS = either(100, 4000)
LOOKS = [*range(30), *range(30, N_ROUNDS, either(10, 100)), N_ROUNDS]  # at first after every round
PENALTIES = (1e-10, *(10.0**k for k in range(-4, 5)), 1e10)
RIDGES = (1.0, 0.1, 0.01)
ROUNDED = 1e-13  # what rounding may take from the smallest eigenvalue of P scaled to a unit diagonal, which is above 0


@pytest.mark.parametrize("ridge", RIDGES)
@pytest.mark.parametrize("kind", [bd.MTWRLS, bd.WRLS])
def test_every_point_of_the_grid_stays_sound(kind, ridge):
    """No forecast is refused or infinite, and P is positive definite, from the first round on.

    But for σ = 0.01 with λ = 1e-10: there the entries of P are 1e10 and more, and their rounding is more than what
    the data leave. Its variances stay positive, and it is made anew where a forecast asks for what has been lost.
    """
    rng = np.random.default_rng(3)
    graph = random_graph(rng, T, ridge=ridge)
    X, y, tasks, labels = random_stream(rng, T, D, N_ROUNDS)
    faults = {}
    for sigma, penalty in itertools.product(SIGMAS, PENALTIES):
        model = kind(graph, D, penalty, sigma)
        try:
            for start, stop in itertools.pairwise(LOOKS):
                part = slice(start * T, stop * T)
                mean, std = model.progressive(X[part], y[part], tasks[part], rounds=labels[part], with_std=True)
                assert np.isfinite(mean).all()
                assert not np.isnan(std).any()
                insist_finite(model)
                assert np.diagonal(model.covariance, axis1=-2, axis2=-1).min() > 0.0
                least = least_eigenvalue(model.covariance)
                assert least > -ROUNDED or (sigma, penalty) == (0.01, 1e-10), f"the smallest eigenvalue of P is {least}"
        except (AssertionError, bd.NumericalError) as error:
            faults[f"σ {sigma}, λ {penalty}"] = f"after round {start}: {error}"
    assert faults == {}


@pytest.mark.parametrize("ridge", RIDGES)
@pytest.mark.parametrize("penalty", PENALTIES)
def test_every_penalty_suits_the_kernel_learners(penalty, ridge):
    rng = np.random.default_rng(4)
    graph = random_graph(rng, T, ridge=ridge)
    X, y, tasks, labels = random_stream(rng, T, D, N_ROUNDS)
    for kind, kernel in itertools.product((bd.MTOSLSSVR, bd.OSLSSVR), ("linear", "rbf")):
        model = kind(graph, D, kernel, penalty, 1e-2, 40)
        mean, std = model.progressive(X, y, tasks, rounds=labels, with_std=True)
        assert np.isfinite(mean).all()
        assert not np.isnan(std).any()
        insist_finite(model)
        assert model.samples == len(y)
