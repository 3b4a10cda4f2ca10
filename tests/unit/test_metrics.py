"""Errors per task, against the forecasts that need no model."""

import numpy as np
import pytest

import braided as bd
from braided.metrics import relative


def test_scores_are_those_of_each_task_alone():
    rng = np.random.default_rng(0)
    y, previous, forecast = rng.normal(size=(3, 90))
    tasks = np.repeat(["b", "a", "c"], 30)
    scores = relative(forecast, y, tasks, previous)
    assert scores.tasks == ("b", "a", "c")
    for i, task in enumerate(scores.tasks):
        own = tasks == task
        error, level, steady = y[own] - forecast[own], y[own], y[own] - previous[own]
        assert scores.samples[i] == 30
        assert scores.rmse[i] == pytest.approx(np.sqrt(np.mean(error**2)))
        assert scores.mae[i] == pytest.approx(np.mean(np.abs(error)))
        assert scores.rmse_to_no_change[i] == pytest.approx(np.sqrt(np.sum(error**2) / np.sum(level**2)))
        assert scores.mae_to_no_change[i] == pytest.approx(np.sum(np.abs(error)) / np.sum(np.abs(level)))
        assert scores.rmse_to_last_change[i] == pytest.approx(np.sqrt(np.sum(error**2) / np.sum(steady**2)))
        assert scores.mae_to_last_change[i] == pytest.approx(np.sum(np.abs(error)) / np.sum(np.abs(steady)))
    assert scores.mean("rmse") == pytest.approx(scores.rmse.mean())


def test_the_baselines_score_one_against_themselves():
    rng = np.random.default_rng(1)
    y, previous = rng.normal(size=(2, 50))
    assert relative(np.zeros(50), y, ["a"] * 50, previous).rmse_to_no_change.tolist() == [1.0]
    assert relative(previous, y, ["a"] * 50, previous).mae_to_last_change.tolist() == [1.0]


def test_for_white_differences_no_change_scores_one_over_root_two_against_the_last_difference():
    y = np.random.default_rng(2).normal(size=100_001)
    scores = relative(np.zeros(100_000), y[1:], [0] * 100_000, y[:-1])
    assert scores.rmse_to_last_change[0] == pytest.approx(np.sqrt(0.5), rel=0.01)


def test_a_baseline_without_error_has_no_ratio():
    scores = relative([0.1, 0.1], [0.0, 0.0], ["a", "a"], [0.0, 0.0])
    assert np.isnan(scores.rmse_to_no_change[0])
    assert scores.rmse[0] == pytest.approx(0.1)


def test_what_cannot_be_scored_is_refused():
    with pytest.raises(bd.InputError, match=r"forecast\[1\] is nan"):
        relative([1.0, np.nan], [1.0, 2.0], ["a", "a"], [0.0, 0.0])
    with pytest.raises(bd.InputError, match="tasks has 1 values for 2 samples"):
        relative([1.0, 1.0], [1.0, 2.0], ["a"], [0.0, 0.0])
    with pytest.raises(bd.InputError, match="no forecasts"):
        relative([], [], [], [])
