"""Auto: forecasts of any streams, from the second round on, whatever the values and the times."""

import numpy as np
import pandas as pd
import pytest

import braided as bd
from braided.datasets import open_panel
from braided.forecasting import joined
from braided.forecasting.auto import Auto, AutoEngine
from tests.auto import AHEAD, FEW, OWN, insist_sound, late, same, utc, walks

# From round to round ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sharing", [True, False])
def test_the_next_round_is_forecast_as_it_will_be(sharing):
    times, values, tasks = walks(missing=0.1)
    engine = AutoEngine(Auto(FEW.members, sharing=sharing))
    engine.advance(times[:2], values[:2], tasks)
    for row in range(2, len(times)):
        ahead, made = engine.ahead(), engine.advance(times[row : row + 1], values[row : row + 1], tasks)
        known = {task: place for place, task in enumerate(ahead.tasks)}
        places = [known[task] for task in made.tasks]
        for name in ("times", "forecast", "low", "high"):
            np.testing.assert_array_equal(getattr(ahead, name)[places], getattr(made, name), str((row, name)))


def test_forecasts_begin_with_each_stream_s_second_value_as_no_change():
    times, values, tasks = walks(10, 3)
    values[:3, 2] = np.nan
    engine = AutoEngine(FEW)
    assert len(engine.advance(times[:1], values[:1], tasks).forecast) == 0
    assert len(engine.ahead().forecast) == 0  # nobody knows when
    made = engine.advance(times[1:5], values[1:5], tasks)
    assert made.tasks == ["s0", "s1"] * 3 + ["s0", "s1", "s2"]
    np.testing.assert_array_equal(made.forecast[:2], values[0, :2])
    assert made.forecast[-1] == values[3, 2]
    assert np.isnan(made.low).all()
    made = engine.advance(times[5:], values[5:], tasks)
    assert not np.isnan(made.low[made.places < 2]).any()


@pytest.mark.parametrize("cuts", [[], range(1, 260), [3, 5, 41]], ids=["whole", "one by one", "some"])
def test_gaps_are_counted_however_rounds_come(cuts):
    times, values, tasks = walks()
    times = times.copy()
    times[4:] += 5
    times[100:] += 9
    engine = AutoEngine(Auto((OWN,)))
    for part in np.split(np.arange(len(times)), cuts):
        engine.advance(times[part], values[part], tasks)
    assert (engine.gaps, engine.irregular) == (2, 0)


# Streams that come late, or seldom ----------------------------------------------------------------------------------


def test_a_stream_that_is_heard_of_later_is_the_same_to_the_bit():
    times, values, tasks = walks(240, 4, missing=0.05)
    values = late(values)
    whole, one_by_one = AutoEngine(FEW), AutoEngine(FEW)
    expected = whole.advance(times, values, tasks)
    made = []
    for row in range(len(times)):
        heard = [place for place in range(4) if not np.isnan(values[: row + 1, place]).all()]
        part = np.s_[row : row + 1]
        made.append(one_by_one.advance(times[part], values[part, heard], [tasks[place] for place in heard]))
    same(expected, joined(made))


@pytest.mark.parametrize("auto", [FEW, AHEAD], ids=["next round", "later rounds"])
def test_the_order_in_which_streams_are_heard_of_moves_no_bit(auto):
    times, values, tasks = walks(240, 7, missing=0.05)
    values = np.where(np.arange(240)[:, None] < 3 * np.arange(6, -1, -1), np.nan, values)  # the last named comes first
    values[0, 6] = 5.0
    engines = AutoEngine(auto), AutoEngine(auto)
    engines[0].advance(times, values, tasks)
    for row in range(240):
        heard = [place for place in range(7) if not np.isnan(values[: row + 1, place]).all()]
        part = np.s_[row : row + 1]
        engines[1].advance(times[part], values[part, heard], [tasks[place] for place in heard])
    assert engines[1].tasks == engines[0].tasks[::-1]
    one, other = (engine.ahead() for engine in engines)
    for name in ("forecast", "low", "high"):
        numbers = (
            dict(zip(zip(made.horizons.tolist(), made.tasks, strict=True), getattr(made, name), strict=True))
            for made in (one, other)
        )
        assert next(numbers) == next(numbers)


