"""Auto: forecasts of any streams, from the second round on, whatever the values, the times and the cuts."""

import numpy as np
import pytest

from braided.forecasting import joined
from braided.forecasting.auto import Auto, AutoEngine
from tests.auto import FEW, OWN, insist_sound, late, same, walks


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
