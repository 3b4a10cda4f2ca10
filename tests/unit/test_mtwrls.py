"""MTWRLS holds the exact solution after every sample."""

import numpy as np
import pytest

import braided as bd
from braided.learners.solvers.exact import information_of
from braided.state import dumps
from tests.reference.linear import batch, own_clock, recursion, stack
from tests.streams import random_graph, random_stream, worst


@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("form", ["laplacian", "penalty"])
@pytest.mark.parametrize("penalty", [1e-3, 1.0, 1e2])
@pytest.mark.parametrize("per", ["sample", "round"])
@pytest.mark.parametrize("forgetting", [1.0, 0.99, 0.9])
@pytest.mark.parametrize("solver", ["dense", "blocked"])
def test_equals_the_weighted_batch_solution_at_every_sample(solver, forgetting, per, penalty, form, storage):
    rng = np.random.default_rng(1)
    T, d = 4, 3
    graph = random_graph(rng, T, storage=storage, form=form)
    X, y, tasks, rounds = random_stream(rng, T, d, n_rounds=15)
    sample_weights = rng.uniform(0.2, 3.0, len(y))
    model = bd.MTWRLS(graph, d, penalty, bd.Exponential(forgetting, per=per), solver=solver)
    ticks = np.arange(len(y)) if per == "sample" else rounds
    for i in range(len(y)):
        model.learn_one(X[i], y[i], task=int(tasks[i]), weight=sample_weights[i], round=int(rounds[i]))
        seen = slice(0, i + 1)
        weights = sample_weights[seen] * forgetting ** (ticks[i] - ticks[seen])
        prior = forgetting ** (ticks[i] + 1)
        w, P, minimum = batch(graph.dense_relation, penalty, X[seen], y[seen], tasks[seen], weights, prior)
        assert worst(model.coef, w) < 1e-10
        assert worst(model.covariance, P) < 1e-10
        assert model.noise_variance == pytest.approx(minimum / weights.sum(), rel=1e-9)


def test_equals_the_printed_recursion():
    rng = np.random.default_rng(2)
    graph = random_graph(rng, 3)
    X, y, tasks, _ = random_stream(rng, 3, 2, n_rounds=20)
    model = bd.MTWRLS(graph, 2, penalty=0.3, forgetting=0.95)
    P, w = np.kron(np.linalg.inv(0.3 * graph.relation), np.eye(2)), np.zeros(6)
    for x, target, t in zip(X, y, tasks, strict=True):
        model.learn_one(x, target, task=int(t))
        P, w = recursion(P, w, stack(x, t, 3), target, 0.95)
        assert worst(model.coef.ravel(), w) < 1e-10
        assert worst(model.covariance, P) < 1e-10


@pytest.mark.parametrize("forgetting", [1.0, 0.97, 0.8])
def test_a_clock_a_task_equals_its_information_form(forgetting):
    rng = np.random.default_rng(3)
    T, d = 4, 3
    graph = random_graph(rng, T)
    X, y, tasks, _ = random_stream(rng, T, d, n_rounds=20)
    model = bd.MTWRLS(graph, d, 0.5, bd.Exponential(forgetting, per="task"))
    information, w = 0.5 * np.kron(graph.relation, np.eye(d)), np.zeros(T * d)
    for x, target, t in zip(X, y, tasks, strict=True):
        model.learn_one(x, target, task=int(t))
        block = slice(t * d, (t + 1) * d)
        information, w = own_clock(information, w, stack(x, t, T), target, forgetting, block)
        assert worst(model.coef.ravel(), w) < 1e-10
        assert worst(model.covariance, np.linalg.inv(information)) < 1e-10


@pytest.mark.parametrize("forgetting", [1.0, 0.98, 0.9])
def test_without_edges_a_clock_a_task_gives_independent_filters(forgetting):
    rng = np.random.default_rng(4)
    X, y, tasks, rounds = random_stream(rng, 5, 3, n_rounds=40)
    graph = bd.TaskGraph.independent(range(5), ridge=1.0)
    joint = bd.MTWRLS(graph, 3, 0.7, bd.Exponential(forgetting, per="task"))
    single = bd.WRLS(range(5), 3, 0.7, forgetting)
    assert worst(joint.progressive(X, y, tasks), single.progressive(X, y, tasks)) < 1e-10
    assert worst(joint.coef, single.coef) < 1e-10
    assert worst(joint.progressive(X, y, tasks, rounds=rounds), single.progressive(X, y, tasks, rounds=rounds)) < 1e-10


