"""Auto forecasts several rounds ahead: nothing looks ahead, cuts leave no trace, and records are those of forecasts."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import braided as bd
from braided.errors import NumericalError
from braided.forecasting.auto import Auto, AutoEngine
from braided.forecasting.auto.horizons import TARGET
from braided.learners import MTWRLS
from tests.auto import AHEAD, FEW, TIED, in_pieces, insist_sound, late, same, times_of, utc, walks

H = AHEAD.horizon
ROUNDS = 240


def ahead(**given):
    """Members that look ahead, with other settings."""
    return replace(AHEAD, **given)


def streams(rounds=ROUNDS, missing=0.05, **given):
    times, values, tasks = walks(rounds, 4, missing=missing, **given)
    return times, late(values), tasks


def of_horizon(made, h):
    """The forecasts of one horizon."""
    own = made.horizons == h
    return made._replace(**{name: getattr(made, name)[own] for name in made._fields if name not in ("names", "levels")})


# The same as before, one round ahead --------------------------------------------------------------------------------


@pytest.mark.parametrize("auto", [AHEAD, Auto(horizon=3), ahead(sharing=False)], ids=["few", "default", "unshared"])
def test_the_next_round_is_forecast_the_same_whatever_the_horizon(auto):
    times, values, tasks = streams()
    made = AutoEngine(auto).advance(times, values, tasks)
    one = AutoEngine(replace(auto, horizon=1)).advance(times, values, tasks)
    assert {*made.horizons.tolist()} == {*range(1, auto.horizon + 1)}
    assert (one.horizons == 1).all()
    same(of_horizon(made, 1), one)
    shorter = AutoEngine(replace(auto, horizon=2)).advance(times, values, tasks)
    same(of_horizon(made, 2), of_horizon(shorter, 2))


def test_horizons_in_the_front_door():
    times, values, tasks = walks(60)
    forecaster = bd.Forecaster(horizon=H, members=FEW.members)
    made = forecaster.update(times, values, tasks)
    assert forecaster.engine.horizon == H == len(forecaster.engine.records)
    following = forecaster.forecast()
    assert following.horizons.tolist() == [h for h in range(1, H + 1) for _ in tasks]
    assert list(made.columns()) == ["stream", "time", "horizon", "forecast", "low", "high", "actual"]
    assert np.isnan(following.actual).all()
    for horizon in (0, -1, 1.5, True, "2", 1001):
        with pytest.raises(bd.InputError, match="horizon"):
            bd.Forecaster(horizon=horizon)


@pytest.mark.parametrize("rounds", [1, 2, 3, 30])
def test_more_horizons_than_rounds(rounds):
    times, values, tasks = walks(rounds)
    engine = AutoEngine(ahead(horizon=50))
    made = engine.advance(times, values, tasks)
    assert made.horizons.max(initial=0) == rounds - 1
    assert len(made.forecast) == 3 * rounds * (rounds - 1) / 2
    assert engine.ahead().horizons.max(initial=0) == (50 if rounds > 1 else 0)
    insist_sound(engine, made) if rounds > 1 else None


# Times and values ---------------------------------------------------------------------------------------------------


def test_forecasts_come_with_the_time_and_the_value_of_their_round():
    times, values, tasks = walks(80, 3, missing=0.2)
    times = times.copy()
    times[30:] += 9  # a gap
    made = AutoEngine(AHEAD).advance(times, values, tasks)
    rows = np.searchsorted(times, made.times)
    np.testing.assert_array_equal(times[rows], made.times)
    np.testing.assert_array_equal(values[rows, made.places], made.actual)
    order = np.lexsort((made.places, made.horizons, rows))
    np.testing.assert_array_equal(order, np.arange(len(rows)))
    known = np.maximum.accumulate(~np.isnan(values), axis=0)
    due = {
        (r, h, t)
        for r in range(80)
        for h in range(1, H + 1)
        for t in range(3)
        if r >= h and known[r - h, t] and not np.isnan(values[r, t])
    }
    assert {*zip(rows.tolist(), made.horizons.tolist(), made.places.tolist(), strict=True)} == due
    assert len(rows) == len(due)


def rows_of(made):
    """Forecasts as rows: horizon, stream, time, forecast, interval and quantiles."""
    ends = made.low, made.high, *made.quantiles.T
    return zip(made.horizons.tolist(), made.tasks, made.times, made.forecast, *ends, strict=True)


def clocks():
    """Times of many kinds, from when on they are known, and the settings for them."""
    rounds, zone = 60, {"timezone": "Australia/Melbourne", "holidays": "AU-VIC"}
    for kind in ("hourly", "daily", "integers"):
        yield kind, times_of(kind, rounds), {}, False
    yield "months", times_of("monthly", rounds).astype("datetime64[D]"), {}, False
    yield "ends of months", pd.date_range("1990-01-31", periods=rounds, freq="ME").to_numpy(), {}, False
    yield "weeks", np.datetime64("2020-01-01") + 7 * np.arange(rounds), {}, False
    yield "business days", pd.bdate_range("2020-01-01", periods=rounds).to_numpy(), {}, False
    for name, first in (("an hour twice", "2024-04-06T00"), ("an hour left out", "2024-10-05T00")):
        yield name, np.datetime64(first, "us") + np.arange(rounds) * np.timedelta64(30, "m"), zone, True
    for name, first, step in (("local days", "2024-03-01", "D"), ("local months", "2015-01-01", "MS")):
        local = pd.date_range(first, periods=rounds, freq=step, tz=zone["timezone"])
        yield name, local.tz_convert("UTC").tz_localize(None).to_numpy(), zone, True


@pytest.mark.parametrize(("times", "given", "is_utc"), [one[1:] for one in clocks()], ids=[one[0] for one in clocks()])
def test_what_is_forecast_ahead_is_what_later_rounds_report(times, given, is_utc):
    _, values, tasks = walks(len(times), 3, missing=0.05)
    auto = ahead(quantiles=(0.2, 0.7), **given)
    engine, promised, kept = utc(auto) if is_utc else AutoEngine(auto), {}, 0
    for row, time in enumerate(times):
        for h, task, _, *numbers in rows_of(engine.advance(times[[row]], values[[row]], tasks)):
            if (row, h, task) in promised:
                when, *expected = promised[row, h, task]
                np.testing.assert_array_equal(numbers, expected, f"{row}, {h}, {task}")
                assert row < 30 or when == time  # by then, the clock is known
                kept += 1
        following = engine.ahead()
        assert (following.times[:-1] <= following.times[1:]).all()
        promised |= {(row + h, h, task): promise for h, task, *promise in rows_of(following)}
    assert kept > 0.85 * (len(times) - H) * H * 3


# Streams of any kind ------------------------------------------------------------------------------------------------


def settings():
    """Settings and streams that are cut: any signs, further columns, many streams, unshared ones."""
    yield "few", AHEAD, streams(), None
    yield "default", Auto(horizon=3), streams(), None
    yield "unshared", ahead(sharing=False), streams(), None
    yield "compared", ahead(compares=True, horizon=3), streams(), None
    yield "bounds", ahead(low=0.0, high=8.0), streams(), None
    yield "quantiles", ahead(quantiles=(0.1, 0.5, 0.95), low=0.0), streams(), None
    yield "without seasons", ahead(seasons=()), streams(), None
    yield "full weight", ahead(robust=False), streams(), None
    yield "holidays", ahead(holidays="AU-VIC"), streams(), None
    rng = np.random.default_rng(2)
    times, values, tasks = streams()
    extras = rng.normal(size=(*values.shape, 2))
    extras[rng.random(extras.shape) < 0.2] = np.nan
    yield "further columns", AHEAD, (times, values, tasks), extras
    yield "one stream", AHEAD, (times, values[:, :1], tasks[:1]), None
    values = values.copy()
    values[:, 0] = 7.0
    values[150:, 1] = np.nan
    yield "constant and silent", AHEAD, (times, values, tasks), None
    times, values, tasks = walks(ROUNDS, 40, missing=0.05)
    values[:205, 37:] = np.nan
    yield "a sparse graph", ahead(horizon=3), (times, values, tasks), None
    values = values.copy()
    values[:50, 20:] = np.nan
    yield "sparse from the hundredth round on", Auto(horizon=2), (times, values, tasks), None


SETTINGS = {name: case for name, *case in settings()}


@pytest.mark.parametrize("case", SETTINGS.values(), ids=list(SETTINGS))
def test_cut_anywhere_saved_and_loaded_all_horizons_are_the_same_to_the_bit(case):
    auto, (times, values, tasks), extras = case
    n_extras = 0 if extras is None else extras.shape[2]
    whole = AutoEngine(auto, n_extras=n_extras)
    made = whole.advance(times, values, tasks, extras)
    insist_sound(whole, made)
    assert made.horizons.max() == auto.horizon
    low, high = (-np.inf if auto.low is None else auto.low), (np.inf if auto.high is None else auto.high)
    for numbers in (made.forecast, made.low, made.high, whole.ahead().forecast):
        assert not ((numbers < low) | (numbers > high)).any()
    cuts = np.unique([1, 4, 5, 20, 100, 200, 207, *np.random.default_rng(3).integers(1, ROUNDS, 8)])
    cut, pieces = in_pieces(AutoEngine(auto, n_extras=n_extras), times, values, tasks, cuts, extras, saves=True)
    same(made, pieces)
    same(whole.ahead(), cut.ahead())
    for one, other in zip(whole.records, cut.records, strict=True):
        np.testing.assert_array_equal(one.covered, other.covered)
        np.testing.assert_array_equal(one.below, other.below)
        np.testing.assert_allclose(one.losses, other.losses, rtol=1e-12)
        np.testing.assert_allclose(one.squares, other.squares, rtol=1e-12)


@pytest.mark.parametrize("values", [1e120, 1e-300, 1e-165, 1e149], ids=str)
def test_wild_values_leave_others_their_intervals(values):
    times, table, tasks = walks(150, 4)
    table[:, 0] *= values
    table[::40, 1] = 1e149
    engine = AutoEngine(ahead(horizon=3))
    made = engine.advance(times, table, tasks)
    insist_sound(engine, made)
    others = (made.places > 1) & (made.times > times[60])
    assert np.isfinite(made.low[others]).all()
    width = (made.high - made.low)[others]
    assert width.max() < 100.0
    again, pieces = in_pieces(AutoEngine(ahead(horizon=3)), times, table, tasks, range(7, 150, 7), saves=True)
    same(made, pieces)
    same(engine.ahead(), again.ahead())


def test_a_stream_s_forecasts_need_no_other_without_sharing():
    times, values, tasks = walks(ROUNDS, 3, missing=0.05)
    other = values.copy()
    other[:, 1:] = np.random.default_rng(4).normal(size=(ROUNDS, 2))
    made = [AutoEngine(ahead(sharing=False)).advance(times, table, tasks) for table in (values, other)]
    one, two = (table.forecast[table.places == 0] for table in made)
    np.testing.assert_allclose(one, two, rtol=1e-9)


# Members that look ahead ---------------------------------------------------------------------------------------------


def test_the_mixture_of_later_rounds_has_followers_filters_and_rules():
    times, values, tasks = walks(60)
    engine = AutoEngine(AHEAD)
    engine.advance(times, values, tasks)
    names = engine.ensemble.horizons.names
    assert names[:4] == ["own past", "tied", TARGET.name, "target, own phases"]
    assert "no change" in names
    engine = AutoEngine(replace(FEW, horizon=3))  # no member looks ahead: rules alone
    insist_sound(engine, engine.advance(times, values, tasks))
    assert engine.ensemble.horizons.names[0] == "no change"


def broken_at(rounds, monkeypatch):
    """Let tied learners break down at the third stream of some rounds, which they then learn not at all."""
    progressive = MTWRLS.progressive

    def breaking(self, X, y, tasks, *, rounds=None, weights=None, gains=None, **given):
        places = np.flatnonzero(np.isin(rounds, broken)) if self.samples else np.empty(0, int)
        if not len(places):
            return progressive(self, X, y, tasks, rounds=rounds, weights=weights, gains=gains, **given)
        end = int(places[0])
        made = np.empty(0)
        if end:
            part = {"rounds": rounds[:end], "weights": weights[:end], "gains": None if gains is None else gains[:end]}
            made = progressive(self, X[:end], y[:end], tasks[:end], **part, **given)
        raise NumericalError("broken", np.append(made, [0.0, 0.0]))

    broken = rounds
    monkeypatch.setattr(MTWRLS, "progressive", breaking)


@pytest.mark.parametrize("cuts", [range(1, 230), [215], [216], [217, 219]], ids=str)
def test_a_breakdown_resets_the_filters_that_follow_however_rounds_are_cut(monkeypatch, cuts):
    times, values, tasks = walks(230, 3, missing=0.1)
    plain = AutoEngine(AHEAD).advance(times, values, tasks)
    broken_at([215], monkeypatch)
    whole = AutoEngine(AHEAD)
    made = whole.advance(times, values, tasks)
    assert whole.breakdowns == 1
    insist_sound(whole, made)
    cut, pieces = in_pieces(AutoEngine(AHEAD), times, values, tasks, cuts)
    assert cut.breakdowns == 1
    same(made, pieces)
    same(whole.ahead(), cut.ahead())
    after = made.times > times[215 + H]
    assert (made.forecast[after] != plain.forecast[after]).any()
    tied, other = (one.ensemble.runners[0][TIED.name] for one in (whole, cut))
    assert tied.learner.samples < 3 * 15
    np.testing.assert_array_equal(tied.followers.filters.weights, other.followers.filters.weights)


def test_followers_forget_what_they_learned_before_a_breakdown(monkeypatch):
    times, values, tasks = walks(240, 3)
    broken_at([215], monkeypatch)
    engine = AutoEngine(AHEAD)
    for first, end in ((0, 217), (217, 218), (218, 240)):
        engine.advance(times[first:end], values[first:end], tasks)
        weights = engine.ensemble.runners[0][TIED.name].followers.filters.weights
        is_blank = [not one.any() for one in weights[:3]]
        if end == 218:  # round 215 is the input of a forecast two rounds ahead whose target is 216, and so on
            assert is_blank == [False, True, False]
    assert not any(is_blank)


# Records ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compares", [False, True])
def test_the_records_are_those_of_the_forecasts(compares):
    times, values, tasks = walks(300, missing=0.05)
    engine = AutoEngine(ahead(compares=compares))
    made = engine.advance(times, values, tasks)
    last = pd.DataFrame(values).ffill().to_numpy()
    rows = np.searchsorted(times, made.times)
    for h, record in enumerate(engine.records, 1):
        assert record.contenders[0] == "model"
        for t in range(3):
            own = (rows >= 20) & (made.places == t) & (made.horizons == h)
            assert record.counts[t] == own.sum()
            scale = record.scale[t]
            rmse = np.sqrt(np.mean((made.actual - made.forecast)[own] ** 2)) / scale
            np.testing.assert_allclose(record.rmse_of("model")[t], rmse, rtol=1e-9)
            still = np.sqrt(np.mean((made.actual[own] - last[rows[own] - h, t]) ** 2)) / scale
            np.testing.assert_allclose(record.rmse_of("no change")[t], still, rtol=1e-9)
            inside = (made.low[own] <= made.actual[own]) & (made.actual[own] <= made.high[own])
            assert record.covered[t] == inside.sum()
            assert record.intervals[t] == np.count_nonzero(~np.isnan(made.low[own]))
    engine.forget_record()
    assert not any(record.counts.any() for record in engine.records)


def test_the_seasonal_naive_forecast_is_the_last_known_value_of_the_phase():
    times, values, tasks = walks(200, kind="integers")
    engine = AutoEngine(ahead(horizon=9, seasons=(7.0,)))
    made = engine.advance(times, values, tasks)
    rows = np.searchsorted(times, made.times)
    for h, record in enumerate(engine.records[1:], 2):
        own = (rows >= 20) & (made.places == 0) & (made.horizons == h)
        before = 7 * -(-h // 7)
        naive = np.sqrt(np.mean((made.actual[own] - values[rows[own] - before, 0]) ** 2)) / record.scale[0]
        np.testing.assert_allclose(record.rmse_of("seasonal naive")[0], naive, rtol=1e-9)


@pytest.mark.parametrize("noise", ["normal", "laplace", "t"])
def test_intervals_of_all_horizons_hold_what_they_promise(noise):
    rng = np.random.default_rng(0)
    shape = 3000, 5
    steps = rng.standard_t(4, size=shape) if noise == "t" else getattr(rng, noise)(size=shape)
    engine = AutoEngine(ahead(horizon=6, seasons=()))
    made = engine.advance(np.arange(3000), steps.cumsum(axis=0), tuple("abcde"))
    inside = (made.low <= made.actual) & (made.actual <= made.high)
    for h in (1, 3, 6):
        assert 0.88 <= inside[(made.horizons == h) & (made.times > 100)].mean() <= 0.92


def test_intervals_hold_again_soon_after_a_sensor_was_stuck():
    times, values, tasks = walks(2600, 4, kind="integers")
    values[1000:2000, 0] = values[999, 0]
    made = AutoEngine(replace(AHEAD, horizon=2)).advance(times, values, tasks)
    held = (made.low <= made.actual) & (made.actual <= made.high)
    for horizon in (1, 2):
        own, others = (made.horizons == horizon) & (made.places == 0), (made.horizons == horizon) & (made.places > 0)
        soon, later = ((made.times > first) & (made.times <= first + 200) for first in (2030, 2230))
        beside = (made.times > 1200) & (made.times <= 2230)
        assert held[own & soon].mean() > 0.6
        assert held[own & later].mean() > 0.8
        assert 0.85 < held[others & beside].mean() < 0.95
