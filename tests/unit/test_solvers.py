"""solver="blocked" is solver="dense", with P touched once for several samples."""

import numpy as np
import pytest
import scipy.sparse as sparse

import braided as bd
from braided.forgetting import Directional, Drift, Exponential, HalfLife, Restore
from braided.state import dumps, loads
from tests.streams import random_graph, random_stream, worst

POLICIES = [
    Exponential(1.0),
    Exponential(0.97),
    Exponential(0.7, per="round"),
    Exponential(0.9, per="task"),
    Exponential(0.9, guard=False),
    HalfLife(2.0),
    Restore(0.9),
    Directional(0.9),
    Drift(0.01),
]


def both(graph, d, **given):
    return [bd.MTWRLS(graph, d, 0.3, solver=solver, **given) for solver in ("dense", "blocked")]


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("robust", [None, 3.0])
@pytest.mark.parametrize("grouped", [True, False])
def test_forecasts_and_all_that_is_known_are_the_same(policy, robust, grouped):
    rng = np.random.default_rng(0)
    graph = random_graph(rng, 7)
    X, y, tasks, rounds = random_stream(rng, 7, 3, n_rounds=12)
    y[40] = 1e3
    dense, blocked = both(graph, 3, forgetting=policy, robust=robust)
    found = [
        m.progressive(X, y, tasks, rounds=rounds, interleaved=not grouped, with_std=True) for m in (dense, blocked)
    ]
    seen = 7  # deviations of the first round hang on next to nothing
    assert worst(found[1][0], found[0][0]) < 1e-10
    assert worst(found[1][1][seen:], found[0][1][seen:]) < 1e-10
    for name in ("coef", "covariance", "noise_variance"):
        assert worst(getattr(blocked, name), getattr(dense, name)) < 1e-10
    assert blocked.health.unusual == dense.health.unusual
    assert blocked.health.largest_variance == pytest.approx(dense.health.largest_variance, rel=1e-9)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_tasks_join_and_leave_amid_a_block(policy):
    rng = np.random.default_rng(1)
    graph = random_graph(rng, 5)
    X, y, tasks, rounds = random_stream(rng, 5, 2, n_rounds=6)
    models = both(graph, 2, forgetting=policy)
    for model in models:
        model.learn_many(X[:13], y[:13], tasks[:13], rounds=rounds[:13])
        model.add_task("new", similar_to={2: 0.7})
        model.learn_many(X[13:22], y[13:22], tasks[13:22], rounds=rounds[13:22])
        model.remove_task(0)
        model.learn_one(X[22], y[22], task="new", round=int(rounds[22]))
    assert worst(models[1].coef, models[0].coef) < 1e-9
    assert worst(models[1].covariance, models[0].covariance) < 1e-9


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("size", [1, 3, 8, 11])
def test_how_a_stream_is_cut_saved_and_loaded_changes_no_bit(policy, size):
    rng = np.random.default_rng(2)
    graph = random_graph(rng, 4)
    X, y, tasks, rounds = random_stream(rng, 4, 2, n_rounds=11)
    whole, cut = (bd.MTWRLS(graph, 2, 0.3, policy, solver="blocked") for _ in range(2))
    whole.learn_many(X, y, tasks, rounds=rounds)
    for first in range(0, len(y), size):
        part = slice(first, first + size)
        if size == 1:
            cut.learn_one(X[first], y[first], task=int(tasks[first]), round=int(rounds[first]))
        else:
            cut.learn_many(X[part], y[part], tasks[part], rounds=rounds[part])
        before = dumps(cut)
        cut = loads(before)
        cut.predict_many(X, tasks, with_std=True)
        _ = cut.covariance, cut.health
        assert dumps(cut) == before
    assert dumps(cut) == dumps(whole)


@pytest.mark.parametrize(("n_tasks", "d", "room"), [(31, 3, 8), (91, 3, 8), (260, 4, 32), (1000, 4, 64)])
@pytest.mark.slow
def test_larger_blocks_and_more_than_one_tile(n_tasks, d, room):
    rng = np.random.default_rng(3)
    graph = random_graph(rng, n_tasks, density=0.1)
    X, y, tasks, _ = (part[:300] for part in random_stream(rng, n_tasks, d, n_rounds=2))
    dense, blocked = both(graph, d, forgetting=0.999)
    assert blocked.state.losses.shape[1] == room
    assert worst(*(model.progressive(X, y, tasks) for model in (dense, blocked))) < 1e-10
    assert worst(blocked.covariance, dense.covariance) < 1e-10


def test_a_sample_that_is_refused_amid_a_block_leaves_no_trace():
    model = bd.MTWRLS(bd.TaskGraph.pooled("ab"), 1, forgetting=0.9, solver="blocked")
    model.learn_many(np.ones((3, 1)), np.ones(3), ["ab"] * 3)
    before = dumps(model)
    for x, y in (([1e200], 1.0), ([1.0], 1e200)):
        with pytest.raises(bd.NumericalError):
            model.learn_one(x, y, task="ab")
        assert dumps(model) == before


@pytest.mark.parametrize(("penalty", "size"), [(1e-10, 100.0), (1e-12, 10.0), (1e-14, 1.0)])
def test_it_does_not_break_down_where_the_dense_one_does_not(penalty, size):
    rng = np.random.default_rng(4)
    graph = random_graph(rng, 10, ridge=1.0)
    X, y, tasks, _ = random_stream(rng, 10, 10, n_rounds=15)
    for solver in ("dense", "blocked"):
        model = bd.MTWRLS(graph, 10, penalty, solver=solver)
        model.learn_many(size * X, y, tasks)
        assert model.samples == len(y)


def test_a_rescue_amid_a_block_forgets_what_was_waiting():
    model = bd.MTWRLS(bd.TaskGraph.pooled(range(2)), 2, 1e-6, 0.9, solver="blocked")
    rng = np.random.default_rng(5)
    for i, value in enumerate(rng.normal(size=400)):
        model.learn_one([value, value], value, task=i % 2)
        assert not model.state.losses[0, model.state.pending[0] :].any()
    assert model.health.guarded > 0


def test_what_does_not_fit_in_memory_is_refused_before_it_is_tried():
    n = 1_000_000
    graph = bd.TaskGraph(sparse.csr_array((n, n)))
    for given in ({"solver": "blocked"}, {"forgetting": Restore(0.9)}):
        with pytest.raises(bd.InputError, match=r'P of 2,000,000 rows .* needs 64,000 GB, .*: use solver="local"'):
            bd.MTWRLS(graph, 2, **given)
    with pytest.raises(bd.InputError, match=r"the inverse of the relation of 1,000,000 rows .*: use MTWRLS"):
        bd.MTOSLSSVR(graph, 2)


@pytest.mark.parametrize("factor", [0.7, 0.2])
def test_clocks_of_their_own_cost_no_digits(factor):
    """P grows by a task's own fades; terms that wait meanwhile would have to cancel with that."""
    rng = np.random.default_rng(5)
    graph = random_graph(rng, 25)
    X, y, _, _ = random_stream(rng, 25, 3, n_rounds=8)
    dense, blocked = both(graph, 3, forgetting=Exponential(factor, per="task", guard=False))
    forecasts = [model.progressive(X, y, np.zeros(len(y), np.int64)) for model in (dense, blocked)]
    assert worst(*forecasts) < 1e-10
    assert bd.MTWRLS(graph, 3, forgetting=Exponential(factor, per="task")).uses == "dense"
    assert bd.MTWRLS(graph, 3, forgetting=Exponential(1.0, per="task")).uses == "blocked"
