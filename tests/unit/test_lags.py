"""From series to samples, against the obvious loop."""

import numpy as np
import pytest
import scipy.sparse as sparse

import braided as bd
from tests.streams import random_graph


def obvious(lags, levels, S=None):
    """Row by row, straight from the definition."""
    rows = []
    n_steps, n_tasks = levels.shape
    series = np.vstack([np.full((1, n_tasks), np.nan), np.diff(levels, axis=0)]) if lags.difference else levels

    def around(values, step, task):
        weights = np.where(np.isnan(values[step]), 0.0, S[task])
        if not S[task].any():
            return 0.0
        return np.nansum(weights * values[step]) / weights.sum() if weights.sum() else np.nan

    for step in range(1 if lags.fill else max(lags.count, lags.neighbours) + lags.difference, n_steps):
        for task in range(n_tasks):
            x = [series[step - k, task] if step >= k else np.nan for k in range(1, lags.count + 1)]
            x += [levels[step - 1, task]] * lags.level
            x += [around(series, step - k, task) if step >= k else np.nan for k in range(1, lags.neighbours + 1)]
            if lags.gap:
                x.append(around(levels, step - 1, task) - levels[step - 1, task] if S[task].any() else 0.0)
            previous = series[step - 1, task]
            if lags.fill and not np.isnan(levels[step - 1, task]):
                x, previous = np.nan_to_num(x).tolist(), np.nan_to_num(previous)
            x += [1.0] * lags.bias
            if not np.isnan([*x, series[step, task]]).any():
                level = levels[step - 1, task] if lags.difference else 0.0
                rows.append((x, series[step, task], task, step, level, previous))
    return [np.array(column) for column in zip(*rows, strict=True)]


@pytest.mark.parametrize("missing", [0.0, 0.15])
@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize(
    "lags",
    [
        bd.Lags(1),
        bd.Lags(3, bias=False),
        bd.Lags(2, difference=False),
        bd.Lags(2, neighbours=3, gap=True),
        bd.Lags(4, difference=False, neighbours=1),
        bd.Lags(2, gap=True, bias=False),
        bd.Lags(3, fill=True),
        bd.Lags(2, neighbours=3, gap=True, fill=True),
        bd.Lags(2, level=True),
        bd.Lags(3, neighbours=1, gap=True, fill=True, level=True),
    ],
    ids=repr,
)
def test_samples_are_those_of_the_loop(lags, storage, missing):
    rng = np.random.default_rng(0)
    graph = random_graph(rng, 5, storage=storage, density=0.4)
    levels = rng.normal(size=(30, 5)).cumsum(axis=0)
    levels[rng.uniform(size=levels.shape) < missing] = np.nan
    samples = lags.samples(levels, graph=graph)
    S = graph.similarity.toarray() if graph.is_sparse else graph.similarity
    for found, expected in zip(samples, obvious(lags, levels, S), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    assert samples.X.shape[1] == lags.n_features
    assert (np.diff(samples.steps) >= 0).all()


def test_a_forecast_of_the_difference_goes_back_to_the_level():
    levels = np.random.default_rng(1).normal(size=(40, 3)).cumsum(axis=0)
    samples = bd.Lags(2).samples(levels)
    np.testing.assert_allclose(samples.level + samples.y, levels[samples.steps, samples.tasks])


def test_tasks_without_neighbours_have_zeros_there():
    graph = bd.TaskGraph(sparse.csr_array([[0, 1.0, 0], [1.0, 0, 0], [0, 0, 0]]), ["a", "b", "alone"])
    levels = np.random.default_rng(2).normal(size=(10, 3))
    samples = bd.Lags(1, neighbours=2, gap=True, bias=False).samples(levels, graph=graph)
    alone = np.array([task == "alone" for task in samples.tasks])
    assert (samples.X[alone, 1:] == 0).all()
    assert (samples.X[~alone, 1:] != 0).all()


def test_columns_may_come_in_another_order_than_the_graphs():
    rng = np.random.default_rng(3)
    S = np.array([[0, 0.9, 0.1], [0.9, 0, 0.4], [0.1, 0.4, 0]])
    graph = bd.TaskGraph(S, ["a", "b", "c"])
    levels = rng.normal(size=(12, 3))
    lags = bd.Lags(1, neighbours=1, gap=True)
    straight = lags.samples(levels, ["a", "b", "c"], graph)
    turned = lags.samples(levels[:, [2, 0, 1]], ["c", "a", "b"], graph)
    for task in "abc":
        own = [[t == task for t in s.tasks] for s in (straight, turned)]
        np.testing.assert_allclose(straight.X[own[0]], turned.X[own[1]])


def test_the_samples_feed_any_learner():
    rng = np.random.default_rng(4)
    levels = (rng.normal(size=(80, 1)) + 0.3 * rng.normal(size=(80, 4))).cumsum(axis=0)
    lags = bd.Lags(3, neighbours=2, gap=True)
    graph = bd.TaskGraph.from_history(levels[:30])
    s = lags.samples(levels, graph=graph)
    for model in (bd.MTWRLS(graph, lags.n_features), bd.ELM(5) | bd.WRLS(graph, lags.n_features)):
        assert np.isfinite(model.progressive(s.X, s.y, s.tasks, rounds=s.steps)).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bd.Lags(0), "count is 0: it must be 1 or more"),
        (lambda: bd.Lags(2, difference=False, fill=True), "fill=True fills changes: it needs difference=True"),
        (lambda: bd.Lags(2, difference=False, level=True), "level=True goes with changes: it needs difference=True"),
        (lambda: bd.Lags(2, neighbours=-1), "neighbours is -1"),
        (lambda: bd.Lags(2).samples(np.zeros((3, 2))), "levels has 3 steps: 4 are needed"),
        (lambda: bd.Lags(2).samples(np.zeros(9)), "give \\(steps, tasks\\)"),
        (lambda: bd.Lags(2, gap=True).samples(np.zeros((9, 2))), "give a graph"),
        (lambda: bd.Lags(2).samples(np.full((9, 2), np.inf)), "levels\\[0, 0\\] is inf: use NaN"),
        (lambda: bd.Lags(2).samples(np.zeros((9, 2)), ["a"]), "1 tasks for 2 columns"),
    ],
)
def test_what_cannot_be_is_refused(call, message):
    with pytest.raises(bd.InputError, match=message):
        call()
