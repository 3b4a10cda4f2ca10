"""Forgetting policies, each against its closed form at every sample."""

from datetime import timedelta

import numpy as np
import pytest

import braided as bd
from braided.forgetting import Directional, Drift, Exponential, HalfLife, Restore
from braided.learners.solvers.exact import information_of
from braided.state import dumps, loads
from tests.reference.linear import batch, stack
from tests.streams import random_graph

T, D, ROUNDS, PENALTY = 4, 3, 12, 0.7


def stream(seed=0, missing=0.3):
    """Samples in rounds in which not every task comes."""
    rng = np.random.default_rng(seed)
    rounds, tasks = np.nonzero(rng.uniform(size=(ROUNDS, T)) >= missing)
    X = rng.normal(size=(len(tasks), D))
    return X, rng.normal(size=len(tasks)), tasks, rounds


def filtered(X, y, tasks, rounds, upto, covariance):
    """Mean and covariance of the weights after round `upto`, by the joint Gaussian of all that was seen.

    `covariance(n, m)` is that of the weights at rounds n and m; noise has variance 1.
    """
    seen = rounds <= upto
    Z = np.array([stack(x, t, T) for x, t in zip(X[seen], tasks[seen], strict=True)])
    K = np.array(
        [
            [a @ covariance(n, m) @ b for b, m in zip(Z, rounds[seen], strict=True)]
            for a, n in zip(Z, rounds[seen], strict=True)
        ]
    )
    cross = np.array([covariance(upto, m) @ b for b, m in zip(Z, rounds[seen], strict=True)]).T
    gain = np.linalg.solve(K + np.eye(len(K)), cross.T).T
    return gain @ y[seen], covariance(upto, upto) - gain @ cross.T


def opened(rounds):
    """The number of rounds opened up to each label, as weights move when one opens."""
    return {label: place + 1 for place, label in enumerate(np.unique(rounds).tolist())}


