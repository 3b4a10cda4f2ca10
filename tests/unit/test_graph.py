"""TaskGraph: relation matrices, where similarities come from, and what is refused."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sparse
import scipy.stats

import braided as bd
from tests.streams import random_graph

S = np.array([[0.0, 0.6, 0.1], [0.6, 0.0, 0.3], [0.1, 0.3, 0.0]])


def dense(matrix):
    return matrix.toarray() if sparse.issparse(matrix) else matrix


@pytest.mark.parametrize("storage", [np.array, sparse.csr_array, sparse.coo_matrix, sparse.csc_array])
def test_the_relation_is_the_papers(storage):
    graph = bd.TaskGraph(storage(S), ["a", "b", "c"], ridge=0.2)
    expected = [[0.9, -0.6, -0.1], [-0.6, 1.1, -0.3], [-0.1, -0.3, 0.6]]
    np.testing.assert_allclose(dense(graph.relation), expected)
    np.testing.assert_allclose(graph.inverse, np.linalg.inv(expected))
    np.testing.assert_array_equal(dense(graph.similarity), S)
    assert graph.is_sparse == (storage is not np.array)
    assert sparse.issparse(graph.relation) == graph.is_sparse


@pytest.mark.parametrize("storage", [np.array, sparse.csr_array])
def test_the_other_form_is_the_printed_penalty(storage):
    """w'(A ⊗ I)w = Σ_t Σ_j ‖w_t s(t,j) − w_j s(j,t)‖² + γ‖w‖², asymmetric and negative similarities included."""
    rng = np.random.default_rng(0)
    asymmetric = rng.uniform(-1, 1, (4, 4)) * (rng.uniform(size=(4, 4)) < 0.7)
    np.fill_diagonal(asymmetric, 0.0)
    graph = bd.TaskGraph(storage(asymmetric), ridge=0.2, form="penalty")
    w = rng.normal(size=4)
    pairs = [(t, j) for t in range(4) for j in range(4) if t != j]
    penalty = sum((w[t] * asymmetric[t, j] - w[j] * asymmetric[j, t]) ** 2 for t, j in pairs) + 0.2 * w @ w
    assert w @ dense(graph.relation) @ w == pytest.approx(penalty)
    assert np.linalg.eigvalsh(dense(graph.relation))[0] >= 0.2 - 1e-12


def test_the_diagonal_is_of_no_consequence():
    np.testing.assert_array_equal(bd.TaskGraph(S + np.eye(3)).relation, bd.TaskGraph(S).relation)
    loops = bd.TaskGraph(sparse.csr_array(S + np.eye(3)))
    np.testing.assert_allclose(loops.relation.toarray(), bd.TaskGraph(S).relation)
    assert loops.similarity.nnz == 6


def test_sign_policies():
    negative = np.array([[0.0, -0.5, 0.2], [-0.5, 0.0, 0.0], [0.2, 0.0, 0.0]])
    for storage in (np.array, sparse.csr_array):
        clipped = bd.TaskGraph(storage(negative), sign="clip")
        np.testing.assert_array_equal(dense(clipped.similarity), np.clip(negative, 0, None))
        absolute = bd.TaskGraph(storage(negative), sign="absolute")
        np.testing.assert_array_equal(dense(absolute.similarity), np.abs(negative))
        message = r'not positive definite \(smallest eigenvalue -0\.\d+\): raise ridge.*sign="clip".*"absolute"'
        with pytest.raises(bd.InputError, match=message):
            bd.TaskGraph(storage(negative), ridge=0.1)
        kept = bd.TaskGraph(storage(negative), ridge=2.0)
        assert np.linalg.eigvalsh(dense(kept.relation))[0] > 0
        assert kept.neighbours(0) == {1: -0.5, 2: 0.2}


def test_the_remedy_in_the_error_is_one():
    negative = -S
    with pytest.raises(bd.InputError) as caught:
        bd.TaskGraph(negative, ridge=0.1)
    more = float(str(caught.value).split("by more than ")[1].split(",")[0])
    bd.TaskGraph(negative, ridge=0.1 + 1.01 * more)


def test_it_cannot_be_changed_nor_does_it_keep_what_it_was_given():
    given = S.copy()
    graph = bd.TaskGraph(given, ridge=0.2)
    given[:] = 7.0
    np.testing.assert_array_equal(graph.similarity, S)
    with pytest.raises(ValueError, match="read-only"):
        graph.similarity[0, 1] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        graph.relation[0, 1] = 1.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        graph.ridge = 1.0
    sparse_graph = bd.TaskGraph(sparse.csr_array(S))
    with pytest.raises(ValueError, match="read-only"):
        sparse_graph.similarity.data[0] = 1.0