def test_weights_are_learned_of_a_stream_that_is_there_every_other_round():
    times, values, tasks = walks(260, 3)
    values[1::2, 2] = np.nan
    engine = AutoEngine(FEW)
    engine.advance(times, values, tasks)
    regrets = engine.ensemble.mixture.regrets
    assert (regrets[:2, 2] > 0.0).any()  # though it never has a change from one round to the next


@pytest.mark.parametrize("cuts", [[], range(1, 1000)], ids=["whole", "one by one"])
@pytest.mark.parametrize("first", [0, 300])
def test_streams_with_times_of_their_own_are_let_in_once_they_have_enough_values(cuts, first):
    """Each of 30 streams has a value in every 30th round, the first of them perhaps after 300."""
    values = np.full((1000, 30), np.nan)
    rounds = np.arange(first, 1000)
    values[rounds, rounds % 30] = np.random.default_rng(0).normal(size=len(rounds))
    engine = AutoEngine(Auto((OWN,)))
    made = [engine.advance(part, values[part], tuple(range(30))) for part in np.split(np.arange(1000), cuts)]
    assert len(engine.places) == 30
    assert not engine._head.parts
    insist_sound(engine, joined(made))


@pytest.mark.parametrize("met", [range(30), [0, 30, 100, 210, 231]], ids=["row by row", "rarely"])
def test_a_stream_that_comes_late_may_be_named_late(met):
    times, values, tasks = walks(streams=4)
    values = late(values)
    whole, cut = AutoEngine(FEW), AutoEngine(FEW)
    expected = whole.advance(times, values, tasks)
    made = []
    for part in np.split(np.arange(260), met[1:]):
        n = 2 + (part[-1] >= 30) + (part[-1] >= 210)
        made.append(cut.advance(times[part], values[part, :n], tasks[:n]))
    same(expected, joined(made))


def test_errors_are_in_units_of_each_stream_whenever_it_joins():
    times, values, tasks = walks(600, streams=4)
    values = late(values * [1.0, 1e-6, 1e6, 1e9])
    engine = AutoEngine(FEW)
    made = engine.advance(times, values, tasks)
    for place in range(4):
        assert engine.record.scale[place] == pytest.approx(np.nanstd(np.diff(values[:, place])), rel=0.3)
        assert 0.5 < engine.record.rmse_of("no change")[place] < 2.0
        assert (made.places == place).sum() >= engine.record.counts[place] > 0


def test_the_record_is_that_of_the_forecasts():
    times, values, tasks = walks(300, missing=0.05)
    engine = AutoEngine(Auto(FEW.members, compares=True))
    made = engine.advance(times, values, tasks)
    counted = made.times >= times[20]
    assert engine.record.contenders[:4] == ("model", "without sharing", "own past", "tied")
    for t in range(3):
        own = counted & (made.places == t)
        error = (made.actual - made.forecast)[own]
        assert engine.record.counts[t] == own.sum()
        rmse = np.sqrt(np.mean(error**2)) / engine.record.scale[t]
        np.testing.assert_allclose(engine.record.rmse_of("model")[t], rmse, rtol=1e-9)
        last = pd.Series(values[:, t]).ffill().to_numpy()
        rows = np.searchsorted(times, made.times[own])
        still = np.sqrt(np.mean((made.actual[own] - last[rows - 1]) ** 2)) / engine.record.scale[t]
        np.testing.assert_allclose(engine.record.rmse_of("no change")[t], still, rtol=1e-9)
        inside = (made.low[own] <= made.actual[own]) & (made.actual[own] <= made.high[own])
        assert engine.record.covered[t] == inside.sum()
    assert engine.absent == np.isnan(values[20:]).sum()
    apart = AutoEngine(Auto(FEW.members, sharing=False))
    apart.advance(times, values, tasks)
    rest = apart.record.rmse_of("model"), engine.record.rmse_of("without sharing")
    np.testing.assert_allclose(*rest, rtol=0.2)  # its members are those given, here; of the default ones, others


