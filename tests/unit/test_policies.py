"""What policies are for, on synthetic streams; `benchmarks/forgetting.py` has the tables."""

import numpy as np
import pytest

import braided as bd
from braided.forgetting import Directional, Drift, Exponential, Restore


def stream(seed, T, d, n, common, own, noise=0.5):
    """Weights (n, T, d) that wander, and a round of samples with each."""
    rng = np.random.default_rng(seed)
    steps = common * rng.normal(size=(n, 1, d)) + own * rng.normal(size=(n, T, d))
    W = rng.normal(size=d) + 0.3 * rng.normal(size=(T, d)) + steps.cumsum(axis=0)
    X = rng.normal(size=(n, T, d))
    return X, (X * W).sum(axis=2) + noise * rng.normal(size=(n, T))


def errors(model, X, y, seen):
    rounds, tasks = np.indices(y.shape)
    made = model.progressive(X[seen], y[seen], tasks[seen], rounds=rounds[seen])
    full = np.full(y.shape, np.nan)
    full[seen] = made - y[seen]
    return full


def rms(values):
    return float(np.sqrt(np.nanmean(np.square(values))))


def test_weights_that_wander_together_are_tracked_better_by_drift():
    """Each with what was best on another stream (seed 0 of the benchmark)."""
    T, d, n = 10, 10, 2000
    ratios = []
    for seed in (1, 2, 3):
        X, y = stream(seed, T, d, n, common=0.03, own=0.0075)
        plain = bd.MTWRLS(bd.TaskGraph.pooled(range(T), ridge=0.01), d, 1.0, Exponential(0.95, per="task"))
        graph = bd.TaskGraph.pooled(range(T), ridge=0.1)
        drift = bd.MTWRLS(graph, d, 0.1, Drift(0.003 / float(np.diag(graph.inverse).mean()), graph))
        a, b = (rms(errors(model, X, y, np.ones(y.shape, bool))) for model in (drift, plain))
        ratios.append(a / b)
    assert np.mean(ratios) < 0.9


@pytest.mark.parametrize("sigma", [0.8, 0.95])
@pytest.mark.parametrize("common", [0.0, 0.03])
def test_a_task_that_was_silent_comes_back_better_with_policies_that_keep_the_coupling(sigma, common):
    """At equal memory: (1 − σ)²/σ is what a weight's variance grows by per round, beside Exponential per round."""
    T, d, n, silent = 8, 5, 1500, slice(200, 1490)
    graph = bd.TaskGraph.pooled(range(T), ridge=0.1)
    prior, q = float(np.diag(graph.inverse).mean()), (1.0 - sigma) ** 2 / sigma
    policies = {
        "plain": Exponential(sigma, per="round"),
        "restore": Restore(float(np.sqrt(1.0 - q / (prior - (1.0 - sigma))))),
        "drift": Drift(q / prior),
        "directional": Directional(sigma),
    }
    found = {name: [] for name in policies}
    for seed in range(6):
        X, y = stream(seed, T, d, n, common, own=0.0)
        seen = np.ones(y.shape, bool)
        seen[silent, 3] = False
        for name, policy in policies.items():
            model = bd.MTWRLS(graph, d, 1.0, policy)
            found[name].append(rms(errors(model, X, y, seen)[1490:, 3]))
            assert np.linalg.eigvalsh(model.covariance)[0] > 0.0
    plain = np.array(found.pop("plain"))
    for name, values in found.items():
        if name != "directional" or not common:  # which keeps what it knew, and is stale where all have moved
            assert (np.array(values) < plain).sum() >= 5, (name, values, plain)


@pytest.mark.parametrize("solver", ["dense", "blocked"])
def test_what_restore_has_long_forgotten_leaves_no_trace(solver):
    """However small the scale of P has become by then, it is folded in."""
    rng = np.random.default_rng(4)
    graph, n = bd.TaskGraph.pooled(["a", "b"]), 700
    X, y, tasks = rng.normal(size=(2 * n, 2)), rng.normal(size=2 * n), np.tile(["a", "b"], n)
    long, short = (bd.MTWRLS(graph, 2, 1.0, Restore(0.5), solver=solver) for _ in range(2))
    for model, first in ((long, 0), (short, 2 * n - 140)):
        model.learn_many(X[first:], y[first:], tasks[first:], rounds=np.arange(first, 2 * n) // 2)
    np.testing.assert_allclose(long.coef, short.coef, rtol=1e-9)
    np.testing.assert_allclose(long.covariance, short.covariance, rtol=1e-9)
