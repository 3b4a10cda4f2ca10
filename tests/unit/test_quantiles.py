"""Quantiles of Auto: in order, within the bounds, the promised share below each; intervals stay the same."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import braided as bd
from braided.forecasting.auto import Auto, AutoEngine
from braided.runs import Settings
from braided.state import dumps, loads
from tests.auto import AHEAD, FEW, in_pieces, insist_sound, late, same, walks

LEVELS = (0.1, 0.5, 0.9)


def test_quantiles_in_the_front_door():
    times, values, tasks = walks(60)
    forecaster = bd.Forecaster(horizon=2, quantiles=LEVELS, members=FEW.members)
    made, ahead = forecaster.update(times, values, tasks), forecaster.forecast()
    for one in (made, ahead):
        assert one.levels == LEVELS
        assert one.quantiles.shape == (len(one.forecast), 3)
        names = ["stream", "time", "horizon", "forecast", "low", "high", "q0.1", "q0.5", "q0.9", "actual"]
        assert list(one.columns()) == names
        np.testing.assert_array_equal(one.columns()["q0.5"], one.quantiles[:, 1])
    plain = bd.Forecaster(members=FEW.members).update(times, values, tasks)
    assert (plain.levels, plain.quantiles.shape) == ((), (len(plain.forecast), 0))


@pytest.mark.parametrize(
    ("levels", "said"),
    [
        ((0.5, 1.0), "quantiles is 1: it must be above 0 and below 1"),
        ((0.0,), "quantiles is 0: it must be above 0"),
        ((np.nan,), "quantiles is nan"),
        ((0.9, 0.1), "each once, in rising order"),
        ((0.5, 0.5), "each once, in rising order"),
        ("0.5", "give levels between 0 and 1, such as"),
        (0.5, "give levels between 0 and 1, such as"),
        (("a",), "it must be a number"),
        (tuple(np.linspace(0.01, 0.99, 21)), "21 levels: give 20 or fewer"),
    ],
    ids=str,
)
def test_invalid_levels_are_refused(levels, said):
    with pytest.raises(bd.InputError, match=said):
        bd.Forecaster(quantiles=levels)


def test_only_auto_has_quantiles():
    with pytest.raises(bd.InputError, match="horizon, quantiles, season"):
        Settings(("wrls",), Auto(quantiles=LEVELS))


@pytest.mark.parametrize("compares", [False, True])
def test_forecasts_and_intervals_are_the_same_without_quantiles(compares):
    times, values, tasks = walks(240, 4, missing=0.05)
    auto = replace(AHEAD, horizon=3, compares=compares)
    one, other = AutoEngine(auto), AutoEngine(replace(auto, quantiles=LEVELS))
    for made, beside in (
        (one.advance(times, late(values), tasks), other.advance(times, late(values), tasks)),
        (one.ahead(), other.ahead()),
    ):
        same(made, beside._replace(quantiles=made.quantiles))
    for record, beside in zip(one.records, other.records, strict=True):
        np.testing.assert_array_equal(record.pinball, beside.pinball)


@given(
    seed=st.integers(0, 99),
    levels=st.lists(st.floats(1e-6, 1.0 - 1e-6), min_size=1, max_size=20, unique=True).map(sorted),
    bounds=st.sampled_from([(None, None), (0.0, None), (2.0, 6.0)]),
    wild=st.sampled_from([1.0, 1e6, 1e140]),
)
@settings(max_examples=25, deadline=None)
def test_quantiles_never_cross_and_keep_to_the_bounds(seed, levels, bounds, wild):
    times, values, tasks = walks(60, 3, seed, missing=0.2)
    values[seed % 60, seed % 3] *= wild
    engine = AutoEngine(Auto(FEW.members, quantiles=tuple(levels), low=bounds[0], high=bounds[1], seasons=()))
    made = engine.advance(times, values, tasks)
    insist_sound(engine, made)  # no interval without quantiles, and they rise
    for one in (made, engine.ahead()):
        np.testing.assert_array_equal(np.isnan(one.quantiles), np.isnan(one.low)[:, None] * np.ones(len(levels), bool))
        low, high = (np.inf * sign if end is None else end for end, sign in zip(bounds, (-1, 1), strict=True))
        assert not ((one.quantiles < low) | (one.quantiles > high)).any()


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_promised_share_is_below_each_quantile_even_where_errors_are_skewed(sign):
    values = sign * np.random.default_rng(0).exponential(size=(3000, 4)) * [1.0, 1.0, 5.0, 1e-3]
    levels = (0.05, 0.25, 0.5, 0.75, 0.95)
    engine = AutoEngine(replace(AHEAD, horizon=3, seasons=(), quantiles=levels, members=AHEAD.members[:1]))
    made = engine.advance(np.arange(3000), values, tuple("abcd"))
    for h, room in ((1, 0.02), (3, 0.03)):
        late = (made.horizons == h) & (made.times > 500)
        share = (made.actual[late, None] < made.quantiles[late]).mean(axis=0)
        assert np.abs(share - levels).max() < room
        missed = [(made.actual[late] < made.low[late]).mean(), (made.actual[late] > made.high[late]).mean()]
        assert max(missed) > 0.08  # of 0.05: ends as far from the forecast on either side hold too little on one


def test_the_record_has_the_losses_of_the_forecasts():
    times, values, tasks = walks(300, missing=0.05)
    engine = AutoEngine(replace(AHEAD, horizon=3, quantiles=LEVELS))
    made = engine.advance(times, values, tasks)
    for h, record in enumerate(engine.records, 1):
        for t in range(3):
            own = (np.searchsorted(times, made.times) >= 20) & (made.places == t) & (made.horizons == h)
            own &= ~np.isnan(made.low)
            ends = [(0.05, made.low[own]), (0.95, made.high[own]), *zip(LEVELS, made.quantiles[own].T, strict=True)]
            errors = [(level, (made.actual[own] - end) / record.scale[t]) for level, end in ends]
            losses = [np.where(e > 0, level * e, (level - 1) * e).mean() for level, e in errors]
            np.testing.assert_allclose(record.pinball[t], np.mean(losses[:2]), rtol=1e-9)
            np.testing.assert_allclose(record.quantile_pinball[t], losses[2:], rtol=1e-9)
            below = [(e < 0).mean() for _, e in errors[2:]]
            np.testing.assert_allclose(record.quantile_coverage[t], below, rtol=1e-12)
            assert record.coverage[t] == record.covered[t] / record.intervals[t]
    engine.forget_record()
    assert all(np.isnan(record.pinball).all() for record in engine.records)


def test_losses_go_on_where_a_saved_engine_stopped():
    times, values, tasks = walks(120, 3)
    auto = Auto(FEW.members, horizon=3, quantiles=(0.2, 0.7))
    whole = AutoEngine(auto)
    made = whole.advance(times, values, tasks)
    saved, pieces = in_pieces(AutoEngine(auto), times, values, tasks, [50, 51, 90], saves=True)
    same(made, pieces)
    for one, other in zip(whole.records, saved.records, strict=True):
        np.testing.assert_allclose(one.losses, other.losses, rtol=1e-12)
        np.testing.assert_array_equal(one.below, other.below)


def test_a_learner_has_the_losses_of_its_intervals():
    panel = bd.datasets.wind_field(seed=0, steps=300, sites=3)
    forecaster = bd.Forecaster(method="wrls")
    made = forecaster.update(panel.times, panel.values, panel.tasks)
    record = forecaster.record
    assert made.quantiles.shape == (len(made.forecast), 0)
    assert (record.measured == record.intervals).all()
    assert (record.pinball > 0.0).all()
    assert record.quantile_coverage.shape == (3, 0)


def test_losses_of_an_older_file_start_when_it_is_loaded():
    times, values, tasks = walks(120)
    engine = AutoEngine(replace(AHEAD, horizon=2))
    engine.advance(times[:60], values[:60], tasks)
    for record in engine.records:
        record.expect(())
    again = loads(dumps(engine))
    assert all(np.isnan(record.pinball).all() for record in again.records)
    made = again.advance(times[60:], values[60:], tasks)
    for record, h in zip(again.records, (1, 2), strict=True):
        assert record.measured.sum() == np.count_nonzero(made.horizons == h) < record.intervals.sum()
        assert (record.pinball > 0.0).all()