def test_intervals_hold_what_they_promise():
    times, values, tasks = walks(4000, kind="integers")
    for coverage in (0.8, 0.95):
        engine = AutoEngine(FEW, coverage=coverage)
        engine.advance(times, values, tasks)
        np.testing.assert_allclose(engine.record.covered / engine.record.intervals, coverage, atol=0.015)


# Streams of any kind ------------------------------------------------------------------------------------------------


def odd_streams():
    """Tables that nobody would wish for, by name."""
    rng = np.random.default_rng(0)
    days = np.datetime64("2024-01-01") + np.arange(400)
    _, plain, _ = walks(400, 3)

    def with_first(column, times=days):
        values = plain[: len(times)].copy()
        values[:, 0] = column[: len(times)]
        return times, values

    rounds = np.arange(400)
    yield "constant", with_first(np.full(400, 7.0))
    yield "all constant", (days, np.tile([1.0, 0.0, -3.0], (400, 1)))
    for count in (1, 2, 5):
        for first in (0, 8, 150, 390):
            there = (rounds >= first) & (rounds < first + count)
            yield f"{count} values after {first}", with_first(np.where(there, plain[:, 0], np.nan))
    yield "new", with_first(np.where(rounds > 300, plain[:, 0], np.nan))
    yield "seldom", with_first(np.where(rounds % 7 == 0, plain[:, 0], np.nan))
    yield "all seldom", (days, np.where((rounds % 7 == 0)[:, None], plain, np.nan))
    yield "never together", (days, np.where((rounds[:, None] + np.arange(3)) % 3 == 0, plain, np.nan))
    yield "zero but for a value now and then", with_first(np.where(rounds % 7 == 0, np.abs(plain[:, 0]), 0.0))
    yield "silent for long", with_first(np.where((rounds < 60) | (rounds > 360), plain[:, 0], np.nan))
    yield "all silent for long", (days, np.where(((rounds < 60) | (rounds > 360))[:, None], plain, np.nan))
    yield "all silent at first", (days, np.where((rounds > 300)[:, None], plain, np.nan))
    yield "missing", with_first(np.full(400, np.nan))
    yield "a single stream", (days, plain[:, :1])
    yield "twins", (days, plain[:, [0, 0, 1]])
    yield "many", (days, walks(400, 40)[1])
    yield "tiny", with_first(1e-140 * plain[:, 0])
    yield "huge", with_first(1e140 * plain[:, 0])
    yield "all tiny", (days, 1e-140 * plain)
    yield "all huge", (days, 1e140 * np.abs(plain))
    yield "huge and tiny in turn", with_first(np.where(rounds % 2, 1e140, 1e-140))
    yield "from tiny to huge", with_first(np.exp(rounds * 1.6 - 320.0))
    yield "smallest numbers", with_first(1e-308 * rounds)
    yield "beyond what is used", with_first(np.where(rounds % 50 == 0, 1e200, plain[:, 0]))
    yield "a jump", with_first(plain[:, 0] + 1e6 * (rounds > 180))
    yield "an early jump", with_first(plain[:, 0] + 1e6 * (rounds > 7))
    yield "years", (1900 + np.arange(120), plain[:120])
    yield "dates of years", (np.datetime64("1900", "Y") + np.arange(120), plain[:120])
    yield "quarters", (np.datetime64("1970-01", "M") + 3 * np.arange(200), plain[:200])
    yield "months", (np.datetime64("1970-01", "M") + rounds, plain)
    yield "ends of months", (pd.date_range("1990-01-31", periods=400, freq="ME").to_numpy(), plain)
    yield "business days", (pd.bdate_range("2020-01-01", periods=400).to_numpy(), plain)
    yield "weeks", (np.datetime64("2000-01-03") + 7 * rounds, plain)
    yield "minutes", (np.datetime64("2024-01-01T00:00") + rounds, plain)
    yield "an hour left out", (np.delete(np.datetime64("2024-03-24T00") + np.arange(401), 170), plain)
    yield "times from nowhere", (np.sort(rng.choice(10**6, 400, replace=False)), plain)
    yield "far apart", (np.datetime64("0001-01-01", "us") + rounds * np.timedelta64(366 * 24, "h"), plain)
    for first in ("9998-11-27", "-0001-12-01", "100000-01-01"):
        yield f"days from {first}", (np.datetime64(first, "us") + rounds * np.timedelta64(1, "D"), plain)
    for first in (-400, -(2**61), 2**61):
        yield f"numbers from {first}", (first + rounds, plain)
    yield "two rounds", (days[:2], plain[:2])
    yield "four rounds", (days[:4], plain[:4])
    yield "five rounds", (days[:5], plain[:5])
    yield "six rounds, one value", (days[:6], np.where(np.arange(6)[:, None] == 3, plain[:6], np.nan))


