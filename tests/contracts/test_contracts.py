"""Every learner × every check × several parameter sets."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sparse

import braided as bd
from braided.checks import (
    CHECKS,
    SIMILARITY,
    TASKS,
    check_learner,
    memory_is_bounded,
    the_clock_survives_cuts_and_feature_maps,
)
from braided.kernels import polynomial, rbf
from braided.state import dumps

MAKERS = {
    "MTWRLS": bd.MTWRLS,
    "MTWRLS σ=0.98": lambda g, d: bd.MTWRLS(g, d, 0.01, 0.98),
    "MTWRLS a round": lambda g, d: bd.MTWRLS(g, d, 10.0, bd.Exponential(0.9, per="round")),
    "MTWRLS a task": lambda g, d: bd.MTWRLS(g, d, 1.0, bd.Exponential(0.9, per="task")),
    "MTWRLS blocked": lambda g, d: bd.MTWRLS(g, d, 0.1, solver="blocked"),
    "MTWRLS blocked σ=0.98": lambda g, d: bd.MTWRLS(g, d, 0.01, 0.98, solver="blocked"),
    "MTWRLS local": lambda g, d: bd.MTWRLS(g, d, 0.1, solver="local", tolerance=1e-9),
    "MTWRLS local σ=0.98": lambda g, d: bd.MTWRLS(g, d, 0.01, 0.98, solver="local", tolerance=1e-9),
    "WRLS": bd.WRLS,
    "WRLS σ=0.9": lambda g, d: bd.WRLS(g, d, 0.01, 0.9),
    "MTOSLSSVR": bd.MTOSLSSVR,
    "MTOSLSSVR rbf": lambda g, d: bd.MTOSLSSVR(g, d, "rbf", 0.1, 1e-2),
    "MTOSLSSVR budget": lambda g, d: bd.MTOSLSSVR(g, d, rbf(0.5) + 0.1 * polynomial(2), 0.01, 0.0, budget=12),
    "MTOSLSSVR relative": lambda g, d: bd.MTOSLSSVR(g, d, "rbf", 1.0, 0.1, novelty_relative=True),
    "OSLSSVR": bd.OSLSSVR,
    "OSLSSVR rbf": lambda g, d: bd.OSLSSVR(g, d, "rbf", 0.1, 1e-2),
    "OSLSSVR budget": lambda g, d: bd.OSLSSVR(g, d, "rbf", 0.1, 0.0, budget=5),
    "MOGD": bd.MOGD,
    "MOGD slow": lambda g, d: bd.MOGD(g, d, 1e-3, 0.01),
    "MADMM": bd.MADMM,
    "MADMM σ=0.9": lambda g, d: bd.MADMM(g, d, 0.1, 1e-2, 0.9),
    "GraphRidge": bd.GraphRidge,
    "GraphRidge λ=0.01": lambda g, d: bd.GraphRidge(g, d, 0.01),
    "L21": bd.L21,
    "L21 λ=0.01": lambda g, d: bd.L21(g, d, 0.01),
    "TraceNorm": bd.TraceNorm,
    "TraceNorm λ=0.01": lambda g, d: bd.TraceNorm(g, d, 0.01),
    "Persistence": bd.Persistence,
    "ELM MTWRLS": lambda g, d: bd.ELM(hidden=7, seed=1) | bd.MTWRLS(g, d, 0.1, 0.99),
    "ELM WRLS": lambda g, d: bd.ELM(hidden=7) | bd.WRLS(g, d),
    "ELM MOGD": lambda g, d: bd.ELM(hidden=7) | bd.MOGD(g, d, 0.1, 0.05),
    "ELM MADMM": lambda g, d: bd.ELM(hidden=4) | bd.MADMM(g, d),
    "ELM GraphRidge": lambda g, d: bd.ELM(hidden=4) | bd.GraphRidge(g, d),
    "ELM L21": lambda g, d: bd.ELM(hidden=4) | bd.L21(g, d, 0.1),
    "ELM TraceNorm": lambda g, d: bd.ELM(hidden=4) | bd.TraceNorm(g, d, 3.0),
    "Scale ELM MTOSLSSVR": lambda g, d: (
        bd.Scale(np.zeros(d), np.full(d, 0.5)) | bd.ELM(hidden=4) | bd.MTOSLSSVR(g, d, "rbf", 0.1, 1e-2)
    ),
}


SLOW = pytest.mark.slow  # passes over the same samples two hundred times


@pytest.mark.parametrize(
    "check",
    [pytest.param(check, marks=SLOW if check is memory_is_bounded else (), id=check.__name__) for check in CHECKS],
)
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
def test_keeps_the_contract(make, check):
    check(make)


BY_THE_CLOCK = {
    "MTWRLS": lambda g, d: bd.MTWRLS(g, d, 0.1, bd.HalfLife(100)),
    "MTWRLS local": lambda g, d: bd.MTWRLS(g, d, 0.1, bd.HalfLife(100), solver="local", tolerance=1e-9),
    "WRLS": lambda g, d: bd.WRLS(g, d, 0.1, bd.HalfLife(100)),
    "ELM MTWRLS": lambda g, d: bd.ELM(hidden=4) | bd.MTWRLS(g, d, 0.1, bd.HalfLife(100)),
}


@pytest.mark.parametrize("make", BY_THE_CLOCK.values(), ids=BY_THE_CLOCK.keys())
def test_policies_that_go_by_the_clock_know_the_time(make):
    the_clock_survives_cuts_and_feature_maps(make)


def test_one_by_one_behind_features_the_past_fades_as_without():
    """Two tasks; x = 1, y = 1, 3, 5 at rounds 0, 100, 200, of which ten rounds halve what is known."""
    plain = bd.MTWRLS(bd.TaskGraph.pooled(["a", "b"], ridge=0.1), 1, 1e-3, bd.HalfLife(10))
    composed = bd.Scale(np.zeros(1), np.ones(1)) | bd.MTWRLS(plain.graph, 1, 1e-3, bd.HalfLife(10))
    for place, y in enumerate((1.0, 3.0, 5.0)):
        for model in (plain, composed):
            model.learn_one([1.0], y, task="a", round=100 * place)
    np.testing.assert_array_equal(composed.coef, plain.coef)
    assert round(float(composed.coef[0, 0]), 3) == 4.998


@pytest.mark.parametrize("storage", [np.array, sparse.csr_array])
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
def test_pickled_it_is_identical(make, storage):
    model = make(bd.TaskGraph(storage(SIMILARITY), TASKS), 3)
    model.learn_many(np.eye(3), [1.0, 2.0, 3.0], TASKS[:3])
    forecast = model.predict_one([1.0, 2.0, 3.0], task="a")  # some keep what they have solved
    again = pickle.loads(pickle.dumps(model))
    assert dumps(again) == dumps(model)
    assert again.predict_one([1.0, 2.0, 3.0], task="a") == forecast


class Cheat(bd.Learner):
    """A learner with one fault, to see that the checks can fail."""

    fault = ""
    parameters = ()

    def __init__(self, graph, n_features):
        if self.fault == "one" and graph.n_tasks == 1:
            raise ValueError("two tasks at least")
        policy = bd.HalfLife(200) if self.fault == "clock" else 1.0
        self.inner = bd.MTWRLS(graph, n_features, forgetting=policy)
        self.kept = []
        super().__init__(graph, n_features)

    @property
    def state(self):
        return self.inner.state

    @state.setter
    def state(self, state):
        self.inner.state = state

    def _start(self):
        return self.inner.state if self.fault == "reset" else self.inner._start()

    def _predict(self, X, tasks, mean, std):
        self.inner._predict(X, tasks, mean, std)
        if self.fault == "predict":
            self.state.weights[:] *= 1.001
        if self.fault == "nan":
            mean[:] = np.inf

    def _progressive(self, batch, mean, std):
        if self.fault == "mutate":
            batch.X[:] = 0.0
        if self.fault == "hoard":
            self.kept.append(batch.X.copy())
        if self.fault == "lazy":
            mean[:] = 0.0
            return len(mean)
        if self.fault == "peek":
            done = self.inner._progressive(batch, mean, std)
            mean[:] = batch.y
            return done
        if self.fault == "weigh":
            batch = batch._replace(weights=np.ones_like(batch.weights))
        if self.fault == "clock":
            batch = batch._replace(last=int(np.iinfo(np.int64).min))
        if self.fault == "order":
            batch = batch._replace(y=batch.y + batch.tasks)
        if self.fault == "groups":
            batch = batch._replace(ends=np.array([len(batch.X)]))
        return self.inner._progressive(batch, mean, std)

    def _absorb(self, batch):
        if self.fault == "absorb":
            batch = batch._replace(weights=batch.weights[::-1].copy())
        return super()._absorb(batch)

    def learn_one(self, x, y, **rest):
        if self.fault == "early":
            self.samples += 1
        super().learn_one(x, y, **rest)

    def __copy__(self):
        twin = super().__copy__()
        if self.fault == "share":
            twin.inner = self.inner
        return twin

    def _joined(self, graph):
        return self.inner._joined(graph)

    def add_task(self, task, similar_to=None):
        if self.fault != "deaf":
            super().add_task(task, similar_to)

    def _left(self, graph, position):
        return self.inner._left(graph, 0 if self.fault == "leave" else position)

    def _derive(self, graph):
        self.inner.graph = graph

    def dump(self):
        return super().dump() | ({"state": self.inner._start()._asdict()} if self.fault == "save" else {})


@pytest.mark.parametrize(
    ("fault", "caught_by"),
    [
        ("reset", "reset_is_a_fresh_start"),
        ("predict", "predicting_changes_nothing"),
        ("nan", "predicts_before_it_has_learned"),
        ("mutate", "inputs_are_neither_changed_nor_kept"),
        ("hoard", "memory_is_bounded"),
        ("lazy", "learns_something"),
        ("peek", "progressive_is_a_loop"),
        ("order", "permuting_tasks_permutes_answers"),
        ("groups", "progressive_is_a_loop"),
        ("save", "saved_and_loaded_is_identical"),
        ("share", "copies_share_nothing"),
        ("leave", "permuting_tasks_permutes_answers"),
        ("absorb", "many_is_a_loop_of_one"),
        ("weigh", "weights_matter"),
        ("clock", "the_clock_survives_cuts_and_feature_maps"),
        ("early", "bad_input_leaves_the_model_unchanged"),
        ("one", "one_task_is_enough"),
        ("deaf", "tasks_join_and_leave"),
    ],
)
def test_each_fault_is_caught(fault, caught_by):
    faulty = type("Faulty", (Cheat,), {"fault": fault})
    check = next(check for check in CHECKS if check.__name__ == caught_by)
    with pytest.raises((AssertionError, bd.NumericalError, ValueError)):
        check(faulty)


def test_a_sound_learner_of_ones_own_passes():
    check_learner(type("Sound", (Cheat,), {}))
