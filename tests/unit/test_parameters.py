"""What the constructors refuse, and what the small parts do: kernels, forgetting, features, composition."""

import datetime

import numpy as np
import pandas as pd
import pytest
import scipy.linalg

import braided as bd
from braided import kernels
from braided.matrices import numerical_errors
from braided.validate import count
from tests.streams import random_graph, random_stream, worst

GRAPH = bd.TaskGraph.pooled(["a", "b"])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: bd.MTWRLS(GRAPH, 0), "n_features is 0: it must be 1 or more"),
        (lambda: bd.MTWRLS(GRAPH, 2.0), "n_features is 2.0: it must be a whole number, not float"),
        (lambda: bd.MTWRLS(GRAPH, True), "n_features is True"),
        (lambda: bd.MTWRLS(np.eye(2), 2), "graph is a ndarray: make a TaskGraph"),
        (lambda: bd.MTWRLS(GRAPH, 2, penalty=0), "penalty is 0: it must be above 0"),
        (lambda: bd.MTWRLS(GRAPH, 2, penalty=-1.0), "penalty is -1: it must be above 0"),
        (lambda: bd.MTWRLS(GRAPH, 2, penalty=np.inf), "penalty is inf: it must be finite"),
        (lambda: bd.MTWRLS(GRAPH, 2, penalty=1e-320), "penalty is 9.99989e-321: it must lie between"),
        (
            lambda: bd.MTWRLS(GRAPH, 2, forgetting=0.0),
            "forgetting is 0: it must be above 0 .1e-09 or more. and at most 1",
        ),
        (lambda: bd.MTWRLS(GRAPH, 2, forgetting=1.01), r"forgetting is 1\.01"),
        (lambda: bd.MTWRLS(GRAPH, 2, forgetting=np.nan), "forgetting is nan"),
        (lambda: bd.MTWRLS(GRAPH, 2, forgetting="slow"), "forgetting is 'slow': it must be a number, not str"),
        (lambda: bd.Exponential(0.9, per="week"), "per is 'week': choose one of 'sample', 'round', 'task'"),
        (lambda: bd.WRLS(["a"], 0), "n_features is 0"),
        (lambda: bd.WRLS([], 2), "no tasks"),
        (lambda: bd.WRLS(12, 2), "tasks is 12: give the keys in order"),
        (lambda: bd.WRLS({"a"}, 2), "tasks is {'a'}: give the keys in order"),
        (lambda: bd.MTOSLSSVR(GRAPH, 2, kernel=kernels.rbf), "give a name, a kernel of braided.kernels"),
        (lambda: bd.WRLS(["a"], 2, penalty=0), "penalty is 0"),
        (lambda: bd.WRLS(["a"], 2, penalty=1e-320), "penalty is 9.99989e-321"),
        (lambda: bd.WRLS(["a"], 2, forgetting=2), "forgetting is 2"),
        (lambda: bd.WRLS(["a"], 2, forgetting=bd.Exponential(0.9)), "each task of WRLS has its own clock"),
        (lambda: bd.MTOSLSSVR(GRAPH, 2, novelty=-1e-9), "novelty is -1e-09: it must be 0 or more"),
        (lambda: bd.MTOSLSSVR(GRAPH, 2, penalty=0), "penalty is 0"),
        (lambda: bd.MTOSLSSVR(GRAPH, 2, budget=0), "budget is 0: it must be 1 or more"),
        (lambda: bd.MTOSLSSVR(GRAPH, 0), "n_features is 0"),
        (lambda: bd.MTOSLSSVR(GRAPH, 2, kernel="cubic"), "kernel is 'cubic': choose 'linear' or 'rbf'"),
        (lambda: bd.MTOSLSSVR(GRAPH, 2, kernel=3), "kernel is 3: give a name"),
        (lambda: bd.OSLSSVR([], 2), "no tasks"),
        (lambda: bd.MOGD(GRAPH, 2, step=0), "step is 0"),
        (lambda: bd.MADMM(GRAPH, 2, rho=0), "rho is 0"),
        (lambda: bd.MADMM(GRAPH, 2, forgetting=0), "forgetting is 0"),
        (lambda: bd.GraphRidge(GRAPH, 2, penalty=0), "penalty is 0"),
        (lambda: bd.ELM(hidden=0), "hidden is 0"),
        (lambda: bd.ELM(seed=-1), "seed is -1"),
        (lambda: bd.Scale([0.0], [0.0]), "deviation is"),
        (lambda: bd.Scale([0.0, 1.0], [1.0]), "for each of 2 columns"),
        (lambda: bd.Scale.fit(np.zeros((0, 2))), "no rows"),
        (lambda: bd.Scale([0.0], [1.0]) | bd.WRLS(["a"], 2), "measured on 1 columns"),
        (lambda: kernels.rbf(0.0), "width is 0"),
        (lambda: kernels.polynomial(0), "degree is 0"),
        (lambda: kernels.polynomial(2, -1.0), "offset is -1"),
        (lambda: -1.0 * kernels.linear(), "factor of a kernel is -1"),
    ],
)
def test_what_cannot_be_is_refused_with_its_remedy(make, message):
    with pytest.raises(bd.InputError, match=message):
        make()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.learn_one([1.0, np.nan], 1.0, task="a"), r"x\[1\] is nan: drop the sample, or fill the value"),
        (lambda m: m.learn_one([1.0, 2.0], np.inf, task="a"), "y is inf: it must be finite"),
        (lambda m: m.learn_one([1.0, 2.0], 10**400, task="a"), "y is inf: it must be finite"),
        (lambda m: m.learn_one([1.0, 2.0], 1.0, task=True), "unknown task True"),
        (lambda m: m.learn_many([[1.0], [1.0, 2.0]], [1, 1], ["a", "b"]), "X is not an array of 2 dimensions"),
        (lambda m: m.learn_one([1.0], 1.0, task="a"), "x has 1 values, the model has n_features=2"),
        (lambda m: m.learn_one([1.0, 2.0], 1.0, task="z"), "unknown task 'z': known are 'a', 'b'; add_task"),
        (lambda m: m.learn_one(["1", "2"], 1.0, task="a"), "x has dtype <U1: it must hold real numbers"),
        (lambda m: m.learn_one([1.0, 2.0], 1.0, task="a", weight=-2), "weight is -2: it must be 0 or more"),
        (lambda m: m.learn_one([1.0, 2.0], 1.0, task="a", round=0.5), "rounds has dtype float64"),
        (lambda m: m.learn_many(np.ones((3, 3)), [1] * 3, ["a"] * 3), "X has 3 columns, the model has n_features=2"),
        (lambda m: m.learn_many(np.ones((3, 2)), [1] * 2, ["a"] * 3), "y has 2 values for 3 samples"),
        (lambda m: m.learn_many(np.ones((3, 2)), [1] * 3, ["a"] * 2), "tasks has 2 values for 3 samples"),
        (lambda m: m.learn_many(np.ones((2, 2)), [1] * 2, ["a", "c"]), "unknown task 'c' at position 1"),
        (lambda m: m.learn_many(np.ones((1, 2)), [1], "a"), "tasks is 'a': give one key per sample"),
        (lambda m: m.learn_many(np.ones((1, 2)), [1], None), "tasks is None: give one key per sample"),
        (lambda m: m.learn_many(np.ones((1, 2)), [1], np.ones(1)), "tasks has dtype float64"),
        (lambda m: m.add_task("c", ["a"]), r"similar_to is \['a'\]: give a dictionary"),
        (
            lambda m: m.progressive(np.ones((3, 2)), [1] * 3, ["a"] * 3, rounds=[0, 2, 1]),
            r"rounds\[2\], 1, is below the one before: sort the samples by round",
        ),
        (
            lambda m: m.progressive(np.ones((1, 2)), [1], ["a"], rounds=np.array(["NaT"], "datetime64[s]")),
            r"rounds\[0\], NaT, is missing",
        ),
    ],
)
def test_bad_samples_are_told_by_value_place_and_remedy(call, message):
    with pytest.raises(bd.InputError, match=message):
        call(bd.MTWRLS(GRAPH, 2))


