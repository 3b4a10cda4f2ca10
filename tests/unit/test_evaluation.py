"""Evaluation: both protocols, delays and refits against loops that anyone can check; breakdowns; curves."""

import numpy as np
import pytest

import braided as bd
from braided.evaluation import Evaluation, evaluate

PANEL = bd.datasets.wind_field(seed=3, steps=80, sites=3)
GRAPH = bd.TaskGraph.from_history(PANEL.values[:40], PANEL.tasks)
SAMPLES = bd.Lags(2).samples(PANEL.values, PANEL.tasks)


def model():
    return bd.MTWRLS(GRAPH, SAMPLES.X.shape[1], penalty=0.5, forgetting=0.99)


def rounds():
    return [np.flatnonzero(SAMPLES.steps == step) for step in np.unique(SAMPLES.steps)]


def learn(learner, places):
    for i in places:
        learner.learn_one(SAMPLES.X[i], SAMPLES.y[i], task=SAMPLES.tasks[i], round=int(SAMPLES.steps[i]))


def predict(learner, places):
    return [learner.predict_one(SAMPLES.X[i], task=SAMPLES.tasks[i]) for i in places]


def test_synchronous_forecasts_a_round_before_it_learns_any_of_it():
    learner, expected = model(), []
    for places in rounds():
        expected += predict(learner, places)
        learn(learner, places)
    np.testing.assert_allclose(evaluate(model(), SAMPLES).forecast, expected, rtol=1e-10, atol=1e-12)


def test_interleaved_learns_each_sample_before_it_forecasts_the_next():
    learner, expected = model(), []
    for i in range(len(SAMPLES.y)):
        expected += predict(learner, [i])
        learn(learner, [i])
    np.testing.assert_allclose(evaluate(model(), SAMPLES, "interleaved").forecast, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("delay", "every"), [(1, 1), (4, 1), (0, 3), (2, 5), (1000, 1), (0, 1000)])
def test_a_delayed_truth_and_a_rare_refit_are_learned_when_they_are_due(delay, every):
    learner, expected, learned = model(), [], 0
    for number, places in enumerate(rounds()):
        due = max(number - delay, 0) // every * every  # rounds whose truth is there, up to the last refit
        for earlier in rounds()[learned:due]:
            learn(learner, earlier)
        learned = max(learned, due)
        expected += predict(learner, places)
    run = evaluate(model(), SAMPLES, delay=delay, every=every)
    np.testing.assert_allclose(run.forecast, expected, rtol=1e-10, atol=1e-12)
    assert run.broke_at is None


def test_no_forecast_depends_on_what_comes_later():
    middle = int(np.searchsorted(SAMPLES.steps, 50))
    other = SAMPLES._replace(y=np.where(SAMPLES.steps >= 50, 7.0, SAMPLES.y))
    for options in ({}, {"delay": 2}, {"every": 4}):
        end = int(np.searchsorted(SAMPLES.steps, 51))  # the forecasts of round 50 itself are the same too
        before, after = (evaluate(model(), samples, **options).forecast for samples in (SAMPLES, other))
        np.testing.assert_array_equal(before[:end], after[:end])
        assert not np.array_equal(before[end:], after[end:])
    knowing = evaluate(model(), other, "interleaved").forecast
    assert not np.array_equal(evaluate(model(), SAMPLES, "interleaved").forecast[middle:end], knowing[middle:end])


@pytest.mark.parametrize("options", [{}, {"protocol": "interleaved"}, {"delay": 1}])
def test_after_a_breakdown_the_forecast_is_no_change(options):
    X = SAMPLES.X.copy()
    X[120] = 1e200  # squares overflow
    broken = evaluate(model(), SAMPLES._replace(X=X), **options)
    whole = evaluate(model(), SAMPLES, **options)
    assert broken.broke_at is not None
    assert 117 < broken.broke_at <= 126  # within its round, or where its truth is due
    np.testing.assert_array_equal(broken.forecast[broken.broke_at :], 0.0)
    same = min(broken.broke_at, 120)
    np.testing.assert_array_equal(broken.forecast[:same], whole.forecast[:same])
    assert broken.forecast[:same].any()


def test_scores_levels_and_curve_are_those_of_the_definition():
    run = evaluate(model(), SAMPLES)
    place = np.array([SAMPLES.tasks[i] == PANEL.tasks[1] for i in range(len(SAMPLES.y))])
    error = (SAMPLES.y - run.forecast)[place]
    own = run.scores.tasks.index(PANEL.tasks[1])
    assert run.scores.rmse[own] == pytest.approx(np.sqrt(np.mean(error**2)))
    assert run.scores.rmse_to_no_change[own] == pytest.approx(np.sqrt(np.sum(error**2) / np.sum(SAMPLES.y[place] ** 2)))
    np.testing.assert_allclose(run.levels - run.forecast + SAMPLES.y, PANEL.values[SAMPLES.steps, _columns()])
    steps, curve = run.curve()
    until = SAMPLES.steps <= steps[10]
    expected = np.sum((SAMPLES.y - run.forecast)[until] ** 2) / np.sum(SAMPLES.y[until] ** 2)
    assert curve[10] == pytest.approx(np.sqrt(expected))
    np.testing.assert_allclose(Evaluation(SAMPLES, np.zeros(len(SAMPLES.y))).curve()[1], 1.0)


def _columns():
    return [PANEL.tasks.index(task) for task in SAMPLES.tasks]


def test_samples_are_cut_by_step():
    first, rest = SAMPLES.between(0, 40), SAMPLES.between(40, 80)
    assert first.steps.max() == 39
    assert rest.steps.min() == 40
    assert first.tasks + rest.tasks == SAMPLES.tasks
    np.testing.assert_array_equal(np.vstack([first.X, rest.X]), SAMPLES.X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"protocol": "together"}, "protocol is 'together': choose one of 'synchronous', 'interleaved'"),
        ({"delay": -1}, "delay is -1: it must be 0 or more"),
        ({"every": 0}, "every is 0: it must be 1 or more"),
        ({"protocol": "interleaved", "delay": 1}, "delay 1 and every 1 count rounds"),
        ({"samples": SAMPLES.between(0, 0)}, "samples is empty"),
    ],
)
def test_misuse_is_told_and_leaves_the_model_alone(options, message):
    learner = model()
    with pytest.raises(bd.InputError, match=message):
        evaluate(learner, **{"samples": SAMPLES} | options)
    assert learner.samples == 0
