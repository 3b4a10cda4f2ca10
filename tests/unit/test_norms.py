"""L21 and TraceNorm, and the optimality conditions that every batch learner's solution must satisfy."""

from pathlib import Path

import numpy as np
import pytest
import scipy.io
from hypothesis import given
from hypothesis import strategies as st

import braided as bd
from braided.learners.parts import norms
from tests.reference.proximal import columns, objective, shrink_columns, shrink_spectrum, trace
from tests.streams import random_stream, worst

BOTH = [bd.L21, bd.TraceNorm]
SHARED = Path(__file__).parents[3] / "shared" / "data"


def learned(learner, penalty, X, y, tasks):
    model = learner(range(tasks.max() + 1), X.shape[1], penalty)
    model.learn_many(X, y, tasks)
    return model


def least_zero(learner, X, y, tasks):
    """The smallest penalty that makes all weights zero."""
    gradient = np.array([X[tasks == t].T @ y[tasks == t] for t in range(tasks.max() + 1)])
    return np.linalg.norm(gradient, axis=0).max() if learner is bd.L21 else np.linalg.norm(gradient, 2)


@given(
    seed=st.integers(0, 2**32 - 1),
    n_tasks=st.integers(1, 6),
    d=st.integers(1, 6),
    n_rounds=st.integers(1, 12),
    size=st.sampled_from([1e-3, 1.0, 1e3]),
    spread=st.sampled_from([0.0, 1.0]),
    share=st.sampled_from([0.9, 0.3, 1e-2, 1e-4, 1e-8, 1e-13]),
)
@pytest.mark.parametrize("learner", BOTH)
def test_solutions_are_optimal_whatever_the_shape_and_scale(learner, seed, n_tasks, d, n_rounds, size, spread, share):
    rng = np.random.default_rng(seed)
    X, y, tasks, _ = random_stream(rng, n_tasks, d, n_rounds)
    X *= size * 10.0 ** rng.uniform(-spread, spread, d)
    penalty = share * least_zero(learner, X, y, tasks)
    model = learned(learner, penalty, X, y, tasks)
    assert model.optimality < 2e-9
    norm = columns if learner is bd.L21 else trace
    lowest = objective(model.coef, X, y, tasks, penalty, norm)
    for step in (1e-6, 1e-3, 1.0):
        other = model.coef + step * np.abs(model.coef).max() * rng.normal(size=(n_tasks, d))
        assert objective(other, X, y, tasks, penalty, norm) >= lowest * (1 - 1e-9)


@pytest.fixture(scope="module")
def school():
    path = SHARED / "school.mat"
    if not path.exists():
        pytest.skip(f"{path} is absent: the School data are not the project's to carry")
    content = scipy.io.loadmat(path)
    X, y = ([np.asarray(part, float) for part in content[name].ravel()] for name in ("X", "Y"))
    return np.vstack(X), np.concatenate(y).ravel(), np.repeat(np.arange(len(X)), [len(part) for part in X])


@pytest.mark.parametrize(
    ("learner", "penalty"),
    [
        *((bd.L21, penalty) for penalty in (1.0, 100.0, 1e4)),
        *((bd.TraceNorm, penalty) for penalty in (300.0, 3e3, 3e4)),
        *((lambda tasks, *args: bd.GraphRidge(bd.TaskGraph.pooled(tasks), *args), penalty) for penalty in (0.1, 10.0)),
    ],
)
def test_solutions_for_the_schools_are_optimal(learner, penalty, school):
    assert learned(learner, penalty, *school).optimality < 2e-9


@pytest.mark.parametrize("learner", BOTH)
def test_optimality_is_not_taken_from_the_solver(learner, monkeypatch):
    X, y, tasks, _ = random_stream(np.random.default_rng(0), 4, 3, n_rounds=10)
    monkeypatch.setattr(norms, "TOLERANCE", 1e-2)
    assert 1e-5 < learned(learner, 5.0, X, y, tasks).optimality < 1e-2


def test_of_one_task_l21_is_the_lasso():
    X, y, tasks, _ = random_stream(np.random.default_rng(1), 1, 8, n_rounds=30)
    model = learned(bd.L21, 20.0, X, y, tasks)
    w = model.coef[0]
    gradient = X.T @ (X @ w - y)
    assert 0 < (w != 0).sum() < 8
    np.testing.assert_allclose(gradient[w != 0], -20.0 * np.sign(w[w != 0]), atol=1e-6)
    assert np.abs(gradient[w == 0]).max() <= 20.0


def test_of_one_task_trace_norm_shrinks_the_weights_as_a_whole():
    X, y, tasks, _ = random_stream(np.random.default_rng(2), 1, 4, n_rounds=30)
    w = learned(bd.TraceNorm, 20.0, X, y, tasks).coef[0]
    np.testing.assert_allclose(X.T @ (X @ w - y), -20.0 * w / np.linalg.norm(w), atol=1e-6)


@pytest.mark.parametrize("shape", [(5, 3), (3, 5)])
def test_with_orthogonal_inputs_the_solution_is_shrunken_least_squares(shape):
    rng = np.random.default_rng(3)
    W = rng.normal(size=shape)
    tasks = np.repeat(np.arange(shape[0]), shape[1])
    X, y = np.tile(np.eye(shape[1]), (shape[0], 1)), W.ravel()
    assert worst(learned(bd.L21, 1.0, X, y, tasks).coef, shrink_columns(W, 1.0)) < 1e-9
    assert worst(learned(bd.TraceNorm, 1.0, X, y, tasks).coef, shrink_spectrum(W, 1.0)) < 1e-9
    assert np.linalg.matrix_rank(learned(bd.TraceNorm, 1.5, X, y, tasks).coef, tol=1e-12) < 3


