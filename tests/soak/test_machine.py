"""Everything a caller can do with a learner, in any order that Hypothesis finds (the same in every run)."""

import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import braided as bd
from braided.forgetting import Directional, Drift, Exponential, HalfLife, Restore
from braided.kernels import linear, polynomial, rbf
from braided.state import dumps
from tests.reference.linear import batch
from tests.soak import LONG, either
from tests.soak.configurations import held, insist_finite
from tests.streams import random_graph

D, PENALTY = 2, 0.5
MOST = 6  # tasks
SIMILARITIES = st.sampled_from([0.0, 0.3, 1.0])
VALUES = st.integers(-24, 24).map(lambda k: k / 8)
INPUTS = st.tuples(*[VALUES] * D)
WEIGHTS = st.sampled_from([1.0, 1.0, 0.0, 0.25, 3.0])
PROBES = np.array([[1.0, 0.0], [-0.5, 2.0], [0.0, 0.0]])
POLICIES = (1.0, 0.9, 0.2, Exponential(0.9, per="task"), HalfLife(2), Restore(0.9), Directional(0.9), Drift(0.1))
OTHER = random_graph(np.random.default_rng(5), 3)


class Machine(RuleBasedStateMachine):
    """A learner, what it should have counted, and all samples if the batch solution of them is known."""

    kind = None

    @initialize(data=st.data(), seed=st.integers(0, 99))
    def start(self, data, seed):
        self.graph = random_graph(np.random.default_rng(seed), 3)  # of all tasks there ever were
        if self.kind in (bd.MTWRLS, bd.WRLS):
            shared = (*(Exponential(s, per="round") for s in (0.9, 0.2)), Drift(0.1, OTHER))
            policy = data.draw(st.sampled_from(POLICIES + shared * (self.kind is bd.MTWRLS)), "policy")
            given = {"forgetting": policy}
        else:
            given = {"kernel": data.draw(st.sampled_from([linear(), rbf(), polynomial(2)]), "kernel")}
            given["budget"] = data.draw(st.sampled_from([None, 5]), "budget")
            given["forgetting"] = data.draw(st.sampled_from([1.0, Restore(0.9), Directional(0.9)]), "policy")
        given["robust"] = data.draw(st.sampled_from([None, None, 4.0]), "robust")
        self.model = self.kind(self.graph, D, penalty=PENALTY, **given)
        self.has_shadow = self.kind is bd.MTWRLS and given == {"forgetting": 1.0, "robust": None}
        self.samples, self.clock, self.names = [], 0, 3

    def draw_samples(self, data, n):
        """Draw n samples, and the labels of their rounds."""
        tasks = data.draw(st.lists(st.sampled_from(self.model.tasks), min_size=n, max_size=n), "tasks")
        X = np.array(data.draw(st.lists(INPUTS, min_size=n, max_size=n), "X")).reshape(n, D)
        y, weights = (np.array([data.draw(values) for _ in range(n)]) for values in (VALUES, WEIGHTS))
        labels = self.clock + np.cumsum(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n), "steps"))
        self.clock = int(labels[-1]) if n else self.clock
        self.samples += zip(X, y, tasks, weights, strict=True)
        return X, y, tasks, weights, labels

    @rule(data=st.data())
    def learn_one(self, data):
        (x,), (y,), (task,), (weight,), (label,) = self.draw_samples(data, 1)
        self.model.learn_one(x, y, task=task, weight=weight, round=int(label))

    @rule(data=st.data(), n=st.integers(0, 12))
    def learn_many(self, data, n):
        X, y, tasks, weights, labels = self.draw_samples(data, n)
        self.model.learn_many(X, y, tasks, weights=weights, rounds=labels)

    @rule(data=st.data(), n=st.integers(1, 12), interleaved=st.booleans())
    def progressive(self, data, n, interleaved):
        X, y, tasks, weights, labels = self.draw_samples(data, n)
        first = self.model.predict_one(X[0], task=tasks[0])
        mean, std = self.model.progressive(
            X, y, tasks, rounds=labels, weights=weights, interleaved=interleaved, with_std=True
        )
        assert np.isfinite(mean).all()
        assert (std >= 0.0).all()
        assert abs(mean[0] - first) < 1e-9 * max(1.0, abs(first))

    @rule(x=INPUTS, data=st.data())
    def predict(self, x, data):
        before = dumps(self.model)
        task = data.draw(st.sampled_from(self.model.tasks), "task")
        mean, std = self.model.predict_one(x, task=task, with_std=True)
        assert np.isfinite(mean)
        assert std >= 0.0
        assert dumps(self.model) == before

    @precondition(lambda self: len(self.model.tasks) < MOST)
    @rule(data=st.data())
    def add_task(self, data):
        similar = {task: data.draw(SIMILARITIES) for task in self.model.tasks}
        self.model.add_task(self.names, similar_to=similar)
        self.graph = self.graph.join(self.names, similar)
        self.names += 1

    @precondition(lambda self: len(self.model.tasks) > 1)
    @rule(data=st.data())
    def remove_task(self, data):
        """The others' forecasts stay."""
        gone = data.draw(st.sampled_from(self.model.tasks), "gone")
        rest = [task for task in self.model.tasks if task != gone]
        before = self.model.predict_many(np.tile(PROBES[0], (len(rest), 1)), rest)
        self.model.remove_task(gone)
        after = self.model.predict_many(np.tile(PROBES[0], (len(rest), 1)), rest)
        assert self.model.tasks == tuple(rest)
        assert after.tobytes() == before.tobytes()

    @rule(data=st.data())
    def save_and_load(self, data):
        """The copy forecasts with the same bits, and shares nothing with the model that goes on."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            bd.save(self.model, path)
            copy = bd.load(path)
        assert dumps(copy) == dumps(self.model)
        X, tasks = np.repeat(PROBES, len(copy.tasks), axis=0), list(copy.tasks) * len(PROBES)
        for made, again in zip(*(m.predict_many(X, tasks, with_std=True) for m in (self.model, copy)), strict=True):
            assert made.tobytes() == again.tobytes()
        before = dumps(self.model)
        copy.learn_one(PROBES[0], 1.0, task=copy.tasks[0], round=self.clock)
        assert dumps(self.model) == before
        self.model.learn_one(PROBES[0], 1.0, task=copy.tasks[0], round=self.clock)
        assert dumps(self.model) == dumps(copy)
        self.samples.append((PROBES[0], 1.0, copy.tasks[0], 1.0))
        self.model = data.draw(st.sampled_from([copy, self.model]))

    @rule(
        fault=st.sampled_from(
            [
                {"x": [np.nan, 1.0]},
                {"x": [np.inf, 1.0]},
                {"x": [1.0]},
                {"x": [1.0] * (D + 1)},
                {"y": np.nan},
                {"y": -np.inf},
                {"task": "nobody"},
                {"task": -1},
                {"weight": -1.0},
                {"round": 0.5},
            ]
        ),
        many=st.booleans(),
    )
    def refuse(self, fault, many):
        """Whatever is wrong with a sample is told before any sample is learned."""
        before = dumps(self.model), held(self.model)
        good = {"x": [1.0, 1.0], "y": 1.0, "task": self.model.tasks[0], "weight": 1.0, "round": self.clock}
        bad = good | fault
        if many:
            X, y, tasks, weights, labels = ([good[name], bad[name]] for name in good)
            call = partial(self.model.progressive, X, y, tasks, weights=weights, rounds=labels)
        else:
            call = partial(self.model.learn_one, **bad)
        with pytest.raises(bd.InputError):
            call()
        assert (dumps(self.model), held(self.model)) == before

    @invariant()
    def is_sound(self):
        insist_finite(self.model)
        tasks = self.model.tasks
        mean, std = self.model.predict_many(np.repeat(PROBES, len(tasks), axis=0), tasks * len(PROBES), with_std=True)
        assert np.isfinite(mean).all()
        assert (std >= 0.0).all()
        assert self.model.samples == self.model.health.samples == len(self.samples)

    @invariant()
    def is_the_batch_solution(self):
        """Of all samples and tasks there ever were, without forgetting."""
        if not (self.has_shadow and self.samples):
            return
        X, y, keys, weights = zip(*self.samples, strict=True)
        w, *_ = batch(self.graph.dense_relation, PENALTY, X, np.array(y), self.graph.indices(keys), weights)
        expected = w[self.graph.indices(self.model.tasks)]
        assert np.abs(self.model.coef - expected).max() < 1e-8 * max(1.0, np.abs(expected).max())


def _machine(kind):
    case = type(f"{kind.__name__}Machine", (Machine,), {"kind": kind}).TestCase
    phases = (Phase.generate, Phase.shrink) if LONG else (Phase.generate,)  # to shrink may take minutes
    case.settings = settings(max_examples=either(12, 400), stateful_step_count=either(20, 60), phases=phases)
    return case


TestMTWRLS, TestWRLS, TestMTOSLSSVR, TestOSLSSVR = map(_machine, (bd.MTWRLS, bd.WRLS, bd.MTOSLSSVR, bd.OSLSSVR))
