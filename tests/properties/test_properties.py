"""Properties over shapes, scales and extreme values, drawn by Hypothesis (the same examples in every run)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import braided as bd
from braided.state import dumps, loads
from tests.reference.linear import batch
from tests.streams import random_graph, random_stream, worst

ANY_FLOAT = st.floats(allow_nan=True, allow_infinity=True)
FINITE = st.floats(allow_nan=False, allow_infinity=False)

LEARNERS = [
    lambda g: bd.MTWRLS(g, 2),
    lambda g: bd.MTWRLS(g, 2, 1e-3, 0.7),
    lambda g: bd.MTWRLS(g, 2, 1.0, bd.Exponential(0.9, per="task")),
    lambda g: bd.WRLS(g, 2, 1.0, 0.9),
    lambda g: bd.MTOSLSSVR(g, 2),
    lambda g: bd.MTOSLSSVR(g, 2, "rbf", budget=4),
    lambda g: bd.OSLSSVR(g, 2, bd.kernels.polynomial(3)),
    lambda g: bd.MOGD(g, 2),
    lambda g: bd.MADMM(g, 2, rho=1e-4),
    lambda g: bd.GraphRidge(g, 2),
    lambda g: bd.Persistence(g, 2),
    lambda g: bd.ELM(3) | bd.MTWRLS(g, 2),
]


@given(
    seed=st.integers(0, 2**32 - 1),
    n_tasks=st.integers(1, 5),
    d=st.integers(1, 4),
    size=st.sampled_from([1e-3, 1.0, 1e3]),
    penalty=st.sampled_from([1e-4, 1.0, 1e4]),
    ridge=st.sampled_from([1e-2, 1.0]),
    forgetting=st.sampled_from([1.0, 0.99, 0.9]),
    per=st.sampled_from(["sample", "round"]),
    storage=st.sampled_from(["dense", "sparse"]),
    solver=st.sampled_from(["dense", "blocked"]),
)
def test_mtwrls_is_the_batch_solution_whatever_the_shape_and_scale(
    seed, n_tasks, d, size, penalty, ridge, forgetting, per, storage, solver
):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, n_tasks, ridge=ridge, storage=storage)
    X, y, tasks, rounds = random_stream(rng, n_tasks, d, n_rounds=int(rng.integers(1, 12)))
    X = size * X
    model = bd.MTWRLS(graph, d, penalty, bd.Exponential(forgetting, per=per), solver=solver)
    model.progressive(X, y, tasks, rounds=rounds)
    ticks = np.arange(len(y)) if per == "sample" else rounds
    w, P, _ = batch(
        graph.dense_relation, penalty, X, y, tasks, forgetting ** (ticks[-1] - ticks), forgetting ** (ticks[-1] + 1)
    )
    # Ten digits, less those that the closed form can't have, and those lost where the prior variance of a forecast
    # dwarfs the noise: P is stored by its entries, and the first samples shrink it by that much.
    prior_variance = (X**2).sum(axis=1).max() / (penalty * ridge * forgetting ** (ticks[-1] + 1))
    tolerance = max(1e-10, 1e-14 * np.linalg.cond(P), 1e-14 * prior_variance)
    assert worst(model.coef, w) < tolerance
    assert worst(model.covariance, P) < tolerance


@given(seed=st.integers(0, 2**32 - 1), factor=st.sampled_from([-1.0, 1e-6, 1e6]))
@pytest.mark.parametrize("make", [LEARNERS[i] for i in (0, 1, 3, 4, 5, 7, 8, 9)])
def test_forecasts_are_linear_in_the_targets(make, seed, factor):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, 3)
    X, y, tasks, rounds = random_stream(rng, 3, 2, n_rounds=8)
    X /= 3
    plain, scaled = (make(graph).progressive(X, f * y, tasks, rounds=rounds) for f in (1.0, factor))
    assert worst(scaled, factor * plain) < 1e-9


@given(data=st.data())
@pytest.mark.parametrize("make", LEARNERS)
def test_any_value_is_either_refused_or_leads_to_finite_forecasts(make, data):
    """Whatever comes, no forecast is ever NaN or infinite, and what is refused leaves no trace."""
    model = make(bd.TaskGraph.pooled(["a", "b"], ridge=0.1))
    largest = 0.0  # beyond 1e4, features are out of the range that double precision is good for
    for _ in range(4):
        x, y = data.draw(arrays(np.float64, 2, elements=ANY_FLOAT)), data.draw(ANY_FLOAT)
        weight = data.draw(st.sampled_from([1.0, 0.0, 1e-3, 1e6]))
        task = data.draw(st.sampled_from(["a", "b"]))
        before = dumps(model)
        try:
            largest = max(largest, np.abs(np.nan_to_num([*x, y])).max())
            model.learn_one(x, y, task=task, weight=weight)
        except bd.InputError:
            assert dumps(model) == before
            assert not (np.isfinite(x).all() and np.isfinite(y))
        except bd.NumericalError:
            assert largest > 1e4
        for key in ("a", "b"):
            try:
                assert np.isfinite(model.predict_one(np.ones(2), task=key))
            except bd.NumericalError:
                assert largest > 1e4


@given(S=arrays(np.float64, (4, 4), elements=st.floats(0, 1e6)), ridge=st.sampled_from([1e-6, 1.0, 1e6]))
def test_non_negative_similarities_are_always_a_graph(S, ridge):
    graph = bd.TaskGraph((S + S.T) / 2, ridge=ridge)
    eigenvalues = np.linalg.eigvalsh(graph.relation)
    assert eigenvalues[0] > ridge - 1e-12 * eigenvalues[-1]
    assert np.isfinite(graph.inverse).all()


@given(S=arrays(np.float64, (3, 3), elements=st.floats(-1e3, 1e3)))
def test_any_similarities_are_a_graph_by_the_printed_penalty(S):
    eigenvalues = np.linalg.eigvalsh(bd.TaskGraph(S, ridge=1.0, form="penalty").relation)
    assert eigenvalues[0] > 1.0 - 1e-9 * eigenvalues[-1]


@given(history=arrays(np.float64, (12, 3), elements=st.one_of(st.just(np.nan), st.floats(-1e200, 1e200))))
@pytest.mark.filterwarnings("ignore:no similarity")
def test_any_history_with_gaps_gives_similarities_between_zero_and_one(history):
    for measure in ("spearman", "pearson"):
        S = bd.TaskGraph.from_history(history, measure=measure).similarity
        assert (S == S.T).all()
        assert ((S >= 0) & (S <= 1)).all()


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(0, 30))
@pytest.mark.parametrize("make", LEARNERS)
def test_saving_at_any_moment_changes_nothing_of_what_follows(make, seed, n):
    rng = np.random.default_rng(seed)
    model = make(random_graph(rng, 3))
    X, y, tasks, rounds = random_stream(rng, 3, 2, n_rounds=14)
    X /= 3
    model.learn_many(X[:n], y[:n], tasks[:n], rounds=rounds[:n])
    copy = loads(dumps(model))
    rest = slice(n, None)
    forecasts = [m.progressive(X[rest], y[rest], tasks[rest], rounds=rounds[rest]) for m in (model, copy)]
    assert forecasts[0].tobytes() == forecasts[1].tobytes()
    assert dumps(copy) == dumps(model)