@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("form", ["laplacian", "penalty"])
def test_joining_and_leaving_give_new_graphs(storage, form):
    graph = random_graph(np.random.default_rng(1), 4, storage=storage, form=form)
    larger = graph.join("new", {0: 0.5, 3: 0.25})
    assert graph.n_tasks == 4
    assert larger.tasks == (0, 1, 2, 3, "new")
    assert larger.neighbours("new") == {0: 0.5, 3: 0.25}
    assert larger.neighbours(3)["new"] == 0.25
    assert larger.is_sparse == graph.is_sparse
    assert (larger.form, larger.ridge, larger.sign) == (graph.form, graph.ridge, graph.sign)
    back = larger.leave("new")
    np.testing.assert_array_equal(dense(back.relation), dense(graph.relation))
    order = dense(larger.leave(1).similarity)
    np.testing.assert_array_equal(order, np.delete(np.delete(dense(larger.similarity), 1, 0), 1, 1))
    with pytest.raises(bd.InputError, match="exists already"):
        larger.join("new")
    with pytest.raises(bd.InputError, match="unknown task 'z'"):
        larger.leave("z")
    with pytest.raises(bd.InputError, match="the last one"):
        bd.TaskGraph.pooled(["a"]).leave("a")


@pytest.mark.parametrize("measure", ["spearman", "pearson"])
def test_history_gives_the_correlations_scipy_gives(measure):
    rng = np.random.default_rng(2)
    history = (rng.normal(size=(60, 1)) + rng.normal(size=(60, 4))).cumsum(axis=0).round(1)
    steps = np.diff(history, axis=0).round(1)  # equal steps are ties, whatever rounding makes of them
    graph = bd.TaskGraph.from_history(history, list("abcd"), measure=measure, ridge=0.3)
    units = bd.TaskGraph.from_history(history * [1, 10, 1e-3, 0.3], list("abcd"), measure=measure)
    np.testing.assert_allclose(units.similarity, graph.similarity, atol=1e-9)
    for i in range(4):
        for j in range(i):
            expected = getattr(scipy.stats, f"{measure}r")(steps[:, i], steps[:, j]).statistic
            assert graph.similarity[i, j] == pytest.approx(max(expected, 0.0), abs=1e-12)
    assert graph.ridge == 0.3
    levels = bd.TaskGraph.from_history(history, measure=measure, difference=False)
    expected = getattr(scipy.stats, f"{measure}r")(history[:, 0], history[:, 1]).statistic
    assert levels.similarity[0, 1] == pytest.approx(max(expected, 0.0))


def test_history_with_gaps_uses_what_each_pair_has():
    rng = np.random.default_rng(3)
    history = rng.normal(size=(80, 3)) + rng.normal(size=(80, 1))
    history[rng.uniform(size=history.shape) < 0.2] = np.nan
    graph = bd.TaskGraph.from_history(history)
    steps = np.diff(history, axis=0)
    both = ~np.isnan(steps[:, [0, 2]]).any(axis=1)
    assert graph.similarity[0, 2] == pytest.approx(scipy.stats.spearmanr(steps[both, 0], steps[both, 2]).statistic)


def alike_of(steps, ranks):
    """Correlations where a missing step counts as the mean of its column: the definition, column by column."""
    columns = []
    for column in steps.T:
        known = ~np.isnan(column)
        own = scipy.stats.rankdata(column[known]) if ranks else column[known]
        filled = np.zeros(len(column))
        filled[known] = own - own.mean() if known.sum() >= 3 else 0.0
        columns.append(filled / (np.linalg.norm(filled) or 1.0))
    return np.array(columns) @ np.array(columns).T