@pytest.mark.parametrize("forgetting", [0.995, 1.0])
def test_a_hundred_thousand_samples_later_it_is_still_the_batch_solution(forgetting):
    rng = np.random.default_rng(5)
    T, d, n_rounds = 10, 10, 10_000
    graph = random_graph(rng, T)
    X, y, tasks, _ = random_stream(rng, T, d, n_rounds)
    model = bd.MTWRLS(graph, d, penalty=1.0, forgetting=forgetting)
    forecasts = model.progressive(X, y, tasks)
    assert len(forecasts) == 100_000
    age = np.arange(len(y))[::-1]
    w, P, _ = batch(graph.dense_relation, 1.0, X, y, tasks, forgetting**age, forgetting ** len(y))
    assert worst(model.coef, w) < 1e-6
    assert worst(model.covariance, P) < 1e-6
    assert (model.covariance == model.covariance.T).all()
    assert np.linalg.eigvalsh(model.covariance)[0] > 0


def test_a_weight_of_two_is_the_sample_twice_and_of_zero_is_nothing():
    rng = np.random.default_rng(6)
    graph = random_graph(rng, 3)
    X, y, tasks, _ = random_stream(rng, 3, 2, n_rounds=5)
    twice, heavy = bd.MTWRLS(graph, 2), bd.MTWRLS(graph, 2)
    twice.learn_many(np.repeat(X, 2, axis=0), np.repeat(y, 2), np.repeat(tasks, 2))
    heavy.learn_many(X, y, tasks, weights=np.full(len(y), 2.0))
    assert worst(heavy.coef, twice.coef) < 1e-10
    assert heavy.noise_variance == pytest.approx(twice.noise_variance)
    before = heavy.coef
    heavy.learn_one(X[0], 1e6, task=0, weight=0.0)
    assert (heavy.coef == before).all()


@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("form", ["laplacian", "penalty"])
@pytest.mark.parametrize("links", [{}, {0: 0.8}, {0: 0.8, 2: 0.1, 3: 2.0}])
def test_a_joining_task_gives_the_batch_solution_on_the_enlarged_graph(links, form, storage):
    rng = np.random.default_rng(7)
    graph = random_graph(rng, 4, ridge=0.01, storage=storage, form=form)
    X, y, tasks, _ = random_stream(rng, 5, 3, n_rounds=12)
    early = np.flatnonzero(tasks < 4)[:30]
    late = np.setdiff1d(np.arange(len(y)), early)
    model = bd.MTWRLS(graph, 3, penalty=0.2)
    model.learn_many(X[early], y[early], tasks[early])
    model.add_task(4, similar_to=links)
    enlarged = graph.join(4, links)
    w, P, minimum = batch(enlarged.dense_relation, 0.2, X[early], y[early], tasks[early])
    assert worst(model.coef, w) < 1e-10
    assert worst(model.covariance, P) < 1e-10
    assert model.noise_variance == pytest.approx(minimum / len(early), rel=1e-9)
    model.learn_many(X[late], y[late], tasks[late])
    order = np.concatenate([early, late])
    w, P, _ = batch(enlarged.dense_relation, 0.2, X[order], y[order], tasks[order])
    assert worst(model.coef, w) < 1e-10
    assert worst(model.covariance, P) < 1e-10


@pytest.mark.parametrize("per", ["sample", "round", "task"])
def test_under_forgetting_a_joining_task_adds_its_edges_at_full_strength(per):
    rng = np.random.default_rng(11)
    graph = random_graph(rng, 3, density=1.0)
    X, y, tasks, rounds = random_stream(rng, 3, 2, n_rounds=20)
    model = bd.MTWRLS(graph, 2, 0.4, bd.Exponential(0.9, per=per))
    model.learn_many(X, y, tasks, rounds=rounds)
    information, w = np.linalg.inv(model.covariance), model.coef.ravel()
    model.add_task("new", {0: 0.7, 2: 0.3})
    larger = np.zeros((4, 4))
    larger[:3, :3] = graph.relation
    gained = 0.4 * np.kron(graph.join("new", {0: 0.7, 2: 0.3}).relation - larger, np.eye(2))
    gained[:6, :6] += information
    assert worst(model.covariance, np.linalg.inv(gained)) < 1e-9
    assert worst(model.coef.ravel(), np.linalg.solve(gained, np.append(information @ w, [0, 0]))) < 1e-9