def test_no_samples_are_no_trouble():
    model = bd.MTWRLS(GRAPH, 2)
    assert model.predict_many(np.empty((0, 2)), []).shape == (0,)
    model.learn_many(np.empty((0, 2)), [], [])
    assert model.progressive(np.empty((0, 2)), [], [], rounds=[]).shape == (0,)
    assert model.samples == 0


def test_a_round_may_be_cut_by_a_chunk():
    """The label is remembered, so forgetting a round ticks once."""
    rng = np.random.default_rng(0)
    X, y, tasks, rounds = random_stream(rng, 3, 2, n_rounds=6)
    policy = bd.Exponential(0.8, per="round")
    whole, cut = (bd.MTWRLS(bd.TaskGraph.pooled(range(3)), 2, 1.0, policy) for _ in range(2))
    whole.learn_many(X, y, tasks, rounds=rounds)
    for part in (slice(0, 4), slice(4, 5), slice(5, None)):
        cut.learn_many(X[part], y[part], tasks[part], rounds=rounds[part])
    assert worst(cut.coef, whole.coef) < 1e-12
    assert worst(cut.covariance, whole.covariance) < 1e-12


def test_time_stamps_of_any_unit_name_the_same_round():
    X, y, tasks = np.ones((2, 2)), np.ones(2), ["a", "b"]
    model = bd.MTWRLS(GRAPH, 2, 1.0, bd.Exponential(0.5, per="round"))
    model.learn_many(X[:1], y[:1], tasks[:1], rounds=np.array(["2024-01-01"], "datetime64[D]"))
    scale = model.state.totals[0, 0]
    model.learn_many(X[1:], y[1:], tasks[1:], rounds=np.array(["2024-01-01T00:00"], "datetime64[ns]"))
    assert model.state.totals[0, 0] == scale == 2.0
    for stamp in (datetime.datetime(2024, 1, 1), datetime.date(2024, 1, 1), pd.Timestamp("2024-01-01")):
        model.learn_one(X[0], 1.0, task="a", round=stamp)
        assert model.state.totals[0, 0] == scale
    abroad = datetime.timezone(datetime.timedelta(hours=2))
    model.learn_one(X[0], 1.0, task="a", round=datetime.datetime(2024, 1, 1, 2, tzinfo=abroad))
    assert model.state.totals[0, 0] == scale
    model.learn_one(X[0], 1.0, task="a", round=datetime.datetime(2024, 1, 2))
    assert model.state.totals[0, 0] == 4.0