@pytest.mark.parametrize("missing", [0.0, 0.15])
@pytest.mark.parametrize("measure", ["spearman", "pearson"])
@pytest.mark.parametrize("sign", ["clip", "absolute", "reject"])
@pytest.mark.parametrize("block", [50, 1 << 22])
def test_history_gives_the_k_most_alike(measure, missing, sign, block, monkeypatch):
    monkeypatch.setattr("braided.correlation.BLOCK", block)
    rng = np.random.default_rng(8)
    history = (rng.normal(size=(60, 3)) @ rng.normal(size=(3, 25)) + rng.normal(size=(60, 25))).cumsum(axis=0)
    history[:, 4] = 7.0
    history[rng.uniform(size=history.shape) < missing] = np.nan
    history[2:, 11] = np.nan
    with pytest.warns(UserWarning, match="no similarity to any other task .*: 4, 11"):
        graph = bd.TaskGraph.from_history(history, k=3, measure=measure, sign=sign, ridge=9.0)
    assert graph.is_sparse
    C = alike_of(np.diff(history, axis=0), measure == "spearman")
    np.fill_diagonal(C, 0.0)
    size = C.clip(0.0) if sign == "clip" else abs(C)
    chosen = size >= np.sort(size, axis=1)[:, [-3]]
    expected = np.where((chosen | chosen.T) & (size > 0.0), C if sign == "reject" else size, 0.0)
    np.testing.assert_allclose(graph.similarity.toarray(), expected, atol=1e-9)
    if not missing:
        with pytest.warns(UserWarning, match="no similarity"):
            whole = bd.TaskGraph.from_history(history, measure=measure, sign=sign, ridge=9.0).similarity
        found = graph.similarity.toarray()
        np.testing.assert_allclose(found, np.where(found != 0.0, whole, 0.0), atol=1e-9)


@pytest.mark.parametrize("common", [0.0, 5.0])
@pytest.mark.parametrize("unit", [1e-200, 1.0, 1e200])
def test_with_more_neighbours_than_there_are_all_are_joined(common, unit):
    history = np.random.default_rng(0).normal(size=(40, 8)) + np.sin(np.arange(40.0))[:, None] * common
    history = unit * np.hstack([history, history[:, :1]])  # two that are the same
    options = {"measure": "pearson", "difference": False}
    dense, sparse = (bd.TaskGraph.from_history(history, k=k, **options) for k in (None, 10))
    np.testing.assert_allclose(sparse.similarity.toarray(), dense.similarity, atol=1e-12)
    assert (sparse.similarity[[0, 8], [8, 0]] > 1.0 - 1e-12).all()
    assert sparse.similarity.max() <= 1.0


def test_of_two_that_are_nearly_as_alike_the_one_more_so_is_taken():
    rng = np.random.default_rng(10)
    one, other, third = np.linalg.qr(np.column_stack([np.ones(50), rng.normal(size=(50, 3))]))[0][:, 1:].T
    alike = [r * one + np.sqrt(1.0 - r * r) * way for r, way in ((0.8, other), (0.8 + 1e-5, third))]
    for columns in ((0, 1, 2), (0, 2, 1)):
        history = np.column_stack([one, *alike])[:, columns]
        graph = bd.TaskGraph.from_history(history, k=1, measure="pearson", difference=False)
        assert max(graph.neighbours(0).values()) == pytest.approx(0.8 + 1e-5)
        assert graph.neighbours(columns.index(1)) == {0: pytest.approx(0.8)}  # which it is most alike to


def test_history_of_one_task_or_none():
    history = np.random.default_rng(9).normal(size=(40, 5)) + np.sin(np.arange(40.0))[:, None] * 5.0
    with pytest.raises(bd.InputError):
        bd.TaskGraph.from_history(history[:, :0], k=2)
    assert bd.TaskGraph.from_history(history[:, :1], k=3).similarity.nnz == 0
    with pytest.raises(bd.InputError, match="k is 0"):
        bd.TaskGraph.from_history(history, k=0)


def test_history_may_be_a_data_frame():
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(rng.normal(size=(30, 2)), columns=["north", "south"])
    assert bd.TaskGraph.from_history(frame).tasks == ("north", "south")
    holed = frame.astype("Float64").mask(frame > 2)
    assert bd.TaskGraph.from_history(holed).tasks == ("north", "south")
    with pytest.raises(bd.InputError, match="column 'time' of the history has dtype datetime64"):
        bd.TaskGraph.from_history(frame.assign(time=pd.Timestamp("2024-01-01")))
    with pytest.raises(bd.InputError, match="column 'name' of the history"):
        bd.TaskGraph.from_history(frame.assign(name="x"))
    similar = pd.DataFrame([[1.0, 0.5], [0.5, 1.0]], columns=["x", "y"])
    assert bd.TaskGraph(similar).neighbours("x") == {"y": 0.5}


def test_constant_and_short_series_are_alike_to_none_and_reported():
    rng = np.random.default_rng(5)
    history = rng.normal(size=(30, 1)) + 0.1 * rng.normal(size=(30, 4))
    history[:, 1] = 0.1 * np.arange(30)  # constant differences, up to rounding
    history[2:, 3] = np.nan
    with pytest.warns(UserWarning, match=r"no similarity to any other task .*'flat', 'short'"):
        graph = bd.TaskGraph.from_history(history, ["a", "flat", "c", "short"], measure="pearson")
    assert graph.neighbours("short") == graph.neighbours("flat") == {}
    assert graph.neighbours("a")["c"] > 0.9
    with pytest.warns(UserWarning, match="no similarity"):
        bd.TaskGraph.from_history(rng.normal(size=(3, 2)))


