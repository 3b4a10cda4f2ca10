"""The robust step: what one wild value may do, and what it must leave alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import braided as bd
from braided.forgetting import Directional, Drift, Restore
from braided.learners.solvers.exact import information_of
from tests.reference.linear import batch
from tests.streams import random_graph, random_stream

K = 4.0
MAKERS = {
    "MTWRLS": lambda g, k: bd.MTWRLS(g, 3, 0.5, robust=k),
    "MTWRLS forgets": lambda g, k: bd.MTWRLS(g, 3, 0.5, 0.98, robust=k),
    "MTWRLS by round": lambda g, k: bd.MTWRLS(g, 3, 0.5, bd.Exponential(0.9, per="round"), robust=k),
    "MTWRLS per task": lambda g, k: bd.MTWRLS(g, 3, 0.5, bd.Exponential(0.95, per="task"), robust=k),
    "MTWRLS directional": lambda g, k: bd.MTWRLS(g, 3, 0.5, Directional(0.9), robust=k),
    "MTWRLS restores": lambda g, k: bd.MTWRLS(g, 3, 0.5, Restore(0.99), robust=k),
    "MTWRLS drifts": lambda g, k: bd.MTWRLS(g, 3, 0.5, Drift(0.01), robust=k),
    "WRLS": lambda g, k: bd.WRLS(g, 3, 0.5, 0.99, robust=k),
    "MTOSLSSVR": lambda g, k: bd.MTOSLSSVR(g, 3, "rbf", 0.1, budget=500, robust=k),
    "OSLSSVR": lambda g, k: bd.OSLSSVR(g, 3, "linear", 0.5, robust=k),
}
FORGETTING = [name for name in MAKERS if name.startswith("MTWRLS ")]


@pytest.mark.parametrize("name", MAKERS)
def test_where_nothing_is_unusual_nothing_changes(name):
    rng = np.random.default_rng(0)
    graph = random_graph(rng, 4)
    X, y, tasks, rounds = random_stream(rng, 4, 3, 60)
    plain, robust = (MAKERS[name](graph, k).progressive(X, y, tasks, rounds=rounds) for k in (None, 1e9))
    np.testing.assert_array_equal(plain, robust)


def spread(model, x, task):
    """√(z'Pz) of a forecast: its own standard deviation over that of the noise."""
    t = model.graph.index(task)
    own = slice(t * len(x), (t + 1) * len(x))
    return np.sqrt(x @ model.covariance[own, own] @ x)


@pytest.mark.parametrize("name", ["MTWRLS", *FORGETTING])
@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.sampled_from([1e1, 1e3, 1e6, 1e12, 1e100]),
    sign=st.sampled_from([-1.0, 1.0]),
    leverage=st.sampled_from([1.0, 1e3, 1e6]),
)
def test_no_sample_moves_a_forecast_by_more_than_k_of_its_own_deviations(name, seed, size, sign, leverage):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, 4)
    model = MAKERS[name](graph, K)
    X, y, tasks, rounds = random_stream(rng, 4, 3, 30)
    model.learn_many(X, y, tasks, rounds=rounds)
    asked = rng.normal(size=(4, 3))
    model.learn_one(rng.normal(size=3), 0.1, task=1, round=30)  # opens the round, and all weights move
    before = model.predict_many(asked, range(4))
    fade = model.forgetting.factor if "forgets" in name or "per task" in name else 1.0
    own = np.array([spread(model, x, t) for t, x in enumerate(asked)]) / np.sqrt(fade)
    (square, seen, _), pooled = model.state.errors[0], model.state.errors[-1, 0]
    scale = np.sqrt((seen * square + 10.0 * pooled) / (seen + 10.0))
    if isinstance(model.forgetting, Directional):
        scale /= np.sqrt(model.forgetting.factor)
    model.learn_one(leverage * rng.normal(size=3), sign * size, task=0, round=30)
    moved = np.abs(model.predict_many(asked, range(4)) - before)
    assert (moved <= K * scale * own * (1.0 + 1e-6)).all()