@pytest.mark.parametrize(
    ("rounds", "message"),
    [
        (pd.period_range("2024-01-01", periods=2, freq="h"), "give one integer, datetime or datetime64 per sample"),
        (["2024-01-01", "2024-01-02"], "rounds has dtype <U10"),
        (np.array(["2024", "2025"], dtype=object), "rounds has dtype <U4"),
        (np.array([0, 100], "datetime64[ns]"), r"rounds\[1\].*finer than a microsecond"),
        (np.array([0, 2**63], np.uint64), r"rounds\[1\], 9223372036854775808, is finer"),
        (pd.to_datetime(["2024-01-01", None]), r"rounds\[1\], NaT, is missing"),
        ([[0, 1]], r"shape \(1, 2\)"),
    ],
)
def test_labels_that_would_be_misread_are_refused(rounds, message):
    with pytest.raises(bd.InputError, match=message):
        bd.MTWRLS(GRAPH, 2).learn_many(np.ones((2, 2)), [1, 1], ["a", "b"], rounds=rounds)


def test_nullable_columns_of_pandas_are_numbers():
    frame = pd.DataFrame({"u": [1.0, 2.0], "v": [3, 4]}).astype({"u": "Float64", "v": "Int64"})
    model = bd.MTWRLS(GRAPH, 2)
    model.learn_many(frame, frame["u"], pd.Series(["a", "b"], dtype="category"), rounds=frame["v"])
    assert model.samples == 2
    with pytest.raises(bd.InputError, match="X has dtype object"):
        model.predict_many(frame.assign(u=[pd.NA, 1.0]), ["a", "b"])


def test_without_labels_every_sample_is_a_round():
    rng = np.random.default_rng(1)
    X, y, tasks, _ = random_stream(rng, 2, 2, n_rounds=6)
    graph = bd.TaskGraph.pooled(range(2))
    a, b = (bd.MTWRLS(graph, 2, 1.0, bd.Exponential(0.9, per=per)) for per in ("sample", "round"))
    assert (a.progressive(X, y, tasks) == b.progressive(X, y, tasks)).all()


@pytest.mark.parametrize("kernel", [kernels.linear(), kernels.rbf(1.3), kernels.polynomial(3), 0.5 * kernels.rbf()])
def test_kernels_are_positive_semidefinite_and_symmetric(kernel):
    X = np.random.default_rng(2).normal(size=(12, 3))
    gram = np.array([kernel(X, x) for x in X])
    np.testing.assert_allclose(gram, gram.T)
    assert np.linalg.eigvalsh(gram)[0] > -1e-9 * np.linalg.eigvalsh(gram)[-1]


def test_a_kernels_words_make_it_again():
    kernel = (kernels.linear() + kernels.rbf(2.0)) * kernels.polynomial(3, 0.5) + 2 * kernels.rbf(0.1)
    assert repr(kernel) == "(linear() + rbf(2.0)) * polynomial(3, 0.5) + 2.0 * rbf(0.1)"
    assert eval(repr(kernel), vars(kernels)) == kernel


def test_elm_is_the_same_for_the_same_seed_and_bounded():
    X = np.random.default_rng(3).normal(size=(5, 4)) * 100
    a, b, c = bd.ELM(8, seed=1).transform(X), bd.ELM(8, seed=1).transform(X), bd.ELM(8, seed=2).transform(X)
    assert (a == b).all()
    assert (a != c).any()
    assert a.shape == (5, 9)
    assert (a[:, 0] == 1).all()
    assert (np.abs(a) <= 1).all()