def test_nearest_joins_each_with_its_nearest_and_stays_sparse():
    rng = np.random.default_rng(6)
    points = rng.uniform(size=(50, 2))
    graph = bd.TaskGraph.nearest(points, k=4)
    assert graph.is_sparse
    distances = np.linalg.norm(points[:, None] - points, axis=2) + np.diag(np.full(50, np.inf))
    close = np.argsort(distances, axis=1)[:, :4]
    expected = np.zeros((50, 50))
    np.put_along_axis(expected, close, 1.0, axis=1)
    np.testing.assert_array_equal(graph.similarity.toarray(), np.maximum(expected, expected.T))
    weighted = bd.TaskGraph.nearest(points, k=4, scale=0.1)
    rows, columns = weighted.similarity.nonzero()
    np.testing.assert_allclose(weighted.similarity.data, np.exp(-0.5 * (distances[rows, columns] / 0.1) ** 2))


def test_nearest_copes_with_few_and_equal_positions():
    assert bd.TaskGraph.nearest([[0.0, 0.0]], k=6).n_tasks == 1
    assert bd.TaskGraph.nearest([[0.0], [1.0], [5.0]], k=6).neighbours(2) == {0: 1.0, 1: 1.0}
    same = bd.TaskGraph.nearest(np.zeros((5, 2)), k=2)
    assert all(task not in same.neighbours(task) for task in same.tasks)
    assert min(len(same.neighbours(task)) for task in same.tasks) >= 2


def test_independent_and_pooled_are_the_extremes():
    alone, pooled = bd.TaskGraph.independent("abc", ridge=2.0), bd.TaskGraph.pooled(["a", "b", "c"], strength=0.5)
    assert alone.tasks == ("abc",)  # one string is one key
    np.testing.assert_array_equal(bd.TaskGraph.independent(range(3), ridge=2.0).relation.toarray(), 2 * np.eye(3))
    np.testing.assert_allclose(pooled.relation, 1.6 * np.eye(3) - 0.5)


