"""Preparation: the same samples for the tuning period, the forecaster and the study."""

from dataclasses import replace

import numpy as np

import braided as bd
from braided.features import Scale
from braided.forecasting import Clock, Preparation, Units
from braided.forecasting.preparation import with_gaps
from braided.runs import Settings, choose
from braided.runs.start import start
from braided.runs.table import read_tuning_period
from braided.study import plan_for
from braided.study.run import Window
from braided.tables import open_rounds
from tests.runs.tables import GIVEN, field


def test_a_gap_is_a_row_without_values_and_nothing_reaches_across():
    stamps, values = np.array([0, 1, 2, 9, 10]), np.arange(10.0).reshape(5, 2)
    rows = with_gaps(Clock(1, 1), stamps, values, np.empty((5, 2, 0)), before=0)
    assert rows.rounds.tolist() == [0, 1, 2, -1, 3, 4]
    assert np.isnan(rows.values[3]).all()
    samples = Preparation(bd.Lags(1), bd.TaskGraph.pooled(range(2))).samples(rows.values)
    assert samples.steps.tolist() == [2, 2]


def test_rows_in_pieces_give_the_samples_of_the_whole_to_the_bit():
    values = field(steps=200, missing=0.05).values.copy()
    values[120, 1] = 1e6
    graph, lags = bd.TaskGraph.from_history(values), bd.Lags(3, neighbours=2, gap=True, fill=True)
    units = Units.measure(values[:50])
    whole, cut = (Preparation(lags, graph, units, clips=True) for _ in range(2))
    expected = whole.samples(values).between(60, 200)
    pieces = [cut.samples(values[:60]), cut.samples(values[60 - lags.reach : 140], first=lags.reach)]
    pieces.append(cut.samples(values[140 - lags.reach :], first=lags.reach))
    np.testing.assert_array_equal(np.concatenate([piece.X for piece in pieces[1:]]), expected.X)
    np.testing.assert_array_equal(np.concatenate([piece.y for piece in pieces[1:]]), expected.y)
    np.testing.assert_array_equal(cut.clipping.squares, whole.clipping.squares)


def test_the_forecaster_learns_the_samples_that_the_tuning_period_was_tuned_on(monkeypatch):
    panel = field(steps=300, missing=0.05)
    values = panel.values.copy()
    values[40, 2] = 1e5
    panel = replace(panel, values=values)
    settings = Settings(("mt-wrls-neighbours",), lags=3, **GIVEN)
    period = read_tuning_period(open_rounds(panel), settings)
    engine = start(period, choose(period, settings), settings, "field")
    learned = []
    own = engine.preparation.samples
    monkeypatch.setattr(
        engine.preparation, "samples", lambda *given, **more: learned.append(own(*given, **more)) or learned[-1]
    )
    for first in range(0, len(period.times), 17):
        rows = slice(first, first + 17)
        engine.advance(period.times[rows], period.values[rows], period.tasks, record=False)
    tuned = period.samples(engine.preparation.lags, len(period.times))
    np.testing.assert_array_equal(np.concatenate([piece.X for piece in learned]), tuned.X)
    np.testing.assert_array_equal(np.concatenate([piece.y for piece in learned]), tuned.y)


def test_a_window_of_the_study_is_prepared_without_units():
    panel = bd.datasets.wind_field(seed=1, steps=500, sites=3)
    window = Window(panel.values[:400], panel.tasks, plan_for(panel, windows=1), 110)
    method = bd.methods.METHODS["wrls-neighbours"]
    known, ahead = window.parts(method.inputs)
    expected = method.inputs.lags(9).samples(panel.values[:400], panel.tasks, window.graph)
    np.testing.assert_array_equal(np.concatenate([known.X, ahead.X]), expected.X)


def test_an_extra_that_is_far_too_large_counts_as_missing():
    values, extras = field(steps=60).values, np.random.default_rng(0).normal(size=(60, 4, 1))
    lags, graph, scale = bd.Lags(2), bd.TaskGraph.from_history(values), Scale.fit(extras.reshape(-1, 1))
    wild, gone = extras.copy(), extras.copy()
    wild[30, 1], gone[30, 1] = 1e120, np.nan
    made = [Preparation(lags, graph, Units.measure(values), scale=scale).samples(values, one) for one in (wild, gone)]
    np.testing.assert_array_equal(made[0].X, made[1].X)
    assert np.abs(made[0].X).max() < 1e3