def test_it_is_least_squares_with_the_weights_it_has_given():
    """Each sample's weight follows from the batch solution of those before it."""
    rng = np.random.default_rng(3)
    graph = random_graph(rng, 3)
    X, y, tasks, _ = random_stream(rng, 3, 2, 25, noise=0.5)
    y[rng.choice(len(y), 8, replace=False)] *= 50.0
    model = bd.MTWRLS(graph, 2, 0.5, robust=K)
    weights, squares, own = [], [], {t: [] for t in range(3)}
    for i in range(len(y)):
        w, P, _ = batch(graph.dense_relation, 0.5, X[:i], y[:i], tasks[:i], weights)
        t = int(tasks[i])
        block = slice(2 * t, 2 * t + 2)
        e, r = y[i] - X[i] @ w[t], X[i] @ P[block, block] @ X[i]
        usual = (sum(own[t]) + 10.0 * np.mean(squares)) / (len(own[t]) + 10.0) if squares else np.inf
        square = min(e * e / (1.0 + r), K * K * usual)
        weights.append(1.0 if square < K * K * usual else 1.0 / (e * e / (K * K * usual) - r))
        squares.append(square)
        own[t].append(square)
        model.learn_one(X[i], y[i], task=t)
        w, P, _ = batch(graph.dense_relation, 0.5, X[: i + 1], y[: i + 1], tasks[: i + 1], weights)
        np.testing.assert_allclose(model.coef, w, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(model.covariance, P, rtol=1e-9, atol=1e-10)
        assert model.noise_variance == pytest.approx(np.mean(squares), rel=1e-9)
    assert 4 <= sum(weight < 1.0 for weight in weights) == model.health.unusual < 20


@pytest.mark.parametrize("name", MAKERS)
def test_wild_values_do_little_harm_and_without_it_great(name):
    rng = np.random.default_rng(5)
    graph = bd.TaskGraph.pooled(range(4), ridge=0.1)
    X, y, tasks, rounds = random_stream(rng, 4, 3, 150)
    wild = y.copy()
    wild[[123, 300, 301, 400]] = 1e6, -1e6, 1e6, 1e6
    scored = np.flatnonzero((rounds > 40) & (wild == y))

    def rmse(k, targets):
        made = MAKERS[name](graph, k).progressive(X, targets, tasks, rounds=rounds)
        return np.sqrt(np.mean((made[scored] - y[scored]) ** 2))

    clean = rmse(None, y)
    assert rmse(K, wild) < 1.15 * clean
    assert rmse(None, wild) > 100.0 * clean


def test_a_lasting_change_is_learned_all_the_same():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(4000, 2))
    y = X @ [1.0, 1.0] + 0.1 * rng.normal(size=4000)
    y[1000:] += 100.0 * X[1000:, 0]  # a hundred deviations and more, for good
    made = bd.WRLS(["a"], 2, 1.0, 0.99, robust=K).progressive(X, y, ["a"] * 4000)
    assert np.sqrt(np.mean((made - y)[2000:] ** 2)) < 0.15


def test_what_is_kept_of_errors_joins_leaves_and_is_saved(tmp_path):
    rng = np.random.default_rng(7)
    X, y, tasks, rounds = random_stream(rng, 3, 3, 40)
    for name in ("MTWRLS", "WRLS", "MTOSLSSVR", "OSLSSVR"):
        model = MAKERS[name](bd.TaskGraph.pooled(range(3)), K)
        model.learn_many(X, y, tasks, rounds=rounds)
        before = model.state.errors.copy()
        assert before[:, 1].tolist() == [40, 40, 40, 120]
        model.add_task("new", {0: 0.5} if model.shares else None)
        model.remove_task(1)
        np.testing.assert_array_equal(model.state.errors, [before[0], before[2], [0.0, 0.0, 0.0], before[3]])
        bd.save(model, tmp_path / name)
        again = bd.load(tmp_path / name)
        x = rng.normal(size=3)
        for one in (model, again):
            one.learn_one(x, 1e9, task=2)
        np.testing.assert_array_equal(*(one.predict_many(X[:5], [0, 2, "new", 0, 2]) for one in (model, again)))