def test_keys_are_found_one_by_one_and_many_at_once():
    graph = bd.TaskGraph(S, tasks=np.array(["x", "y", "z"]))
    assert graph.tasks == ("x", "y", "z")
    assert graph.index("z") == 2
    assert graph.indices(["z", "x"]).tolist() == [2, 0]
    assert graph.indices(np.array(["z", "x"])).tolist() == [2, 0]
    assert graph.indices(pd.Series(["y"])).tolist() == [1]
    assert bd.TaskGraph(S, tasks=np.array([5, 6, 7])).indices(np.array([7, 5])).tolist() == [2, 0]
    with pytest.raises(bd.InputError, match=r"unknown task 'w' at position 1: known are 'x', 'y', 'z'; add_task"):
        graph.indices(["x", "w"])
    with pytest.raises(bd.InputError, match=r"known are 0, 1, 2, 3, 4, … \(9 in all\)"):
        bd.TaskGraph.pooled(range(9)).index(11)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: bd.TaskGraph(np.zeros((0, 0))), "no tasks"),
        (lambda: bd.TaskGraph.pooled([]), "no tasks"),
        (lambda: bd.TaskGraph.nearest(np.zeros((0, 2))), "no rows"),
        (lambda: bd.TaskGraph(np.zeros((2, 3))), r"shape \(2, 3\): it must be square"),
        (lambda: bd.TaskGraph(np.zeros(3)), "2 dimensions"),
        (lambda: bd.TaskGraph([["a", "b"], ["c", "d"]]), "dtype <U1: it must hold real numbers"),
        (lambda: bd.TaskGraph([[0, np.nan], [np.nan, 0]]), r"similarity\[0, 1\] is nan"),
        (lambda: bd.TaskGraph(sparse.csr_array([[0, np.inf], [np.inf, 0]])), "is inf"),
        (lambda: bd.TaskGraph(S, ["a", "b"]), r"2 tasks for a similarity of shape \(3, 3\)"),
        (lambda: bd.TaskGraph(S, ["a", "b", "a"]), "task 'a' appears twice"),
        (lambda: bd.TaskGraph(S, ["a", "b", 1.5]), "task 1.5 is a float: a task's key is a string or an integer"),
        (lambda: bd.TaskGraph(S, [True, 2, 3]), "task True is a bool"),
        (lambda: bd.TaskGraph(S, ridge=0.0), "ridge is 0: it must be above 0"),
        (lambda: bd.TaskGraph(S, ridge=-1), "ridge is -1"),
        (
            lambda: bd.TaskGraph(S, ridge=1e-14),
            "ridge 1e-14 is too small beside similarities that add up to 0.9: raise it",
        ),
        (lambda: bd.TaskGraph(S).join(3, {0: 1e16}), "ridge 0.1 is too small beside"),
        (
            lambda: bd.TaskGraph(pd.DataFrame([[1, 0], [0, 1]], ["b", "a"], ["a", "b"])),
            r"rows \['b', 'a'\] and columns \['a', 'b'\]: give both the same order",
        ),
        (lambda: bd.TaskGraph(S, ridge=np.nan), "ridge is nan: it must be finite"),
        (lambda: bd.TaskGraph(S, ridge="0.1"), "it must be a number, not str"),
        (lambda: bd.TaskGraph(S, form="mean"), "form is 'mean': choose one of 'laplacian', 'penalty'"),
        (lambda: bd.TaskGraph(S, sign="keep"), "sign is 'keep': choose one of 'reject', 'clip', 'absolute'"),
        (
            lambda: bd.TaskGraph([[0, 0.3], [0.4, 0]], ["a", "b"]),
            r"not symmetric: \['a', 'b'\] is 0.3 but \['b', 'a'\] is 0.4: use \(S \+ S.T\) / 2, or form=\"penalty\"",
        ),
        (lambda: bd.TaskGraph(sparse.csr_array([[0, 0.3], [0.0, 0]])), "not symmetric"),
        (lambda: bd.TaskGraph.from_history([[1.0, np.inf]] * 5), r"history\[0, 1\] is inf: use NaN"),
        (lambda: bd.TaskGraph.from_history([["a", "b"]] * 5), "give numbers"),
        (lambda: bd.TaskGraph.from_history(np.zeros((5, 2)), measure="kendall"), "measure is 'kendall'"),
        (lambda: bd.TaskGraph.nearest([[0.0, np.nan]]), r"positions\[0, 1\] is nan"),
        (lambda: bd.TaskGraph.nearest([[0.0], [1.0]], k=0), "k is 0: it must be 1 or more"),
        (lambda: bd.TaskGraph.nearest([[0.0], [1.0]], scale=0), "scale is 0"),
        (lambda: bd.TaskGraph(S).join(3, {0: np.nan}), "similarity to 0 is nan"),
        (lambda: bd.TaskGraph(S).join(3, {7: 0.5}), "unknown task 7"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place_and_remedy(make, message):
    with pytest.raises(bd.InputError, match=message):
        make()


def test_similarities_symmetric_up_to_rounding_are_taken():
    noisy = S.copy()
    noisy[0, 1] += 1e-15
    relation = bd.TaskGraph(noisy).relation
    assert (relation == relation.T).all()


def test_a_large_sparse_graph_with_negative_similarities_is_judged_without_becoming_dense():
    n = 20_000
    ring = sparse.diags_array([np.full(n - 1, 0.5), np.full(n - 1, 0.5)], offsets=[1, -1]).tolil()
    ring[0, n - 1] = ring[n - 1, 0] = -0.3
    with pytest.raises(bd.InputError, match="smallest eigenvalue"):
        bd.TaskGraph(ring.tocsr(), ridge=0.1)


def test_a_sound_sparse_graph_with_negative_similarities_is_accepted_at_once():
    n = 20_000
    chain = sparse.diags_array([np.full(n - 1, 0.5), np.full(n - 1, 0.5)], offsets=[1, -1]).tolil()
    chain[0, 1] = chain[1, 0] = -0.2
    graph = bd.TaskGraph(chain.tocsr(), ridge=1.0)
    assert graph.neighbours(0) == {1: -0.2}


def test_its_words():
    assert repr(bd.TaskGraph(S)) == "TaskGraph(3 tasks, 3 edges, ridge=0.1, form='laplacian', dense)"


def test_a_ridge_that_is_lost_beside_squared_similarities_is_refused():
    with pytest.raises(bd.InputError, match="too small beside squares of similarities"):
        bd.TaskGraph(1e6 * S, ridge=1e-6, form="penalty")
    assert bd.TaskGraph(1e6 * S, ridge=1.0, form="penalty").inverse.shape == (3, 3)


def test_positions_whose_distances_overflow_are_refused():
    with pytest.raises(bd.InputError, match="larger unit"):
        bd.TaskGraph.nearest([[1e300], [-1e300], [0.0]], k=1)