@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("policy", ["restore", "drift", "drift by another graph"])
def test_weights_that_wander_are_those_of_a_gaussian_process(policy, storage):
    rng = np.random.default_rng(1)
    graph, other = random_graph(rng, T, storage=storage), random_graph(rng, T, storage="dense")
    A = graph.dense_relation
    start = np.kron(np.linalg.inv(PENALTY * A), np.eye(D))
    X, y, tasks, rounds = stream()
    count = opened(rounds)
    if policy == "restore":
        forgetting = Restore(0.8)

        def covariance(n, m):
            return 0.8 ** abs(count[n] - count[m]) * start

    else:
        chosen = other if "another" in policy else graph
        forgetting = Drift(0.3, None if chosen is graph else other)
        walk = 0.3 * np.kron(np.linalg.inv(chosen.dense_relation), np.eye(D))

        def covariance(n, m):
            return start + min(count[n], count[m]) * walk

    model = bd.MTWRLS(graph, D, PENALTY, forgetting)
    for label in np.unique(rounds):
        own = rounds == label
        model.learn_many(X[own], y[own], tasks[own], rounds=rounds[own])
        mean, P = filtered(X, y, tasks, rounds, label, covariance)
        np.testing.assert_allclose(model.coef.ravel(), mean, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(model.covariance, P, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("policy", [Restore(0.8), Drift(0.3)], ids=repr)
def test_one_filter_per_task_is_the_graph_without_edges(policy):
    X, y, tasks, rounds = stream()
    names = list(range(T))
    alone = bd.WRLS(names, D, PENALTY, policy)
    joint = bd.MTWRLS(bd.TaskGraph.independent(names), D, PENALTY, policy)
    a, b = (model.progressive(X, y, tasks, rounds=rounds) for model in (alone, joint))
    np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(alone.coef, joint.coef, rtol=1e-12)


def test_after_a_half_life_the_past_weighs_half():
    X, y, tasks, rounds = stream()
    days = np.cumsum(np.random.default_rng(2).integers(1, 9, ROUNDS))[rounds]
    stamps = np.datetime64("2024-01-01", "us") + days * np.timedelta64(86_400_000_000, "us")
    graph = random_graph(np.random.default_rng(1), T)
    by_clock = bd.MTWRLS(graph, D, PENALTY, HalfLife(timedelta(days=10)))
    by_number = bd.MTWRLS(graph, D, PENALTY, HalfLife(10))
    alone = bd.WRLS(list(range(T)), D, PENALTY, HalfLife(np.timedelta64(10, "D")))
    for k, (x, target, t) in enumerate(zip(X, y, tasks, strict=True)):
        by_clock.learn_one(x, target, task=int(t), round=stamps[k])
        by_number.learn_one(x, target, task=int(t), round=int(days[k]))
        alone.learn_one(x, target, task=int(t), round=stamps[k])
        seen = slice(k + 1)
        weights, faded = 0.5 ** ((days[k] - days[seen]) / 10.0), 0.5 ** ((days[k] - days[0]) / 10.0)
        expected = batch(graph.dense_relation, PENALTY, X[seen], y[seen], tasks[seen], weights, faded)
        np.testing.assert_allclose(by_clock.coef, expected[0], rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(by_clock.covariance, expected[1], rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(by_number.coef, by_clock.coef, rtol=1e-12)
        single = batch(np.eye(T), PENALTY, X[seen], y[seen], tasks[seen], weights, faded)
        np.testing.assert_allclose(alone.coef, single[0], rtol=1e-9, atol=1e-11)


def test_directional_forgetting_is_that_of_its_information():
    X, y, tasks, _ = stream()
    graph = random_graph(np.random.default_rng(1), T)
    model = bd.MTWRLS(graph, D, PENALTY, Directional(0.7))
    information = PENALTY * np.kron(graph.dense_relation, np.eye(D))
    w = np.zeros(T * D)
    for x, target, t in zip(X, y, tasks, strict=True):
        z = stack(x, t, T)
        P = np.linalg.inv(information)
        r = z @ P @ z
        w = w + P @ z * (target - z @ w) / (0.7 + r)
        information = information + (1.0 - 0.3 / r) * np.outer(z, z)
        model.learn_one(x, target, task=int(t))
        np.testing.assert_allclose(model.coef.ravel(), w, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(np.linalg.inv(model.covariance), information, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("kind", [bd.MTWRLS, bd.WRLS])
def test_without_forgetting_all_are_least_squares(kind):
    X, y, tasks, rounds = stream()
    first = bd.TaskGraph.pooled(range(T)) if kind is bd.MTWRLS else list(range(T))
    plain = kind(first, D, PENALTY).progressive(X, y, tasks, rounds=rounds)
    for policy in (Restore(1.0), Directional(1.0), Drift(1e-150), HalfLife(1e150)):
        made = kind(first, D, PENALTY, policy).progressive(X, y, tasks, rounds=rounds)
        np.testing.assert_allclose(made, plain, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("policy", [Restore(0.9), Directional(0.9), Drift(0.1), HalfLife(5)], ids=repr)
@pytest.mark.parametrize("kind", [bd.MTWRLS, bd.WRLS])
def test_pieces_saved_and_loaded_go_on_to_the_bit(policy, kind, tmp_path):
    X, y, tasks, rounds = stream()
    first = bd.TaskGraph.pooled(range(T)) if kind is bd.MTWRLS else list(range(T))
    whole, model = kind(first, D, PENALTY, policy), kind(first, D, PENALTY, policy)
    expected = whole.progressive(X, y, tasks, rounds=rounds)
    cut = int(np.searchsorted(rounds, 6))
    made = model.progressive(X[:cut], y[:cut], tasks[:cut], rounds=rounds[:cut])
    bd.save(model, tmp_path / "model")
    again = bd.load(tmp_path / "model")
    rest = again.progressive(X[cut:], y[cut:], tasks[cut:], rounds=rounds[cut:])
    np.testing.assert_array_equal(np.append(made, rest), expected)


@pytest.mark.parametrize("policy", [Restore(0.95), Directional(0.95), Drift(0.01)], ids=repr)
def test_a_silent_task_does_not_wind_up(policy):
    """P stays bounded and positive definite without any guard."""
    rng = np.random.default_rng(4)
    model = bd.MTWRLS(bd.TaskGraph.pooled(range(3)), 2, 1.0, policy)
    largest = 0.0
    for n in range(3000):
        for t in (0, 1, 2) if n < 50 else (0, 1):
            model.learn_one(rng.normal(size=2), rng.normal(), task=t, round=n)
        if n % 500 == 499:
            eigenvalues = np.linalg.eigvalsh(model.covariance)
            assert eigenvalues[0] > 0.0
            largest = max(largest, eigenvalues[-1])
    start = np.linalg.eigvalsh(bd.MTWRLS(bd.TaskGraph.pooled(range(3)), 2, 1.0).covariance)[-1]
    bound = start + 3000 * 0.01 / 0.1 if isinstance(policy, Drift) else start
    assert largest <= bound * (1.0 + 1e-9)


def test_tasks_that_join_drift_by_themselves():
    graph = bd.TaskGraph.pooled(["a", "b"])
    model = bd.MTWRLS(graph, 1, 1.0, Drift(0.5, graph))
    model.learn_one([1.0], 1.0, task="a", round=0)
    model.add_task("c", {"a": 0.5})
    before = model.covariance
    model.learn_one([0.0], 0.0, task="c", round=1)  # moves, and tells nothing
    grown = model.covariance - before
    np.testing.assert_allclose(grown[:2, :2], 0.5 * graph.inverse)
    np.testing.assert_allclose(grown[2], [0.0, 0.0, 0.5 * np.diag(graph.inverse).mean()], atol=1e-12)
    model.remove_task("a")
    model.learn_one([1.0], 1.0, task="b", round=2)
    assert np.isfinite(model.coef).all()


def test_what_is_refused():
    graph = bd.TaskGraph.pooled(["a", "b"])
    for bad in (0.0, 1.5, -1.0):
        for policy in (Restore, Directional):
            with pytest.raises(bd.InputError, match="factor is"):
                policy(bad)
    with pytest.raises(bd.InputError, match="variance is 0"):
        Drift(0.0)
    with pytest.raises(bd.InputError, match="duration is 0"):
        HalfLife(timedelta(0))
    model = bd.MTWRLS(graph, 1, 1.0, HalfLife(3))
    with pytest.raises(bd.InputError, match="HalfLife goes by the clock: give the time stamps"):
        model.learn_one([1.0], 1.0, task="a")
    assert model.samples == 0
    with pytest.raises(bd.InputError, match="the graph of Drift knows none of the tasks, such as 'a'"):
        bd.MTWRLS(graph, 1, 1.0, Drift(0.1, bd.TaskGraph.pooled(["x", "y"]))).learn_one([1.0], 1.0, task="a")
    with pytest.raises(bd.InputError, match="the tasks of WRLS share nothing: give Drift without a graph"):
        bd.WRLS(["a", "b"], 1, 1.0, Drift(0.1, graph))
    with pytest.raises(bd.InputError, match="forgetting is a Restore, which needs a covariance: give MADMM a number"):
        bd.MADMM(graph, 1, forgetting=Restore(0.9))


def test_tasks_drift_by_themselves_when_all_that_the_graph_of_drift_knows_have_left():
    other = bd.TaskGraph([[0.0, 0.5], [0.5, 0.0]], ["a", "x"], ridge=0.5)
    model = bd.MTWRLS(bd.TaskGraph.pooled(["a", "b", "c"]), 1, 1.0, Drift(0.1, other))
    model.learn_one([1.0], 1.0, task="a")
    model.remove_task("a")
    before = model.covariance
    model.learn_one([1.0], 0.0, task="b", weight=0.0)
    own = 0.1 * float(np.diag(other.inverse).mean())
    np.testing.assert_allclose(model.covariance, before + own * np.eye(2), rtol=1e-12)
    again = loads(dumps(model))
    again.learn_one([1.0], 2.0, task="c")
    model.learn_one([1.0], 2.0, task="c")
    assert dumps(again) == dumps(model)


def test_a_long_pause_fades_no_more_than_so_much():
    model = bd.MTWRLS(bd.TaskGraph.pooled(["a", "b"]), 1, 1.0, HalfLife(1.0))
    model.learn_one([1.0], 1.0, task="a", round=0)
    model.learn_one([1.0], 1.0, task="a", round=10**9)
    assert np.isfinite(model.covariance).all()


@pytest.mark.parametrize("policy", [bd.Exponential(0.9), bd.Exponential(0.9, per="task"), HalfLife(5)], ids=repr)
def test_the_information_is_that_of_the_covariance_after_tasks_join_and_leave(policy):
    X, y, tasks, rounds = stream()
    model = bd.MTWRLS(random_graph(np.random.default_rng(1), T), D, PENALTY, policy)
    model.learn_many(X, y, tasks, rounds=rounds)
    model.add_task("new", {0: 0.5, 2: 0.3})
    np.testing.assert_allclose(information_of(model.state) @ model.covariance, np.eye(D * (T + 1)), atol=1e-7)
    model.learn_one([1.0, 2.0, 3.0], 1.0, task="new", round=ROUNDS)
    model.remove_task(1)
    np.testing.assert_allclose(
        information_of(model.state) @ model.covariance, np.eye(D * T), atol=1e-4
    )  # a little of the prior


def test_a_task_joins_and_leaves_where_all_has_wound_up():
    model = bd.MTWRLS(random_graph(np.random.default_rng(1), T), D, PENALTY, 0.2)
    for n in range(40):
        model.learn_one(np.zeros(D), 0.0, task=n % 2)
    model.add_task("new", {0: 0.5})
    model.learn_many(np.ones((3, D)), np.ones(3), ["new", 0, "new"])
    model.remove_task(0)
    model.learn_many(np.ones((3, D)), np.ones(3), ["new", 1, "new"])
    assert np.isfinite(model.covariance).all()
    assert model.predict_one(np.ones(D), task="new") == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("kind", [bd.MTWRLS, bd.WRLS])
@pytest.mark.parametrize("policy", [HalfLife(2.0), Restore(0.9), Drift(0.1)], ids=repr)
def test_a_refused_sample_that_opens_a_round_moves_nothing(policy, kind):
    model, rng = kind(bd.TaskGraph.pooled(["a", "b"]), 2, 1.0, policy), np.random.default_rng(0)
    model.learn_many(rng.normal(size=(8, 2)), rng.normal(size=8), list("ab") * 4, rounds=np.arange(8) // 2)
    before = dumps(model)
    with pytest.raises(bd.NumericalError):
        model.learn_one([1e160, 1e160], 1.0, task="a", round=9)
    assert dumps(model) == before
    with pytest.raises(bd.NumericalError):
        model.learn_many([[1e160, 1e160]], [1.0], ["a"], rounds=[9])
    assert dumps(model) == before


def test_a_custom_policy_that_fades_all_alike_is_guarded_and_may_be_local():
    class Half:
        def fades(self, opens):
            return np.tile([0.5, 1.0], (opens.size, 1))

    given = np.ones((200, 2)), np.ones(200), ["a"] * 200
    custom, own = (bd.MTWRLS(bd.TaskGraph.pooled(["a", "b"]), 2, 1.0, one) for one in (Half(), Exponential(0.5)))
    np.testing.assert_array_equal(custom.progressive(*given), own.progressive(*given))
    assert custom.health == own.health
    assert custom.health.guarded > 0
    assert bd.MTWRLS(bd.TaskGraph.pooled(["a", "b"]), 2, 1.0, Half(), solver="local").uses == "local"


def test_a_task_that_joins_leaves_the_noise_of_directional_forgetting():
    model, rng = bd.MTWRLS(bd.TaskGraph.pooled(["a", "b"]), 2, 1.0, Directional(0.9)), np.random.default_rng(0)
    model.learn_many(rng.normal(size=(20, 2)), rng.normal(size=20), ["a", "b"] * 10)
    before = model.noise_variance
    model.add_task("c", {"a": 0.5})
    assert model.noise_variance == before
