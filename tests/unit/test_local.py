"""MTWRLS with solver="local": many tasks on a sparse graph, within a tolerance."""

from datetime import datetime, timedelta

import numpy as np
import pytest
import scipy.sparse as sparse

import braided as bd
from braided._compiled.local_solve import CHUNK, PRIOR
from braided.errors import InputError
from braided.forgetting import Directional, Drift, Exponential, HalfLife, Restore
from braided.learners.solvers import local
from braided.state import dumps, loads

EXACT = 1e-9  # of the tolerance, with which forecasts are those of the exact solution


def graph_of(rng, n, **options):
    return bd.TaskGraph.nearest(rng.random((n, 2)), k=3, **options)


def stream(rng, n_tasks, d, rounds):
    """Tasks that come in any order, and some of them not at all, in each round."""
    W = rng.normal(size=d) + 0.3 * rng.normal(size=(n_tasks, d))
    tasks = np.concatenate([rng.permutation(n_tasks)[: rng.integers(1, n_tasks + 1)] for _ in range(rounds)])
    labels = np.sort(rng.integers(0, rounds, len(tasks)))
    X = rng.normal(size=(len(tasks), d))
    return X, (X * W[tasks]).sum(axis=1) + 0.1 * rng.normal(size=len(tasks)) + 5.0, tasks, labels


POLICIES = [1.0, 0.99, Exponential(0.9, per="round"), HalfLife(3.0)]