@pytest.mark.parametrize("learner", BOTH)
def test_a_vanishing_penalty_gives_least_squares(learner):
    X, y, tasks, _ = random_stream(np.random.default_rng(4), 4, 10, n_rounds=100)
    expected = [np.linalg.lstsq(X[tasks == t], y[tasks == t])[0] for t in range(4)]
    assert worst(learned(learner, 1e-10, X, y, tasks).coef, expected) < 1e-8


@pytest.mark.parametrize("learner", BOTH)
def test_a_large_penalty_gives_exactly_zero(learner):
    X, y, tasks, _ = random_stream(np.random.default_rng(5), 3, 4, n_rounds=10)
    limit = least_zero(learner, X, y, tasks)
    for penalty in (1.0001 * limit, 1e10):
        model = learned(learner, penalty, X, y, tasks)
        assert (model.coef == 0).all()
        assert model.optimality == 0
    assert (learned(learner, 0.9999 * limit, X, y, tasks).coef != 0).any()
    assert learner(["a"], 2).coef.tolist() == [[0, 0]]
    assert learner(["a"], 2).optimality == 0


def test_l21_uses_a_feature_for_all_tasks_or_for_none_on_any_scale():
    rng = np.random.default_rng(6)
    X, tasks = rng.normal(size=(400, 6)), np.repeat(np.arange(4), 100)
    y = (X[:, :2] * rng.normal(3.0, 1.0, (4, 2))[tasks]).sum(axis=1) + rng.normal(size=400)
    assert (learned(bd.L21, 100.0, X, y, tasks).coef != 0).tolist() == [[True, True, *[False] * 4]] * 4
    model = learned(bd.L21, 1e-3, X * 10.0 ** np.arange(-5, 7, 2), y, tasks)
    assert model.optimality < 2e-9


@pytest.mark.parametrize("learner", BOTH)
def test_features_that_are_the_same_are_no_trouble(learner):
    X, y, tasks, _ = random_stream(np.random.default_rng(7), 3, 2, n_rounds=20)
    for penalty in (1e-10, 1e-3, 1.0):
        model = learned(learner, penalty, X[:, [0, 1, 1]], y, tasks)
        assert model.optimality < 2e-9
        np.testing.assert_allclose(model.coef[:, 1], model.coef[:, 2], rtol=1e-6)


@pytest.mark.parametrize("learner", BOTH)
@pytest.mark.parametrize("size", [1e-140, 1e140])
def test_very_large_and_very_small_numbers(learner, size):
    X, y, tasks, _ = random_stream(np.random.default_rng(8), 3, 2, n_rounds=10)
    expected = learned(learner, 1.0, X, y, tasks).coef
    assert worst(learned(learner, size, X, size * y, tasks).coef, size * expected) < 1e-8
    model = learned(learner, 1e-150, size * X, y, tasks)
    assert model.optimality < 2e-9
    with pytest.raises(bd.NumericalError, match=r"broke down at sample 1 \(task 0\)"):
        model.learn_many([[1.0, 1.0], [1e150, 0.0]], [1.0, 1.0], [0, 0])


@pytest.mark.parametrize("learner", BOTH)
def test_weights_count_samples(learner):
    X, y, tasks, _ = random_stream(np.random.default_rng(9), 3, 2, n_rounds=10)
    counts = np.arange(len(y)) % 3
    model = learner(range(3), 2, 0.5)
    model.learn_many(X, y, tasks, weights=counts)
    repeated = learned(learner, 0.5, *(np.repeat(column, counts, axis=0) for column in (X, y, tasks)))
    assert worst(model.coef, repeated.coef) < 1e-9


@pytest.mark.parametrize("learner", BOTH)
def test_a_task_joins_without_data_and_leaves_with_its_own(learner):
    X, y, tasks, _ = random_stream(np.random.default_rng(10), 4, 3, n_rounds=10)
    model, rest = learned(learner, 0.5, X, y, tasks), tasks != 3
    before = model.coef
    model.add_task("new", {0: 0.7})
    assert model.graph.neighbours("new") == {}
    assert worst(model.coef, np.vstack([before, np.zeros(3)])) < 1e-9
    model.remove_task("new")
    model.remove_task(3)
    assert worst(model.coef, learned(learner, 0.5, X[rest], y[rest], tasks[rest]).coef) < 1e-9


@pytest.mark.parametrize("learner", BOTH)
def test_says_what_to_do_where_it_does_not_converge(learner, monkeypatch):
    monkeypatch.setattr(norms, "FIRST_LEG", 1)
    monkeypatch.setattr(norms, "LEGS", 1)
    X, y, tasks, _ = random_stream(np.random.default_rng(11), 3, 4, n_rounds=10)
    with pytest.raises(bd.NumericalError, match=f"{learner.__name__} did not converge: scale the features to about 1"):
        learned(learner, 0.5, X, y, tasks).coef  # noqa: B018


def test_the_keys_of_a_graph_are_taken():
    model = bd.L21(bd.TaskGraph.pooled(["a", "b"]), 2)
    assert (model.tasks, model.graph.neighbours("a")) == (("a", "b"), {})
    with pytest.raises(bd.InputError, match="penalty is 0"):
        bd.TraceNorm(["a"], 2, penalty=0)
    with pytest.raises(bd.InputError, match="no variance"):
        model.predict_one([1.0, 2.0], task="a", with_std=True)
