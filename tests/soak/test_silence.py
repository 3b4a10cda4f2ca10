"""A task falls silent and comes back, under every policy and every strength of forgetting of the paper."""

import numpy as np
import pytest

import braided as bd
from tests.soak import rounds
from tests.soak.configurations import SIGMAS, insist_finite, least_eigenvalue, linear_learners
from tests.streams import random_graph, random_stream

T, D = 8, 5
N_ROUNDS = rounds(500, 20_000)
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
    step = rounds(25, 50)
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


@pytest.mark.parametrize("sigma", [0.6, 0.8])
def test_what_comes_back_is_learned(sigma):
    """After the silence the task is forecast as well as the others, by a policy that forgets and one that restores."""
    X, y, tasks, labels = stream()
    noise = 0.1
    for policy in (bd.Exponential(0.99), bd.Exponential(sigma, per="task"), bd.forgetting.Restore(0.99)):
        model = bd.MTWRLS(random_graph(np.random.default_rng(1), T), D, 0.1, policy)
        made = model.progressive(X, y, tasks, rounds=labels)
        late = (tasks == T - 1) & (labels >= BACK + 15)
        assert late.sum() == 10
        assert np.abs(made - y)[late].mean() < 10 * noise