@pytest.mark.parametrize("forgetting", POLICIES)
@pytest.mark.parametrize("grouped", [True, False])
def test_forecasts_are_those_of_the_exact_solution(forgetting, grouped):
    rng = np.random.default_rng(0)
    graph, (X, y, tasks, rounds) = graph_of(rng, 20), stream(rng, 20, 3, 8)
    exact, iterated = (
        bd.MTWRLS(graph, 3, 0.3, forgetting, solver=solver, tolerance=EXACT) for solver in ("dense", "local")
    )
    for stop in (len(y) // 2, len(y)):
        part = slice(exact.samples, stop)
        given = X[part], y[part], tasks[part]
        expected, found = (
            model.progressive(*given, rounds=rounds[part], interleaved=not grouped) for model in (exact, iterated)
        )
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(iterated.coef, exact.coef, rtol=1e-6, atol=1e-6)
        assert iterated.noise_variance == pytest.approx(exact.noise_variance, rel=1e-6)
    assert iterated.samples == len(y)
    assert iterated.health.samples == len(y)
    assert iterated.health.largest_variance <= exact.health.largest_variance


def test_tasks_join_and_leave_as_in_the_exact_solution():
    rng = np.random.default_rng(1)
    graph, (X, y, tasks, _) = graph_of(rng, 15), stream(rng, 15, 2, 6)
    exact, iterated = (bd.MTWRLS(graph, 2, 0.5, 0.99, solver=solver, tolerance=EXACT) for solver in ("dense", "local"))
    for model in (exact, iterated):
        model.learn_many(X, y, tasks)
        model.add_task("new", similar_to={3: 2.0, 7: 0.5})
    np.testing.assert_allclose(iterated.coef, exact.coef, rtol=1e-6, atol=1e-7)
    assert iterated.noise_variance == pytest.approx(exact.noise_variance, rel=1e-5)
    for model in (exact, iterated):
        model.learn_many(X[:5], y[:5], ["new", 3, 7, "new", 0])
        model.remove_task(3)
        model.add_task("last")
        model.learn_many(X[5:9], y[5:9], ["new", 7, "last", 0])
    assert iterated.tasks == exact.tasks
    np.testing.assert_allclose(iterated.coef, exact.coef, rtol=1e-6, atol=1e-7)
    again = loads(dumps(iterated))
    assert dumps(again) == dumps(iterated)
    assert again.predict_one(X[0], task="new") == iterated.predict_one(X[0], task="new")
    iterated.reset()
    assert not iterated.coef.any()


def test_deviations_are_at_most_those_of_the_exact_solution_and_come_close():
    rng = np.random.default_rng(2)
    graph, (X, y, tasks, _) = graph_of(rng, 30), stream(rng, 30, 2, 10)
    exact, iterated = (bd.MTWRLS(graph, 2, solver=solver, tolerance=EXACT) for solver in ("dense", "local"))
    for model in (exact, iterated):
        model.learn_many(X, y, tasks)
    (_, expected), (_, found) = (model.predict_many(X[:50], tasks[:50], with_std=True) for model in (exact, iterated))
    ratio = found / expected
    assert (ratio <= 1 + 1e-6).all()
    assert ratio.min() > 0.9
    with pytest.raises(AttributeError, match="covariance"):
        _ = iterated.covariance


def test_the_solver_is_chosen_by_size_graph_and_policy_and_stays():
    small, large = bd.TaskGraph.independent(range(3)), graph_of(np.random.default_rng(3), 700)
    assert bd.MTWRLS(small, 2).uses == "dense"
    assert bd.MTWRLS(small, 40).uses == "blocked"
    assert bd.MTWRLS(large, 3).uses == "local"
    assert bd.MTWRLS(large, 3, forgetting=HalfLife(2.0)).uses == "local"
    assert bd.MTWRLS(large, 2).uses == "blocked"
    assert bd.MTWRLS(bd.TaskGraph(large.similarity.toarray()), 3, solver="local").uses == "local"
    model = bd.MTWRLS(bd.TaskGraph.independent(range(32)), 2)
    model.remove_task(31)
    assert (model.uses, loads(dumps(model)).uses) == ("blocked", "blocked")


@pytest.mark.parametrize("policy", [Restore(0.9), Directional(0.9), Drift(0.1), Exponential(0.9, per="task")])
def test_policies_that_need_a_covariance_are_refused(policy):
    with pytest.raises(InputError, match='use Exponential or HalfLife, or "blocked"'):
        bd.MTWRLS(bd.TaskGraph.independent(["a", "b"]), 1, forgetting=policy, solver="local")


class Odd:
    """A policy of one's own, that fades one stream only."""

    def fades(self, opens):
        return np.tile([1.0, 0.5], (len(opens), 1))


def test_a_policy_of_ones_own_must_fade_all_alike():
    model = bd.MTWRLS(bd.TaskGraph.independent(["a", "b"]), 1, forgetting=Odd(), solver="local")
    with pytest.raises(InputError, match="only fade all tasks alike"):
        model.learn_one([1.0], 1.0, task="a")
    assert model.samples == 0


def test_a_half_life_goes_by_the_clock():
    graph, start = bd.TaskGraph.pooled(["a", "b"]), datetime(2024, 1, 1)
    models = [
        bd.MTWRLS(graph, 1, 1.0, HalfLife(timedelta(hours=1)), solver=s, tolerance=EXACT) for s in ("dense", "local")
    ]
    for model in models:
        for hour, task in enumerate("abab"):
            model.learn_one([1.0], float(hour), task=task, round=start + timedelta(hours=hour))
    np.testing.assert_allclose(models[1].coef, models[0].coef, rtol=1e-7)


def test_one_at_a_time_and_many_at_once_are_the_same():
    rng = np.random.default_rng(4)
    graph, (X, y, tasks, _) = graph_of(rng, 12), stream(rng, 12, 2, 4)
    one, many = (bd.MTWRLS(graph, 2, solver="local", robust=3.0) for _ in range(2))
    y[7] = 1e5
    forecasts = []
    for x, target, task in zip(X, y, tasks, strict=True):
        forecasts.append(one.predict_one(x, task=int(task)))
        one.learn_one(x, target, task=int(task))
    assert many.progressive(X, y, tasks).tolist() == forecasts
    assert one.health.unusual == many.health.unusual > 0
    assert dumps(one) == dumps(many)


@pytest.mark.parametrize("cores", [1, 2, 3, 5])
@pytest.mark.parametrize("forgetting", [1.0, Exponential(0.5, per="round"), 0.999])
def test_threads_change_no_bit(monkeypatch, cores, forgetting):
    rng = np.random.default_rng(5)
    n = 3 * CHUNK - 5
    graph = graph_of(rng, n)
    X, y, tasks, rounds = stream(rng, n, 2, 3)
    y[5] = 1e4
    models = [bd.MTWRLS(graph, 2, forgetting=forgetting, robust=4.0, solver="local") for _ in range(2)]
    small = np.append(rounds, rounds[-1] + 1 + np.arange(20))  # and some samples alone
    samples = np.vstack([X, X[:20]]), np.append(y, y[:20]), np.append(tasks, tasks[:20])
    found = [models[0].progressive(*samples, rounds=small, with_std=True)]
    monkeypatch.setattr(local, "THREADED", 1)
    monkeypatch.setattr(local.os, "cpu_count", lambda: cores)
    found.append(models[1].progressive(*samples, rounds=small, with_std=True))
    assert np.array_equal(found[0], found[1])
    assert dumps(models[0]) == dumps(models[1])


def test_on_threads_too_it_ends_before_what_can_not_be_learned(monkeypatch):
    rng = np.random.default_rng(6)
    graph, (X, y, tasks, rounds) = graph_of(rng, 40), stream(rng, 40, 2, 4)
    X[50] = 1e80
    models = [bd.MTWRLS(graph, 2, solver="local") for _ in range(2)]
    for model, threaded in zip(models, (10**9, 1), strict=True):
        monkeypatch.setattr(local, "THREADED", threaded)
        with pytest.raises(bd.NumericalError, match="sample 50"):
            model.progressive(X, y, tasks, rounds=rounds)
        assert model.samples == 50
    assert dumps(models[0]) == dumps(models[1])


@pytest.mark.parametrize(("n", "parts"), [(1, 1), (1, 2), (1000, 2), (1000, 3), (100_000, 2)])
def test_ranges_are_whole_chunks(n, parts):
    cuts = local.ranges(0, n, parts)
    assert len(cuts) == min(parts, -(-n // CHUNK))
    assert [t for cut in cuts for t in range(*cut)] == list(range(n))
    assert all(first % CHUNK == 0 for first, _ in cuts)


FAULTS = {
    "weights": lambda a: a[:-1],
    "places": lambda a: a + 100,
    "neighbours": lambda a: a - 100,
    "starts": lambda a: a[::-1].copy(),
    "totals": lambda a: a.astype(np.int64),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_file_whose_arrays_do_not_fit_is_refused(name):
    model = bd.MTWRLS(graph_of(np.random.default_rng(7), 10), 2, solver="local")
    dumped = model.dump()
    dumped["state"] = dumped["state"] | {name: FAULTS[name](dumped["state"][name])}
    with pytest.raises(InputError, match=r"it must|does not rise"):
        bd.MTWRLS.restore(dumped)


@pytest.mark.parametrize("tolerance", [1e-2, 1e-3, 2e-4])
def test_the_tolerance_bounds_how_far_forecasts_are_off(tolerance):
    """In the mean, over all tasks, as a share of the usual innovation; here a level and a smooth graph make it hard."""
    rng = np.random.default_rng(8)
    n = 300
    graph = graph_of(rng, n, ridge=0.01)
    exact, iterated = (bd.MTWRLS(graph, 3, solver=s, tolerance=tolerance) for s in ("dense", "local"))
    W = rng.normal(size=3) + 0.2 * rng.normal(size=(n, 3))
    for labels in range(6):
        X = np.column_stack([rng.normal(size=(n, 2)), np.ones(n)])
        y = (X * W).sum(axis=1) + 50.0 + rng.normal(size=n)
        forecasts = [model.progressive(X, y, range(n), rounds=np.full(n, labels)) for model in (exact, iterated)]
        off = np.sqrt(np.mean((forecasts[0] - forecasts[1]) ** 2))
        usual = np.abs(y - forecasts[0]).mean()
        if labels >= 2:  # before, what is usual is that of a model that knew nothing
            assert off <= (15 if labels == 2 else 4) * tolerance * usual


def test_edges_that_are_not_there_are_no_edges():
    S = sparse.csr_array(np.zeros((5, 5)))
    model = bd.MTWRLS(bd.TaskGraph(S), 1, solver="local")
    model.learn_many(np.ones((5, 1)), np.arange(5.0), range(5))
    np.testing.assert_allclose(model.coef[:, 0], np.arange(5) / 1.1)


@pytest.mark.parametrize(("penalty", "most"), [(1.0, 1e-3), (1e-3, 1e-3), (1e-6, 2e-3), (1e-10, 2e-3)])
@pytest.mark.parametrize("weight", [1.0, 1e-6])
def test_the_tolerance_holds_whatever_the_penalty_and_the_units_of_weights(penalty, most, weight):
    """Where samples are fewer than features, next to nothing but the prior says where the weights are."""
    rng = np.random.default_rng(9)
    n, d = 100, 10
    graph = bd.TaskGraph.nearest(rng.random((n, 2)), k=6)
    W = rng.normal(size=d) + 0.1 * rng.normal(size=(n, d))
    models = [bd.MTWRLS(graph, d, penalty * weight, solver=solver) for solver in ("blocked", "local")]
    for label in range(9):
        X = rng.normal(size=(n, d))
        y = (X * W).sum(axis=1) + 0.1 * rng.normal(size=n)
        given = {"rounds": np.full(n, label), "weights": np.full(n, weight)}
        errors = [np.sqrt(np.mean((m.progressive(X, y, np.arange(n), **given) - y) ** 2)) for m in models]
        assert label < 2 or errors[1] / errors[0] < 1 + most


def test_a_group_cut_short_is_solved_alike_with_and_without_threads(monkeypatch):
    rng = np.random.default_rng(10)
    graph = graph_of(rng, 300)
    X, y = rng.normal(size=(900, 2)), rng.normal(size=900)
    X[606] = 1e100
    models = [bd.MTWRLS(graph, 2, forgetting=Exponential(0.3, per="round"), solver="local") for _ in range(2)]
    for model, threaded in zip(models, (10**9, 1), strict=True):
        monkeypatch.setattr(local, "THREADED", threaded)
        with pytest.raises(bd.NumericalError, match="sample 606"):
            model.progressive(X, y, np.tile(np.arange(300), 3), rounds=np.repeat(np.arange(3), 300))
    assert dumps(models[0]) == dumps(models[1])


def test_a_new_task_is_as_tied_after_much_was_forgotten():
    rng = np.random.default_rng(11)
    model = bd.MTWRLS(graph_of(rng, 8), 1, forgetting=Exponential(0.5, per="round"), solver="local")
    for label in range(9):
        model.learn_many(rng.normal(size=(8, 1)), rng.normal(size=8), range(8), rounds=np.full(8, label))
    model.add_task("new", similar_to={2: 0.5})
    state = model.state
    C = sparse.csr_array((state.links, state.neighbours, state.starts), shape=(9, 9)).sum(axis=1) + state.diagonal
    ridge = state.totals[0, PRIOR] * C
    np.testing.assert_allclose(ridge[:8], 0.1 * 0.5**9, rtol=1e-9)
    assert ridge[8] == pytest.approx(0.1)


@pytest.mark.parametrize("before", [60, 130, 200])
def test_a_task_that_joins_when_much_is_forgotten_is_forgotten_alike(before):
    """Its edges fade from full strength to where the others are held, as those of the exact solver do."""
    rng = np.random.default_rng(13)
    T, d = 12, 2
    ring = np.roll(np.eye(T), 1, axis=1)
    graph = bd.TaskGraph(sparse.csr_array(ring + ring.T), ridge=0.1)
    policy = Exponential(0.9, per="round")
    models = [bd.MTWRLS(graph, d, forgetting=policy, solver=s, tolerance=1e-6) for s in ("dense", "local")]
    W = 3.0 * rng.normal(size=(T + 1, d))
    for label in range(before + 200):
        if label == before:
            for model in models:
                model.add_task("new", {0: 2.0, 1: 2.0})
        keys = [*range(T), "new"][: T + (label >= before)]
        X = rng.normal(size=(len(keys), d))
        y = (X * W[: len(keys)]).sum(axis=1) + 0.1 * rng.normal(size=len(keys))
        for model in models:
            model.learn_many(X, y, keys, rounds=np.full(len(keys), label))
    np.testing.assert_allclose(models[1].coef, models[0].coef, atol=1e-4)
    assert models[1].noise_variance == pytest.approx(models[0].noise_variance, rel=1e-3)
