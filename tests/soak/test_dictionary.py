"""Dictionaries under inputs that are nearly the same, and under inputs that move on for ever."""

import gc
import tracemalloc

import numpy as np
import pytest

import braided as bd
from braided.kernels import linear, rbf
from tests.soak import either
from tests.soak.configurations import insist_finite, kernel_learners
from tests.streams import random_graph, worst

T, D = 3, 2
PLACES = 5  # that the near-duplicates are near to
GRAPH = random_graph(np.random.default_rng(1), T)
BUDGET = 50


def insist_factor(model, tolerance=1e-12):
    """K = U'U is the kernel matrix of the elements, of every dictionary."""
    state = model.state
    for f, m in enumerate(state.sizes):
        inputs, rows, U = state.inputs[f, :m], state.rows[f, :m], np.triu(state.factor[f, :m, :m])
        K = state.prior[np.ix_(rows, rows)] * np.array([model._kernel(inputs, x) for x in inputs]).reshape(m, m)
        assert m == 0 or worst(U.T @ U, K) < tolerance
        assert (np.diag(U) > 0.0).all()


@pytest.mark.parametrize("kernel", [linear(), rbf()], ids=repr)
@pytest.mark.parametrize("kind", [bd.MTOSLSSVR, bd.OSLSSVR])
def test_near_duplicates_do_not_fill_the_dictionary(kind, kernel):
    """Whatever the novelty, 0 as well: what differs by rounding is no news."""
    n = either(300, 30_000)
    rng = np.random.default_rng(2)
    places = rng.normal(size=(PLACES, D))
    most = T * (D if kernel.is_linear else PLACES)
    for gap in (0.0, 1e-12, 1e-9):
        X = places[rng.integers(PLACES, size=n)] + gap * rng.normal(size=(n, D))
        y, tasks = rng.normal(size=n), rng.integers(T, size=n)
        for novelty in (0.0, 1e-9, 1e-6, 1e-4, 1e-2):
            model = kind(GRAPH, D, kernel, 0.1, novelty)
            for part in np.array_split(np.arange(n), 10):
                mean, std = model.progressive(X[part], y[part], tasks[part], with_std=True)
                assert np.isfinite(mean).all()
                assert not np.isnan(std).any()
                insist_finite(model)
                assert model.state.sizes.sum() <= most, f"novelty {novelty}, gap {gap}"
                insist_factor(model)
            assert model.samples == n


@pytest.mark.parametrize("kind", [bd.MTOSLSSVR, bd.OSLSSVR])
@pytest.mark.parametrize("gap", [1e-7, 1e-5, 1e-3])
def test_what_is_nearly_expressed_leaves_the_factor_exact(kind, gap):
    """Without a novelty worth the name, elements stay as far apart as rounding can tell, and K = U'U holds."""
    n = either(300, 3000)
    rng = np.random.default_rng(3)
    X = rng.normal(size=(PLACES, D))[rng.integers(PLACES, size=n)] + gap * rng.normal(size=(n, D))
    y, tasks = rng.normal(size=n), rng.integers(T, size=n)
    for novelty in (0.0, 1e-12, 1e-6):
        model = kind(GRAPH, D, rbf(), 0.1, novelty, 200)
        for part in np.array_split(np.arange(n), 10):
            assert np.isfinite(model.progressive(X[part], y[part], tasks[part])).all()
            insist_finite(model)
            insist_factor(model)
        assert model.state.sizes.max() <= 200


def moving(n, start=0):
    """Samples whose centre moves on by a hundredth a round; the target is a function of where they are."""
    rng = np.random.default_rng([4, start])
    centre = 0.01 * (start + np.arange(n) // T)
    X = centre[:, None] + 0.5 * rng.normal(size=(n, D))
    return X, np.sin(X).sum(axis=1), np.arange(n) % T, start + np.arange(n) // T


BOUNDED = kernel_learners(budget=BUDGET)


@pytest.mark.parametrize("name", [name for name in BOUNDED if "rbf" in name])
def test_inputs_that_move_on_take_no_more_memory(name):
    model = BOUNDED[name](GRAPH, D)
    n = T * 200

    def passes(first, last):
        for k in range(first, last):
            X, y, tasks, labels = moving(n, k * 200)
            mean, std = model.progressive(X, y, tasks, rounds=labels, with_std=True)
            assert np.isfinite(mean).all()
            assert not np.isnan(std).any()
            insist_finite(model)
            assert model.state.sizes.max() <= BUDGET
            insist_factor(model, 1e-9)

    passes(0, 4)
    size = sum(array.nbytes for array in model.state)
    span = either(4, 80)
    held = []
    tracemalloc.start()
    try:
        for first in range(4, 4 + 6 * span, span):
            passes(first, first + span)
            gc.collect()
            held.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert sum(array.nbytes for array in model.state) == size
    # Caches of the interpreter and of NumPy hold a few kilobytes more in some spans. A leak holds at least 8 bytes per
    # number of the inputs in every span; half of that is the limit.
    assert min(np.diff(held)) < span * n * D * 8 / 2
    assert model.samples == (4 + 6 * span) * n


@pytest.mark.parametrize("kind", [bd.MTOSLSSVR, bd.OSLSSVR])
def test_a_dictionary_with_a_budget_moves_on_with_the_inputs(kind):
    """Late forecasts are as good as early ones, and no element is from the first half of the way."""
    model = kind(GRAPH, D, rbf(), 0.01, 1e-3, BUDGET, forgetting=bd.forgetting.Restore(0.99))
    n = T * either(3000, 100_000)
    X, y, tasks, labels = moving(n)
    errors = np.abs(model.progressive(X, y, tasks, rounds=labels) - y)
    late, early = errors[-n // 10 :].mean(), errors[T * 50 : T * 350].mean()
    assert late < 1.5 * early
    assert late < 0.2 * np.abs(y).mean()
    assert min(model.state.inputs[f, :m].min() for f, m in enumerate(model.state.sizes)) > 0.5 * X[-1].mean()