def test_a_leaving_task_changes_no_other_forecast_now_or_later():
    rng = np.random.default_rng(8)
    graph = random_graph(rng, 4)
    X, y, tasks, _ = random_stream(rng, 4, 3, n_rounds=20)
    stays, leaves = bd.MTWRLS(graph, 3), bd.MTWRLS(graph, 3)
    for model in (stays, leaves):
        model.learn_many(X[:40], y[:40], tasks[:40])
    leaves.remove_task(1)
    others = np.flatnonzero(tasks[40:] != 1) + 40
    mean, std = leaves.progressive(X[others], y[others], tasks[others], with_std=True)
    expected, expected_std = stays.progressive(X[others], y[others], tasks[others], with_std=True)
    assert worst(mean, expected) < 1e-12
    assert worst(std, expected_std) < 1e-12
    assert leaves.tasks == (0, 2, 3)


def test_the_deviation_covers_what_it_says():
    """On data drawn from the model, the standardised errors have mean square 1."""
    rng = np.random.default_rng(9)
    X, y, tasks, rounds = random_stream(rng, 5, 4, n_rounds=2000, noise=0.5)
    model = bd.MTWRLS(random_graph(rng, 5), 4, penalty=0.1)
    mean, std = model.progressive(X, y, tasks, rounds=rounds, with_std=True)
    late = slice(1000, None)
    assert np.mean(((y - mean) / std)[late] ** 2) == pytest.approx(1.0, abs=0.03)
    assert np.sqrt(model.noise_variance) == pytest.approx(0.5, rel=0.02)


def test_wind_up_does_not_reach_forecasts():
    """Two equal features: P grows without bound along their difference, and the guard makes it anew now and then."""
    rng = np.random.default_rng(13)
    y = 1 + 0.1 * rng.normal(size=2000)
    model = bd.WRLS([0], 2, forgetting=0.9)
    exact, total, weight = np.zeros(2000), 0.0, 1.0 / 2.0  # the weighted mean, by the same forgetting of the same prior
    forecasts = np.full(2000, np.nan)
    for i in range(2000):
        exact[i] = total / weight
        forecasts[i] = model.predict_one([1.0, 1.0], task=0)
        total, weight = 0.9 * total + y[i], 0.9 * weight + 1.0
        model.learn_one([1.0, 1.0], y[i], task=0)
    assert np.abs(forecasts - exact).max() < 1e-4
    assert model.state.guarded[0] > 0
    assert model.covariance.max() < 1e12


def test_a_task_silent_for_long_under_forgetting_has_an_infinite_deviation_and_harms_no_other():
    rng = np.random.default_rng(14)
    model = bd.MTWRLS(bd.TaskGraph.pooled(range(3)), 2, forgetting=0.8)
    X, y = rng.normal(size=(9000, 2)), rng.normal(size=9000)
    model.learn_many(X, y, np.arange(9000) % 2)
    assert np.isfinite(model.covariance).all()
    mean, std = model.predict_one([1.0, 1.0], task=2, with_std=True)
    assert np.isfinite(mean)
    assert std > 1e3
    assert model.predict_one([1.0, 1.0], task=0, with_std=True)[1] < 10
    assert np.linalg.eigvalsh(model.covariance)[0] > 0.0


def test_the_round_that_broke_down_is_not_the_last_one_learned():
    model = bd.MTWRLS(bd.TaskGraph.pooled([0, 1]), 1, forgetting=bd.Exponential(0.5, per="round"))
    with pytest.raises(bd.NumericalError):
        model.learn_many([[1.0], [1e200], [1.0]], [1.0, 1.0, 2.0], [0, 1, 1], rounds=[0, 1, 1])
    clean = bd.MTWRLS(bd.TaskGraph.pooled([0, 1]), 1, forgetting=bd.Exponential(0.5, per="round"))
    clean.learn_one([1.0], 1.0, task=0, round=0)
    for m in (model, clean):
        m.learn_one([1.0], 2.0, task=1, round=1)
    assert dumps(model) == dumps(clean)


@pytest.mark.parametrize("similarity", [1e-8, 1.0, 1e8, 1e11])
def test_joining_by_strong_and_weak_edges_is_exact(similarity):
    """One sample, one feature: the solution on two tasks is a two by two system."""
    model = bd.MTWRLS(bd.TaskGraph.pooled(["a"], ridge=0.1), 1)
    model.learn_one([1.0], 1.0, task="a")
    model.add_task("b", {"a": similarity})
    s = similarity  # (1 + γ + s) a − s b = 1, (γ + s) b = s a
    a = 1.0 / (1.0 + 0.1 + s * 0.1 / (0.1 + s))
    np.testing.assert_allclose(model.coef.ravel(), [a, a * s / (0.1 + s)], rtol=1e-10)


