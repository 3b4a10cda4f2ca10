"""Every learner × every check × several parameter sets."""

import numpy as np
import pytest

import braided as bd
from braided.checks import CHECKS, check_learner
from braided.kernels import polynomial, rbf

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


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
def test_keeps_the_contract(make, check):
    check(make)


class Cheat(bd.Learner):
    """A learner with one fault, to see that the checks can fail."""

    fault = ""
    parameters = ()

    def __init__(self, graph, n_features):
        if self.fault == "one" and graph.n_tasks == 1:
            raise ValueError("two tasks at least")
        self.inner = bd.MTWRLS(graph, n_features)
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
        ("leave", "permuting_tasks_permutes_answers"),
        ("absorb", "many_is_a_loop_of_one"),
        ("early", "bad_input_leaves_the_model_as_it_was"),
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