ODD = dict(odd_streams())


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("sharing", [True, False], ids=["sharing", "alone"])
def test_any_streams_are_forecast(name, sharing):
    times, values = ODD[name]
    tasks = tuple(f"s{k}" for k in range(values.shape[1]))
    engine = AutoEngine(Auto(sharing=sharing))
    made = engine.advance(times, values, tasks)
    insist_sound(engine, made)
    usable = np.where(np.abs(values) > 1e150, np.nan, values)
    there = ~np.isnan(usable)
    known = np.maximum.accumulate(there, axis=0)[:-1] & there[1:]
    assert len(made.forecast) == known.sum()  # every value but each stream's first


@pytest.mark.parametrize("first", ["0001-01-01", "9999-06-01", "100000-01-01", "1582-10-01", "2024-03-20"])
def test_zones_and_holidays_are_for_any_year(first):
    times = np.datetime64(first, "us") + np.arange(300) * np.timedelta64(1, "h")
    _, values, tasks = walks(300)
    engine = utc(Auto(FEW.members, timezone="Europe/Lisbon", holidays="PT"))
    insist_sound(engine, engine.advance(times, values, tasks))


@pytest.mark.parametrize(
    ("row", "wild"),
    [(row, wild) for row in (0, 1, 4, 30, 150, 260) for wild in (1e6, -1e6, 1e149)] + [(30, 1e12), (260, -1e12)],
)
def test_a_wild_value_of_one_stream_does_little_to_the_others(row, wild):
    times, values, tasks = walks(400, 4)
    errors = []
    for value in (values[row, 0], wild):
        table = values.copy()
        table[row, 0] = value
        made = AutoEngine(Auto()).advance(times, table, tasks)
        others = (made.places > 0) & (made.times > times[20])
        errors.append(np.sqrt(np.mean((made.actual - made.forecast)[others] ** 2)))
    assert errors[1] < (1.1 if row >= 30 else 1.25) * errors[0]  # nothing is typical yet in the first rounds


def unrelated():
    """Streams that tell nothing of each other, by name."""
    rng = np.random.default_rng(7)
    yield "noise", rng.normal(size=(700, 6))
    yield "walks", rng.normal(size=(700, 6)).cumsum(axis=0)
    wind = open_panel("la-haute-borne").values[:3000]
    moved = [np.roll(wind[:, k % wind.shape[1]], 701 * k)[:700] for k in range(4)]
    yield "wind of other days", np.column_stack(moved)


UNRELATED = dict(unrelated())


@pytest.mark.parametrize("name", UNRELATED)
def test_sharing_costs_next_to_nothing_where_nothing_is_to_be_shared(name):
    values = UNRELATED[name]
    rmse = []
    for sharing in (True, False):
        made = AutoEngine(Auto(sharing=sharing)).advance(np.arange(len(values)), values, tuple(range(values.shape[1])))
        counted = made.times > 100
        error = (made.actual - made.forecast)[counted]
        squares = np.bincount(made.places[counted], error**2) / np.bincount(made.places[counted])
        rmse.append(np.sqrt(squares))
    assert (rmse[0] / rmse[1]).mean() < 1.005