def test_what_is_refused():
    for bad in (0.0, -1.0, np.nan):
        with pytest.raises(bd.InputError, match="robust is"):
            bd.MTWRLS(bd.TaskGraph.pooled(["a", "b"]), 1, robust=bad)


@pytest.mark.parametrize("name", ["MTWRLS", "WRLS", "MTOSLSSVR", "OSLSSVR"])
def test_noise_that_is_expected_limits_the_first_sample_too(name):
    makers = {
        "MTWRLS": lambda n: bd.MTWRLS(bd.TaskGraph.pooled(range(2)), 1, 1.0, robust=K, noise=n),
        "WRLS": lambda n: bd.WRLS(range(2), 1, 1.0, robust=K, noise=n),
        "MTOSLSSVR": lambda n: bd.MTOSLSSVR(bd.TaskGraph.pooled(range(2)), 1, robust=K, noise=n),
        "OSLSSVR": lambda n: bd.OSLSSVR(range(2), 1, robust=K, noise=n),
    }
    blind, told = makers[name](None), makers[name](0.5)
    assert np.isinf(blind.noise_variance).all()
    np.testing.assert_allclose(told.noise_variance, 0.25)
    bound = K * told.predict_one([1.0], task=0, with_std=True)[1]
    for model in (blind, told):
        model.learn_one([1.0], 1e6, task=0)
    assert blind.predict_one([1.0], task=0) > 1e5
    assert 0.0 < told.predict_one([1.0], task=0) < bound
    told.reset()
    np.testing.assert_allclose(told.noise_variance, 0.25)
    with pytest.raises(bd.InputError, match="noise is 0"):
        makers[name](0.0)


@pytest.mark.parametrize("name", ["MTWRLS forgets", "MTWRLS per task"])
def test_the_information_holds_what_was_given_less_weight(name):
    rng = np.random.default_rng(8)
    model = MAKERS[name](random_graph(rng, 4), K)
    X, y, tasks, rounds = random_stream(rng, 4, 3, 20)
    y[[50, 60]] = 1e6
    model.learn_many(X, y, tasks, rounds=rounds)
    assert model.health.unusual >= 2
    np.testing.assert_allclose(information_of(model.state) @ model.covariance, np.eye(12), atol=1e-8)


@pytest.mark.parametrize("name", ["MTWRLS", "WRLS", "MTOSLSSVR", "OSLSSVR"])
def test_samples_without_weight_tell_nothing_of_what_is_usual(name):
    rng = np.random.default_rng(9)
    model = MAKERS[name](bd.TaskGraph.pooled(range(2)), K)
    model.learn_many(rng.normal(size=(20, 3)), rng.normal(size=20), np.arange(20) % 2)
    names = ["errors", *("usage", "age", "sizes", "evicted") * ("SVR" in name)]
    before = {part: getattr(model.state, part).copy() for part in names}
    model.learn_one(rng.normal(size=3), 1e3, task=0, weight=0.0)
    for part in names:
        np.testing.assert_array_equal(getattr(model.state, part), before[part])


def test_weights_of_all_samples_alike_make_nothing_unusual():
    rng = np.random.default_rng(10)
    X, y, tasks, rounds = random_stream(rng, 3, 3, 100, noise=1.0)
    found = []
    for c in (1.0, 100.0, 0.01):
        model = bd.MTWRLS(bd.TaskGraph.pooled(range(3)), 3, c, robust=2.0)
        model.learn_many(X, y, tasks, rounds=rounds, weights=np.full(len(y), c))
        found.append(model.health.unusual)
    assert found[0] == found[1] == found[2] > 0
