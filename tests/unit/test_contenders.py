"""MOGD, MADMM, GraphRidge and Persistence."""

import numpy as np
import pytest
import scipy.sparse as sparse

import braided as bd
from braided.state import dumps
from tests.reference.linear import admm_round, batch, gradient_step
from tests.streams import random_graph, random_stream, worst


@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("form", ["laplacian", "penalty"])
def test_mogd_follows_the_printed_gradient(form, storage):
    rng = np.random.default_rng(0)
    graph = random_graph(rng, 3, storage=storage, form=form)
    A = graph.dense_relation
    X, y, tasks, _ = random_stream(rng, 3, 2, n_rounds=20)
    model, W = bd.MOGD(graph, 2, 0.3, 0.1), np.zeros((3, 2))
    for i in range(len(y)):
        model.learn_one(X[i], y[i], task=int(tasks[i]))
        W = gradient_step(W, A, 0.3, 0.1, i + 1, X[i], y[i], tasks[i])
        assert worst(model.coef, W) < 1e-10


def test_mogd_says_where_it_diverges():
    rng = np.random.default_rng(1)
    X, y, tasks, _ = random_stream(rng, 3, 2, n_rounds=300)
    model = bd.MOGD(random_graph(rng, 3), 2, penalty=1e6, step=10.0)
    with pytest.raises(bd.NumericalError, match="MOGD broke down at sample"):
        model.learn_many(X, y, tasks)
    assert np.isfinite(model.coef).all()


@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize(("penalty", "rho"), [(1.0, 1.0), (0.1, 0.3), (10.0, 2.0)])
def test_madmm_iterated_on_fixed_data_converges_to_the_batch_solution(penalty, rho, storage):
    rng = np.random.default_rng(2)
    graph = random_graph(rng, 4, storage=storage)
    X, y, tasks, rounds = random_stream(rng, 4, 3, n_rounds=10)
    model = bd.MADMM(graph, 3, penalty, rho)
    model.learn_many(X, y, tasks, rounds=rounds)
    model.add_task("new", {0: 0.6})
    for _ in range(3000):
        model.learn_one(np.zeros(3), 0.0, task=0, weight=0.0)
    enlarged = graph.join("new", {0: 0.6})
    assert worst(model.coef, batch(enlarged.dense_relation, penalty, X, y, tasks)[0]) < 1e-10


def test_a_task_that_joins_madmm_starts_where_its_neighbours_are():
    rng = np.random.default_rng(9)
    graph = random_graph(rng, 3, density=1.0)
    X, y, tasks, rounds = random_stream(rng, 3, 2, n_rounds=10)
    model = bd.MADMM(graph, 2, 0.4, 0.7)
    model.learn_many(X, y, tasks, rounds=rounds)
    R, p, _, W, Z, U = (array.copy() for array in model.state)
    model.add_task("new", {0: 0.6, 2: 0.3})
    pull = np.array([0.6, 0.0, 0.3]) / (0.1 + 0.6 + 0.3)
    assert worst(model.coef[3], pull @ W) < 1e-12
    model.learn_one(np.zeros(2), 0.0, task=0, weight=0.0)
    A = graph.join("new", {0: 0.6, 2: 0.3}).relation
    R, p, U = np.append(R, np.zeros((1, 2, 2)), 0), np.append(p, np.zeros((1, 2)), 0), np.append(U, np.zeros((1, 2)), 0)
    expected, _, _ = admm_round(R, p, np.vstack([Z, pull @ Z]), U, A, 0.4, 0.7)
    assert worst(model.coef, expected) < 1e-10


def test_madmm_refuses_what_it_cannot_hold_and_takes_a_round_whole_or_not_at_all():
    model = bd.MADMM(bd.TaskGraph.pooled(["a", "b"]), 1, rho=1e-100)
    with pytest.raises(bd.NumericalError):
        model.learn_one([1e-3], 1e308, task="a")
    before = dumps(model)
    with pytest.raises(bd.NumericalError, match="broke down at sample 0"):
        model.learn_many([[1.0], [1e200]], [1.0, 1.0], ["a", "b"], rounds=[0, 0])
    assert dumps(model) == before


@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("form", ["laplacian", "penalty"])
def test_graph_ridge_is_the_batch_solution(form, storage):
    rng = np.random.default_rng(3)
    graph = random_graph(rng, 5, storage=storage, form=form)
    X, y, tasks, _ = random_stream(rng, 5, 3, n_rounds=12)
    weights = rng.uniform(0, 2, len(y))
    model = bd.GraphRidge(graph, 3, 0.4)
    model.learn_many(X, y, tasks, weights=weights)
    assert worst(model.coef, batch(graph.dense_relation, 0.4, X, y, tasks, weights)[0]) < 1e-10
    mean, std = model.predict_many(X, tasks, with_std=True)
    exact = bd.MTWRLS(graph, 3, 0.4)
    exact.learn_many(X, y, tasks, weights=weights)
    expected, expected_std = exact.predict_many(X, tasks, with_std=True)
    assert worst(mean, expected) < 1e-10
    assert worst(std, expected_std) < 1e-9


