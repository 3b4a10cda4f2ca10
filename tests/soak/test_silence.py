"""A task falls silent and comes back, under every policy and every strength of forgetting of the paper."""

import numpy as np
import pytest

import braided as bd
from tests.soak import either
from tests.soak.configurations import SIGMAS, insist_finite, least_eigenvalue, linear_learners
from tests.streams import random_graph, random_stream

T, D = 8, 5
N_ROUNDS = either(500, 20_000)
QUIET, BACK = 25, N_ROUNDS - 25  # from round 25, after 200 samples
ROUNDED = 1e-13  # what rounding may take from the smallest eigenvalue of P scaled to a unit diagonal, which is above 0

MAKERS = {name: make for sigma in SIGMAS for name, make in linear_learners(sigma, T).items()}


def stream():
    X, y, tasks, labels = random_stream(np.random.default_rng(0), T, D, N_ROUNDS)
    heard = (tasks != T - 1) | (labels < QUIET) | (labels >= BACK)
    return X[heard], y[heard], tasks[heard], labels[heard]


@pytest.mark.parametrize("name", MAKERS)
def test_a_silent_task_comes_back(name):
    """P stays positive definite and every forecast finite, in silence and after it."""
    model = MAKERS[name](random_graph(np.random.default_rng(1), T), D)
    X, y, tasks, labels = stream()
    inputs = np.random.default_rng(2).normal(size=(T, D))
    step = either(25, 50)
    for start in range(0, N_ROUNDS, step):
        part = slice(*np.searchsorted(labels, [start, start + step]))
        made, deviations = model.progressive(X[part], y[part], tasks[part], rounds=labels[part], with_std=True)
        assert np.isfinite(made).all()
        assert not np.isnan(deviations).any()
        insist_finite(model)
        assert least_eigenvalue(model.covariance) > -ROUNDED
        mean, std = model.predict_many(inputs, range(T), with_std=True)
        assert np.isfinite(mean).all()
        assert np.isfinite(std).all()
    assert model.samples == len(y)


@pytest.mark.parametrize(
    "policy", [bd.Exponential(0.99), bd.forgetting.Restore(0.99), bd.forgetting.Drift(1e-4)], ids=repr
)
def test_what_comes_back_is_learned(policy):
    """Fifteen rounds after its silence, the task is forecast as well as the others, or nearly."""
    X, y, tasks, labels = stream()
    model = bd.MTWRLS(random_graph(np.random.default_rng(1), T), D, 0.1, policy)
    errors = np.abs(model.progressive(X, y, tasks, rounds=labels) - y)
    late, own = labels >= BACK + 15, tasks == T - 1
    assert (late & own).sum() == 10
    assert errors[late & own].mean() < 2.0 * errors[late & ~own].mean()