def test_the_deviation_is_infinite_before_the_first_sample():
    model = bd.MTWRLS(bd.TaskGraph.pooled("ab"), 1)
    assert model.predict_one([1.0], task="ab", with_std=True) == (0.0, np.inf)


@pytest.mark.parametrize("sigma", [0.01, 0.2, 0.4, 0.6, 0.8, 0.95, 1.0])
@pytest.mark.parametrize("penalty", [1e-10, 1.0, 1e10])
def test_every_point_of_the_papers_grid_stays_finite_and_positive_definite(sigma, penalty):
    """σ = 0.2 made P indefinite by round 5, and 0.01 was not finite by round 17, before there was a guard."""
    rng = np.random.default_rng(10)
    X, y, tasks, _ = random_stream(rng, 10, 4, n_rounds=150)
    model = bd.MTWRLS(random_graph(rng, 10), 4, penalty, sigma)
    assert np.isfinite(model.progressive(X, y, tasks)).all()
    eigenvalues = np.linalg.eigvalsh(model.covariance)
    assert eigenvalues[0] > (0.0 if penalty > 1e-10 else -1e-10 * eigenvalues[-1])  # as well as it can be told
    assert model.state.guarded[0] > 0 or sigma > 0.6


@pytest.mark.parametrize("per", ["sample", "round", "task"])
def test_where_nothing_winds_up_the_guard_changes_nothing(per):
    rng = np.random.default_rng(11)
    X, y, tasks, rounds = random_stream(rng, 4, 3, n_rounds=200)
    graph = random_graph(rng, 4)
    guarded, bare = (bd.MTWRLS(graph, 3, 1.0, bd.Exponential(0.98, per=per, guard=guard)) for guard in (True, False))
    one, other = (model.progressive(X, y, tasks, rounds=rounds) for model in (guarded, bare))
    np.testing.assert_array_equal(one, other)
    np.testing.assert_allclose(guarded.covariance, bare.covariance, rtol=1e-12)
    assert guarded.state.guarded[0] == 0
    # and the information is that of P
    scale = guarded.state.totals[0, 0]
    information = guarded.state.base[0].copy()
    for t in range(4):
        own = slice(3 * t, 3 * t + 3)
        information[own, own] += guarded.state.gained[t]
    np.testing.assert_allclose(information / scale, np.linalg.inv(guarded.covariance), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("per", ["sample", "round", "task"])
def test_a_sample_that_cannot_be_learned_leaves_no_trace(per):
    rng = np.random.default_rng(12)
    X, y, tasks, rounds = random_stream(rng, 3, 2, n_rounds=5)
    model = bd.MTWRLS(random_graph(rng, 3), 2, 1.0, bd.Exponential(0.9, per=per))
    model.learn_many(X, y, tasks, rounds=rounds)
    before = dumps(model)
    for _ in range(2):
        with pytest.raises(bd.NumericalError, match="broke down at sample 0"):
            model.learn_one([1e200, 0.0], 1.0, task=0, round=99)
        assert dumps(model) == before


def after_a_large_input(solver):
    """No digit of the prior is left beside the squares of the input."""
    model = bd.MTWRLS(bd.TaskGraph.pooled(["a", "b", "c"]), 2, 1e-3, 0.9, solver=solver)
    model.learn_one([1e12, 1e12], 1.0, task="a")
    return model


def test_a_task_whose_input_was_large_can_leave():
    model = after_a_large_input("dense")
    before = model.predict_many(np.eye(2), ["b", "c"])
    model.remove_task("a")
    np.testing.assert_array_equal(model.predict_many(np.eye(2), ["b", "c"]), before)
    np.testing.assert_allclose(information_of(model.state) @ model.covariance, np.eye(4), atol=1e-8)
    model.learn_one([1.0, 2.0], 3.0, task="b")
    assert abs(model.predict_one([1.0, 2.0], task="b") - 3.0) < 1e-3


def test_a_task_that_cannot_join_is_reported_with_a_remedy_and_nothing_changes():
    model = after_a_large_input("local")
    before = dumps(model)
    with pytest.raises(bd.NumericalError, match=r"task 'd' can't join; the model is unchanged .*: scale features"):
        model.add_task("d", {"a": 1.0})
    assert dumps(model) == before
