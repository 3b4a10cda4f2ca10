"""Gains: what innovations are multiplied by; they also serve filters with the same inputs and other targets."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import braided as bd
from braided._compiled.delayed import follow_inplace, fresh_followers
from braided.errors import InputError, NumericalError
from braided.forecasting.rescue import progressive_or_reset
from braided.forgetting import Directional, Drift, Exponential, HalfLife, Restore
from braided.state import dumps
from tests.reference.linear import stack
from tests.streams import random_graph, worst

N = 14  # rounds


class ByRoundAndSample:
    """A custom policy."""

    def fades(self, opens):
        return np.column_stack([np.where(opens, 0.8, 0.95), np.ones(opens.size)])

    def __repr__(self):
        return "ByRoundAndSample()"


OWN_CLOCKS = (Exponential(1.0, per="task"), Exponential(0.8, per="task"), HalfLife(3.0), Drift(0.1))
OTHERS = (Exponential(0.97), Exponential(0.7, per="round"), Exponential(0.9, guard=False), ByRoundAndSample())
JOINT = ("dense", "blocked")
KINDS = [(kind, policy) for kind in JOINT for policy in OWN_CLOCKS + OTHERS]
KINDS += [(kind, policy) for kind in ("separate", "pooled") for policy in OWN_CLOCKS]


def learner_of(kind, policy, n_streams, d, **robust):
    """A learner of so many streams; "pooled" is one filter that serves all of them."""
    if kind in JOINT:
        graph = random_graph(np.random.default_rng(n_streams), n_streams)
        return bd.MTWRLS(graph, d, 0.5, policy, solver=kind, **robust)
    return bd.WRLS(range(1 if kind == "pooled" else n_streams), d, 0.5, policy, **robust)


def tasks_of(learner, n_streams):
    """The tasks of the samples of one round."""
    return np.arange(n_streams) % len(learner.tasks)


def samples_of(learner, n_streams, seed=0):
    """Inputs, targets, tasks and rounds of N rounds."""
    rng, n = np.random.default_rng(seed), N * n_streams
    tasks, rounds = np.tile(tasks_of(learner, n_streams), N), np.repeat(np.arange(N), n_streams)
    return rng.normal(size=(n, learner.n_features)), rng.normal(size=n), tasks, rounds


@given(which=st.sampled_from(KINDS), n_streams=st.integers(1, 5), d=st.integers(1, 4), horizon=st.integers(2, 6))
def test_shared_gains_are_as_a_filter_for_each_horizon(which, n_streams, d, horizon):
    learner, K = learner_of(*which, n_streams, d), horizon - 1
    X, y, tasks, rounds = samples_of(learner, n_streams)
    gains = np.zeros((len(y), learner.gain_size))
    learner.progressive(X, y, tasks, rounds=rounds, gains=gains)
    X, changes = X.reshape(N, n_streams, d), np.random.default_rng(1).normal(size=(K, N, n_streams))
    for k in range(K):
        changes[k, : k + 1] = np.nan  # targets of earlier rounds
    before = [(K, 0), (0, 0), (0, 0)]
    room = fresh_followers(K, len(learner.tasks) * d // learner.gain_size, learner.gain_size, n_streams)
    made, gains = np.empty(changes.shape), gains.reshape(N, n_streams, -1)
    follow_inplace(room, np.pad(X, before), np.pad(gains, before), changes, 0.0, True, made)
    own = tasks_of(learner, n_streams)
    for k in range(K):
        one, expected = learner_of(*which, n_streams, d), np.empty((N, n_streams))
        for i in range(N):
            expected[i] = one.predict_many(X[i], own)
            then = i - k - 1
            if then >= 0:
                one.learn_many(X[then], changes[k, i], own, rounds=np.full(n_streams, then))
        assert worst(made[k], expected) < 1e-12
        assert worst(room.weights[k].reshape(-1, d), one.coef) < 1e-12


@pytest.mark.parametrize(("kind", "policy"), KINDS, ids=str)
@pytest.mark.parametrize("robust", [None, 2.0])
def test_weights_move_by_gain_times_innovation(kind, policy, robust):
    learner = learner_of(kind, policy, 3, 2, robust=robust)
    X, y, tasks, rounds = samples_of(learner, 3)
    weights = np.random.default_rng(2).uniform(0.5, 2.0, len(y))
    weights[::4] = 0.0
    gains = np.zeros((len(y), learner.gain_size))
    learner.progressive(X, y, tasks, rounds=rounds, weights=weights, gains=gains)
    W = np.zeros((1 if kind in JOINT else len(learner.tasks), learner.gain_size))
    for x, target, task, gain in zip(X, y, tasks, gains, strict=True):
        w, z = (W[0], stack(x, task, 3)) if kind in JOINT else (W[task], x)
        w += (target - w @ z) * gain
    assert worst(W.reshape(-1, 2), learner.coef) < 1e-12
    np.testing.assert_array_equal((gains == 0.0).all(axis=1), weights == 0.0)


@pytest.mark.parametrize(("kind", "policy"), KINDS, ids=str)
def test_who_asks_for_gains_gets_the_same_forecasts_and_the_same_model(kind, policy):
    one, other = (learner_of(kind, policy, 3, 2) for _ in range(2))
    X, y, tasks, rounds = samples_of(one, 3)
    gains = np.zeros((len(y), one.gain_size))
    made = one.progressive(X, y, tasks, rounds=rounds, with_std=True, gains=gains)
    np.testing.assert_array_equal(made, other.progressive(X, y, tasks, rounds=rounds, with_std=True))
    for a, b in zip(one.state, other.state, strict=True):
        np.testing.assert_array_equal(a, b)


def test_gains_depend_on_inputs_alone():
    one, other = (learner_of("blocked", Exponential(0.97), 3, 2) for _ in range(2))
    X, y, tasks, rounds = samples_of(one, 3)
    gains = np.zeros((2, len(y), one.gain_size))
    one.progressive(X, y, tasks, rounds=rounds, gains=gains[0])
    other.progressive(X, np.cos(50.0 * y), tasks, rounds=rounds, interleaved=True, gains=gains[1])
    np.testing.assert_array_equal(*gains)


def test_gains_of_a_composition_are_those_of_its_learner():
    features, inner = bd.ELM(hidden=4, seed=0), learner_of("dense", Exponential(0.97), 3, 2)
    model = features | inner
    X, y, tasks, rounds = samples_of(inner, 3)
    alone, gains = model.learner.with_features(model.learner.n_features), np.zeros((2, len(y), model.gain_size))
    assert model.gain_size == 3 * features.width(2)
    model.progressive(X, y, tasks, rounds=rounds, gains=gains[0])
    alone.progressive(features.transform(X), y, tasks, rounds=rounds, gains=gains[1])
    np.testing.assert_array_equal(*gains)


@pytest.mark.parametrize("kind", ["dense", "separate"])
@pytest.mark.parametrize("policy", [Drift(0.1), Exponential(0.9, per="task")], ids=repr)
def test_a_sample_that_breaks_the_learner_has_no_gain(kind, policy):
    learner, other = (learner_of(kind, policy, 3, 2) for _ in range(2))
    X, y, tasks, rounds = samples_of(learner, 3)
    first = 21  # opens a round
    gains, expected = np.zeros((2, len(y), learner.gain_size))
    other.progressive(X[:first], y[:first], tasks[:first], rounds=rounds[:first], gains=expected[:first])
    y[first] = 1e200
    with pytest.raises(NumericalError):
        learner.progressive(X, y, tasks, rounds=rounds, gains=gains)
    np.testing.assert_array_equal(gains, expected)


def test_a_sample_learned_by_a_rebuilt_covariance_has_its_gain():
    learner, x = bd.WRLS(["a"], 2, 1.0, 0.9), 1e4 * np.ones(2)
    for y in 1e3 * np.random.default_rng(0).normal(size=150):
        gain, e = np.zeros((1, 2)), y - x @ learner.coef[0]
        learner.progressive(x[None], [y], ["a"], gains=gain)
        assert y - x @ learner.coef[0] == pytest.approx(e - e * (x @ gain[0]), rel=1e-3)  # a rescue also moves weights
    assert learner.health.guarded > 0


def test_a_gain_says_where_the_learner_broke_down():
    learner = learner_of("separate", Exponential(0.9, per="task"), 3, 2)
    X, y, tasks, rounds = samples_of(learner, 3)
    y[[10, 25]] = 1e200
    gains = np.zeros((len(y), 2))
    assert progressive_or_reset(learner, X, y, tasks, rounds, np.ones(len(y)), gains=gains)[2] == 2
    assert np.flatnonzero(np.isnan(gains).any(axis=1)).tolist() == [10, 25]
    assert (gains[11] == 0.0).all()  # the rest of the round was not learned


def read_only(array):
    array.flags.writeable = False
    return array


BAD = {
    "too few": lambda n, m: np.zeros((n - 1, m)),
    "too wide": lambda n, m: np.zeros((n, m + 1)),
    "flat": lambda n, m: np.zeros(n * m),
    "of single precision": lambda n, m: np.zeros((n, m), np.float32),
    "of integers": lambda n, m: np.zeros((n, m), np.int64),
    "by column": lambda n, m: np.zeros((n, m), order="F"),
    "every second": lambda n, m: np.zeros((2 * n, m))[::2],
    "read only": lambda n, m: read_only(np.zeros((n, m))),
    "a list": lambda n, m: np.zeros((n, m)).tolist(),
    "other byte order": lambda n, m: np.zeros((n, m), np.dtype(np.float64).newbyteorder()),
}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("kind", ["blocked", "separate"])
def test_arrays_that_gains_do_not_fit_are_refused(kind, bad):
    learner = learner_of(kind, Exponential(0.9, per="task"), 3, 2)
    X, y, tasks, rounds = samples_of(learner, 3)
    learner.learn_many(X[:9], y[:9], tasks[:9], rounds=rounds[:9])
    before, m = dumps(learner), learner.gain_size
    with pytest.raises(InputError, match=rf"gains can't be filled: give np\.zeros\(\({len(y)}, {m}\)\)"):
        learner.progressive(X, y, tasks, rounds=rounds, gains=BAD[bad](len(y), m))
    assert dumps(learner) == before


GRAPH = bd.TaskGraph.pooled(range(3))
WITHOUT = [
    bd.MTWRLS(GRAPH, 2, 0.5, Exponential(0.9, per="round"), solver="local"),
    bd.MTWRLS(GRAPH, 2, 0.5, Directional(0.9)),
    bd.MTWRLS(GRAPH, 2, 0.5, Restore(0.9)),
    bd.WRLS(range(3), 2, 0.5, Directional(0.9)),
    bd.MOGD(GRAPH, 2),
    bd.MADMM(GRAPH, 2),
    bd.MTOSLSSVR(GRAPH, 2),
]


@pytest.mark.parametrize("learner", WITHOUT, ids=lambda one: type(one).__name__)
def test_learners_without_gains_say_so(learner):
    X, y, tasks, rounds = samples_of(learner, 3)
    before = dumps(learner)
    assert learner.gain_size == 0
    for m in (0, 2, 6):
        with pytest.raises(InputError, match=f"{type(learner).__name__} has no gains: leave them out"):
            learner.progressive(X, y, tasks, rounds=rounds, gains=np.zeros((len(y), m)))
    assert dumps(learner) == before


def test_no_samples_have_no_gains():
    learner = learner_of("dense", Exponential(0.9), 3, 2)
    made = learner.progressive(np.empty((0, 2)), [], [], gains=np.zeros((0, learner.gain_size)))
    assert made.size == learner.samples == 0