def test_graph_ridge_names_the_sample_that_overflows_and_holds_those_before():
    model = bd.GraphRidge(bd.TaskGraph.pooled(["a", "b"]), 1)
    with pytest.raises(bd.NumericalError, match=r"broke down at sample 2 \(task 'b'\)"):
        model.learn_many([[1.0], [2.0], [1e200], [3.0]], [1.0] * 4, ["a", "b", "b", "a"])
    held = bd.GraphRidge(bd.TaskGraph.pooled(["a", "b"]), 1)
    held.learn_many([[1.0], [2.0]], [1.0] * 2, ["a", "b"])
    assert (model.samples, model.coef.tolist()) == (2, held.coef.tolist())


def test_graph_ridge_says_where_its_system_is_nearly_singular():
    rng = np.random.default_rng(10)
    X, y, tasks, _ = random_stream(rng, 3, 4, n_rounds=2)
    model = bd.GraphRidge(bd.TaskGraph.pooled(range(3), ridge=0.01), 4, 1e-10)
    model.learn_many(1e3 * X, y, tasks)
    with pytest.raises(bd.NumericalError, match=r"nearly singular|not positive definite"):
        model.coef  # noqa: B018


def test_graph_ridge_refitted_by_round_is_mtwrls():
    rng = np.random.default_rng(4)
    graph = random_graph(rng, 4)
    X, y, tasks, rounds = random_stream(rng, 4, 3, n_rounds=15)
    forecasts = [m(graph, 3, 0.4).progressive(X, y, tasks, rounds=rounds) for m in (bd.GraphRidge, bd.MTWRLS)]
    assert worst(*forecasts) < 1e-10


def test_graph_ridge_on_a_large_sparse_graph_never_becomes_dense():
    """Three thousand tasks: the dense system would take 10 GB."""
    rng = np.random.default_rng(5)
    T, d = 3000, 12
    graph = bd.TaskGraph.nearest(rng.uniform(size=(T, 2)), k=4)
    X, y, tasks, _ = random_stream(rng, T, d, n_rounds=2)
    model = bd.GraphRidge(graph, d, 0.5)
    model.learn_many(X, y, tasks)
    W = model.coef
    R = np.einsum("ni,nj->nij", X, X)
    gradient = 0.5 * (graph.relation @ W)
    np.add.at(gradient, tasks, np.einsum("nij,nj->ni", R, W[tasks]) - y[:, None] * X)
    assert np.abs(gradient).max() < 1e-10


@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_a_task_that_joins_graph_ridge_gives_the_batch_solution_on_the_enlarged_graph(storage):
    rng = np.random.default_rng(8)
    graph = random_graph(rng, 3, storage=storage)
    X, y, tasks, _ = random_stream(rng, 3, 2, n_rounds=10)
    model = bd.GraphRidge(graph, 2)
    model.learn_many(X, y, tasks)
    model.add_task("new", {1: 0.7})
    assert worst(model.coef, batch(graph.join("new", {1: 0.7}).dense_relation, 1.0, X, y, tasks)[0]) < 1e-10


def test_a_task_that_leaves_graph_ridge_takes_its_samples_along():
    rng = np.random.default_rng(6)
    graph = random_graph(rng, 4)
    X, y, tasks, _ = random_stream(rng, 4, 3, n_rounds=10)
    model, without = bd.GraphRidge(graph, 3), bd.GraphRidge(graph.leave(2), 3)
    model.learn_many(X, y, tasks)
    model.remove_task(2)
    rest = tasks != 2
    without.learn_many(X[rest], y[rest], tasks[rest])
    assert worst(model.coef, without.coef) < 1e-12
    first, second = (m.predict_one(X[0], task=0, with_std=True) for m in (model, without))
    assert first == pytest.approx(second)


def test_persistence_forecasts_the_last_value_of_the_task():
    model = bd.Persistence(["a", "b"], 1)
    X = np.zeros((5, 1))
    y, tasks = np.arange(1.0, 6.0), ["a", "b", "a", "a", "b"]
    assert model.progressive(X, y, tasks).tolist() == [0, 0, 1, 3, 2]
    assert model.progressive(X, y, tasks, rounds=[0, 0, 1, 1, 1]).tolist() == [4, 5, 1, 1, 2]
    assert not hasattr(model, "coef")


def test_single_task_learners_take_the_keys_of_a_graph():
    graph = bd.TaskGraph.pooled(["a", "b"])
    assert bd.WRLS(graph, 2).tasks == ("a", "b")
    assert bd.WRLS(graph, 2).graph.neighbours("a") == {}


@pytest.mark.parametrize("learner", [bd.MTWRLS, bd.MTOSLSSVR, bd.MOGD, bd.MADMM, bd.GraphRidge])
def test_dense_and_sparse_graphs_give_the_same(learner):
    rng = np.random.default_rng(7)
    graph = random_graph(rng, 5)
    X, y, tasks, rounds = random_stream(rng, 5, 3, n_rounds=20)
    stored = bd.TaskGraph(sparse.csr_array(graph.similarity))
    forecasts = [learner(g, 3).progressive(X, y, tasks, rounds=rounds) for g in (graph, stored)]
    assert worst(*forecasts) < 1e-10
