"""Auto: forecasts of any streams, from the second round on, whatever the values, the times and the cuts."""

import numpy as np
import pytest

from braided.forecasting import joined
from braided.forecasting.auto import Auto, AutoEngine, Linear

OWN = Linear("own past", "separate", ("bias", "recent", "level", "known"), 10.0)
TIED = Linear("tied", "tied", ("bias", "recent", "level", "near", "mean", "seasons", "phases", "known"))
FEW = Auto((OWN, TIED))  # of the members, so that tests are quick


def walks(rounds=260, streams=3, seed=0, missing=0.0):
    """Related streams: times of days, values and names."""
    rng = np.random.default_rng(seed)
    week = np.sin(2.0 * np.pi * np.arange(rounds) / 7.0)[:, None] * rng.uniform(0.0, 2.0, streams)
    values = 5.0 + week + (rng.normal(size=(rounds, 1)) + rng.normal(size=(rounds, streams))).cumsum(axis=0)
    values[rng.random(values.shape) < missing] = np.nan
    return np.datetime64("2024-01-01") + np.arange(rounds), values, tuple(f"s{k}" for k in range(streams))


def same(one, other):
    """Insist that forecasts are the same to the bit."""
    assert one.tasks == other.tasks
    for name in ("times", "actual", "forecast", "low", "high"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)


def as_will_be(engine, times, values, tasks, first=2):
    """Advance round by round; insist that each was forecast ahead to the bit."""
    engine.advance(times[:first], values[:first], tasks)
    for row in range(first, len(times)):
        ahead = engine.ahead()
        made = engine.advance(times[row : row + 1], values[row : row + 1], tasks)
        known = {task: place for place, task in enumerate(ahead.tasks)}
        places = [known[task] for task in made.tasks]
        for name in ("times", "forecast", "low", "high"):
            np.testing.assert_array_equal(getattr(ahead, name)[places], getattr(made, name), str((row, name)))
    return engine


@pytest.mark.parametrize("sharing", [True, False])
def test_the_next_round_is_forecast_as_it_will_be(sharing):
    as_will_be(AutoEngine(Auto(FEW.members, sharing=sharing)), *walks(missing=0.1))


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


def insist_sound(engine, made):
    """All forecasts are finite, every stream with a value has one ahead, and intervals are there or not."""
    assert np.isfinite(made.forecast).all()
    ahead = engine.ahead()
    assert {*ahead.tasks} == {task for task, last in zip(engine.tasks, engine._last, strict=True) if last == last}
    assert np.isfinite(ahead.forecast).all()
    for one in (made, ahead):
        known = ~np.isnan(one.low)
        np.testing.assert_array_equal(known, ~np.isnan(one.high))
        assert (one.low[known] <= one.forecast[known]).all()
        assert (one.forecast[known] <= one.high[known]).all()
        assert np.isfinite(one.high[known]).all()
        assert np.isfinite(one.low[known]).all()
    for name in ("rmse", "curve"):
        assert not np.isinf(getattr(engine.record, name)).any()


@pytest.mark.parametrize("cuts", [[], range(1, 1000)], ids=["whole", "one by one"])
@pytest.mark.parametrize("first", [0, 300])
def test_streams_with_times_of_their_own_are_forecast_once_they_have_enough_values(cuts, first):
    """Each of 30 streams has a value in every 30th round, the first of them perhaps after 300."""
    values = np.full((1000, 30), np.nan)
    rounds = np.arange(first, 1000)
    values[rounds, rounds % 30] = np.random.default_rng(0).normal(size=len(rounds))
    engine = AutoEngine(Auto((OWN,)))
    made = [engine.advance(part, values[part], tuple(range(30))) for part in np.split(np.arange(1000), cuts)]
    assert len(engine.places) == 30
    assert not engine._head
    insist_sound(engine, made[-1])


def late(values):
    """Values of which a third stream comes late, and a fourth later."""
    values = values.copy()
    values[:30, 2] = np.nan
    values[:210, 3:] = np.nan
    return values


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
        own = made.places == place
        assert engine.record.scale[place] == pytest.approx(np.nanstd(np.diff(values[:, place])), rel=0.3)
        assert 0.5 < engine.record.rmse_of("no change")[place] < 2.0
        assert own.sum() >= engine.record.counts[place] > 0