def test_what_is_known_of_the_clock_is_used():
    """A season of a day, and days off: forecasts are far better than no change."""
    hours = np.datetime64("2024-01-01T00") + np.arange(900)
    busy = np.where(np.is_busday(hours.astype("datetime64[D]")), 1.0, 0.3)
    shape = np.maximum(np.sin(2.0 * np.pi * (np.arange(900) % 24 - 6) / 24), 0.0)
    rng = np.random.default_rng(1)
    values = (100.0 * busy * shape)[:, None] * [1.0, 3.0] + rng.normal(size=(900, 2))
    engine = AutoEngine(Auto())
    engine.advance(hours, values, ("a", "b"))
    assert engine.ensemble.seasons.in_words == ["a day", "a week"]
    assert (engine.record.rmse_of("model") < 0.4 * engine.record.rmse_of("no change")).all()


def test_bounds_hold_for_forecasts_and_intervals():
    times, values, tasks = walks(300)
    values = np.maximum(values, 0.0)
    engine = AutoEngine(Auto(FEW.members, low=0.0, high=8.0))
    made, ahead = engine.advance(times, values, tasks), engine.ahead()
    free = AutoEngine(FEW).advance(times, values, tasks)
    for one in (made, ahead):
        for name in ("forecast", "low", "high"):
            column = getattr(one, name)
            assert np.nanmin(column) >= 0.0
            assert np.nanmax(column) <= 8.0
    np.testing.assert_array_equal(made.forecast, np.clip(free.forecast, 0.0, 8.0))
    assert np.nanmin(free.low) < 0.0 < 8.0 < np.nanmax(free.high)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"low": 3.0, "high": 3.0}, "is 3: give a low that is below high"),
        ({"low": np.nan}, "low is nan: it must be finite"),
        ({"high": "9"}, "high is '9': it must be a number"),
        ({"seasons": (1.0,)}, "has 1 rounds: give a length between"),
        ({"seasons": (7, 7)}, "give at most 4, each once"),
        ({"seasons": (7, "x")}, "season is 'x'"),
        ({"timezone": "Melbourne"}, "did you mean 'Australia/Melbourne'"),
        ({"holidays": "AU-VCI"}, "did you mean 'AU-VIC'"),
        ({"sharing": 1}, "sharing of a Auto is 1"),
        ({"members": ("own past",)}, "'own past' is a str: give members of Auto"),
        ({"members": (OWN, OWN)}, "the name 'own past' is taken by another member or a rule: give each member its own"),
    ],
    ids=str,
)
def test_auto_refuses_what_makes_no_sense(given, said):
    with pytest.raises(bd.InputError, match=said):
        Auto(**given)


def test_an_engine_needs_auto():
    with pytest.raises(bd.InputError, match=r"auto is a str: give bd\.Auto"):
        AutoEngine("auto")
    with pytest.raises(bd.InputError, match="n_extras"):
        AutoEngine(Auto(), n_extras=-1)


def test_what_is_refused_changes_nothing():
    times, values, tasks = walks(60)
    engine = AutoEngine(FEW)
    engine.advance(times[:50], values[:50], tasks)
    before = bd.state.dumps(engine)
    for change in ({"values": [[np.inf] * 3]}, {"extras": np.zeros((1, 3, 1))}, {"times": times[:1]}, {"tasks": "ab"}):
        given = {"times": times[50:51], "values": values[50:51], "tasks": tasks}
        with pytest.raises(bd.InputError):
            engine.advance(**(given | change))
    assert bd.state.dumps(engine) == before
    with pytest.raises(bd.InputError, match="nothing is known yet"):
        AutoEngine(FEW).ahead()


def test_a_forecast_ahead_changes_nothing():
    times, values, tasks = walks(120, missing=0.1)
    engine = AutoEngine(Auto())
    engine.advance(times, values, tasks)
    before, first = bd.state.dumps(engine), engine.ahead()
    assert bd.state.dumps(engine) == before
    same(first, engine.ahead())