def test_a_composition_learns_on_the_features():
    rng = np.random.default_rng(4)
    graph = random_graph(rng, 3)
    X, y, tasks, rounds = random_stream(rng, 3, 4, n_rounds=20)
    scale, elm = bd.Scale.fit(X), bd.ELM(6, seed=1)
    model = scale | elm | bd.MTWRLS(graph, n_features=4, penalty=0.3, forgetting=0.99)
    plain = bd.MTWRLS(graph, n_features=7, penalty=0.3, forgetting=0.99)
    features = elm.transform(scale.transform(X))
    forecasts = model.progressive(X, y, tasks, rounds=rounds)
    assert worst(forecasts, plain.progressive(features, y, tasks, rounds=rounds)) < 1e-12
    assert worst(model.coef, plain.coef) < 1e-12
    assert model.n_features == 4
    again = scale | (elm | bd.MTWRLS(graph, n_features=4, penalty=0.3, forgetting=0.99))
    assert (again.progressive(X, y, tasks, rounds=rounds) == forecasts).all()
    with pytest.raises(bd.InputError, match="compose before learning"):
        elm | plain
    with pytest.raises(TypeError):
        3 | plain


def test_features_that_overflow_are_refused():
    model = bd.Scale([0.0], [1e-300]) | bd.WRLS(["a"], 1)
    with pytest.raises(bd.InputError, match=r"features of Scale\[0, 0\] is inf"):
        model.learn_one([1e300], 1.0, task="a")


class Narrow(bd.features.FeatureMap):
    """Says three, gives two."""

    def width(self, n_features):
        return 3

    def transform(self, X):
        return X


class Short:
    """A policy whose answer has another length."""

    def fades(self, opens):
        return np.full((1, 2), 0.9)


class Kept:
    """A policy that gives the same array again and again."""

    def __init__(self, n):
        self.answer = np.full((n, 2), 0.9)

    def fades(self, opens):
        return self.answer


def test_what_a_policy_gives_is_not_written_to():
    for learner in (bd.MTWRLS, bd.WRLS, bd.MADMM):
        policy = Kept(3)
        learner(GRAPH, 1, forgetting=policy).learn_many([[1.0]] * 3, [1.0] * 3, ["a"] * 3)
        assert (policy.answer == 0.9).all()


def test_parts_of_ones_own_are_checked_before_compiled_code_relies_on_them():
    model = Narrow() | bd.WRLS(["a"], 2)
    with pytest.raises(bd.InputError, match=r"features of Narrow have shape \(1, 2\), but its width says \(1, 3\)"):
        model.learn_one([1.0, 2.0], 1.0, task="a")
    for learner in (bd.MTWRLS, bd.WRLS, bd.MADMM):
        with pytest.raises(bd.InputError, match=r"gave fades of shape \(1, 2\)"):
            learner(GRAPH, 1, forgetting=Short()).learn_many([[1.0]] * 3, [1.0] * 3, ["a"] * 3)


def test_only_linear_models_have_weights():
    assert bd.MTOSLSSVR(GRAPH, 2).coef.shape == (2, 2)
    with pytest.raises(AttributeError, match="only the linear kernel"):
        bd.MTOSLSSVR(GRAPH, 2, "rbf").coef  # noqa: B018


def test_a_models_words():
    model = bd.MTWRLS(GRAPH, 2, penalty=0.5, forgetting=0.9)
    assert repr(model).endswith(
        "n_features=2, penalty=0.5, forgetting=Exponential(factor=0.9, per='sample'), robust=None, noise=None, "
        "solver='auto', tolerance=0.0002) after 0 samples, dense"
    )
    assert repr(bd.ELM(5) | model).startswith("ELM(hidden=5, seed=0) | MTWRLS(")


@pytest.mark.parametrize(("value", "is_fine"), [(4, False), (5, True), (7, True), (8, False)])
def test_a_count_includes_both_ends(value, is_fine):
    if is_fine:
        assert count(value, "n", least=5, most=7) == value
    else:
        with pytest.raises(bd.InputError, match=f"n is {value}: it must be"):
            count(value, "n", least=5, most=7)


def test_failures_of_linear_algebra_are_numerical_and_other_errors_stay():
    for fails in (lambda: scipy.linalg.cholesky(np.full((2, 2), np.nan)), lambda: np.linalg.inv(np.zeros((2, 2)))):
        with pytest.raises(bd.NumericalError, match=r"it failed .*: do this"), numerical_errors("it failed", "do this"):
            fails()
    for other in (NotImplementedError("write me"), ValueError("a bug")):
        with pytest.raises(type(other), match=str(other)), numerical_errors("it failed", "do this"):
            raise other
