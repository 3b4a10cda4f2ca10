"""What a learner tells of its arithmetic."""

import numpy as np
import pytest

import braided as bd


def samples(n=300, n_tasks=3, d=2):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, d)), rng.normal(size=n), np.arange(n) % n_tasks


@pytest.mark.parametrize("kind", [bd.MTWRLS, bd.WRLS])
def test_variances_are_those_of_the_covariance(kind):
    first = bd.TaskGraph.pooled(range(3)) if kind is bd.MTWRLS else [0, 1, 2]
    model = kind(first, 2, 0.5, 0.99)
    assert model.health.samples == 0
    model.learn_many(*samples())
    diagonal = np.diagonal(model.covariance, axis1=-2, axis2=-1)
    assert model.health == (300, 0, pytest.approx(diagonal.max()), pytest.approx(diagonal.max() / diagonal.min()), 0, 0)


def test_rescues_are_counted():
    X, y, tasks = samples()
    X[:, 1] = X[:, 0]  # a duplicated column
    model = bd.MTWRLS(bd.TaskGraph.pooled(range(3)), 2, 1.0, 0.8)
    model.learn_many(X, y, tasks)
    assert model.health.guarded > 0
    assert model.health.largest_variance < 1e13


def test_dictionaries_are_counted_and_a_hidden_layer_passes_it_on():
    X, y, tasks = samples()
    kernel = bd.MTOSLSSVR(bd.TaskGraph.pooled(range(3)), 2, "linear", novelty=1e-6)
    kernel.learn_many(X, y, tasks)
    assert kernel.health[:2] == (300, 0)
    assert kernel.health.dictionary == 6
    hidden = bd.ELM(5, seed=0) | bd.MTWRLS(bd.TaskGraph.pooled(range(3)), 2)
    hidden.learn_many(X, y, tasks)
    assert hidden.health == hidden.learner.health
    assert bd.MOGD(bd.TaskGraph.pooled(range(3)), 2).health.samples == 0


def test_rescues_are_remembered_when_tasks_join_and_leave():
    X, y, tasks = samples()
    X[:, 1] = X[:, 0]
    model = bd.MTWRLS(bd.TaskGraph.pooled(range(3)), 2, 1.0, 0.8)
    model.learn_many(X, y, tasks)
    guarded = model.health.guarded
    model.add_task("new", {0: 0.5})
    assert model.health.guarded == guarded > 0
    model.remove_task(1)
    assert model.health.guarded == guarded


def test_the_scale_of_a_filter_that_restores_is_folded():
    model = bd.MTWRLS(bd.TaskGraph.pooled(range(2)), 1, 1.0, bd.forgetting.Restore(0.5))
    for n in range(2000):
        model.learn_one([1.0], 1.0, task=0, round=n)
    assert model.state.totals[0, 0] > 1e-4
    assert np.isfinite(model.covariance).all()


@pytest.mark.parametrize("solver", ["dense", "blocked"])
def test_what_the_guard_has_done_is_still_counted_after_tasks_join_and_leave(solver):
    model = bd.MTWRLS(bd.TaskGraph.pooled(["a", "b", "c"]), 2, 1.0, 0.5, solver=solver)
    model.learn_many(np.ones((200, 2)), np.ones(200), ["a"] * 200)
    guarded, deviation = model.health.guarded, model.noise_variance
    assert guarded > 0
    model.remove_task("c")
    assert (model.health.guarded, model.noise_variance) == (guarded, deviation)
    model.add_task("d", {"a": 0.5})
    assert model.health.guarded == guarded
