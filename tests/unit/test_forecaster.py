"""Forecaster: arrays in, forecasts out, wide, long or row by row; what is wrong with its input, in words."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest

import braided as bd
from braided.forecasting.auto import AutoEngine, Linear
from braided.runs import Settings, load_forecaster, run_in_memory
from braided.state import dumps
from tests.auto import OWN, TIED, same, walks
from tests.runs.tables import GIVEN, field

MEMBERS = [OWN, TIED]


def made_by(times, values, streams, **given):
    forecaster = bd.Forecaster(members=MEMBERS, **given)
    return forecaster, forecaster.update(times, values, streams)


def long(times, values, tasks):
    """The table as columns, without what is missing, in any order within a round."""
    rows, places = np.nonzero(~np.isnan(values))
    order = np.lexsort([np.random.default_rng(0).random(len(rows)), rows])
    rows, places = rows[order], places[order]
    return times[rows], values[rows, places], np.array(tasks)[places]


def test_wide_long_and_row_by_row_are_the_same_to_the_bit():
    times, values, tasks = walks(150, missing=0.1)
    values[0] = 1.0  # so that streams come in the same order
    values[np.isnan(values).all(axis=1)] = 2.0  # so that no round is without a row
    wide, made = made_by(times, values, tasks)
    columns, others = made_by(*long(times, values, tasks))
    same(made, others)
    same(wide.forecast(), columns.forecast())
    rows, pieces = bd.Forecaster(members=MEMBERS), []
    for time, row in zip(times, values, strict=True):
        there = ~np.isnan(row)
        ahead = rows.forecast() if pieces else None
        pieces.append(rows.update([time] * there.sum(), row[there], np.array(tasks)[there]))
        if ahead is not None and len(ahead.forecast):
            known = dict(zip(ahead.tasks, ahead.forecast, strict=True))
            assert [known[task] for task in pieces[-1].tasks] == pieces[-1].forecast.tolist()
    for name in ("times", "forecast", "low", "high"):
        np.testing.assert_array_equal(np.concatenate([getattr(one, name) for one in pieces]), getattr(made, name))
    same(rows.forecast(), wide.forecast())


def test_forecasts_are_those_of_a_run():
    panel = field(steps=120, missing=0.05)
    _, expected = run_in_memory(panel, Settings())
    forecaster = bd.Forecaster()
    same(expected, forecaster.update(panel.times, panel.values, panel.tasks))
    assert forecaster.streams == panel.tasks
    assert forecaster.record.contenders[0] == "model"


def test_a_single_stream_is_a_column():
    times, values, _ = walks(80, 1)
    _, expected = made_by(times, values, ["sales"])
    for given in (
        (times, values[:, 0], "sales"),
        (times, values[:, 0], ["sales"]),
        (times, values[:, 0], ["sales"] * 80),
    ):
        same(expected, made_by(*given)[1])


def test_streams_need_be_named_once():
    times, values, tasks = walks(80)
    forecaster, _ = made_by(times[:50], values[:50], tasks)
    whole, _ = made_by(times[:50], values[:50], tasks)
    same(forecaster.update(times[50:], values[50:]), whole.update(times[50:], values[50:], tasks))


@pytest.mark.parametrize("zone", ["Australia/Melbourne", "Europe/Lisbon", "UTC"])
def test_times_with_an_offset_are_one_moment_however_they_are_written(zone):
    _, values, tasks = walks(120)
    first = datetime(2024, 3, 20, tzinfo=UTC)
    utc = [first + timedelta(hours=hour) for hour in range(120)]
    local = [moment.astimezone(ZoneInfo(zone)) for moment in utc]
    texts = [moment.isoformat() for moment in local]
    stamps = pd.date_range("2024-03-20", periods=120, freq="h", tz="UTC").tz_convert(zone)
    _, expected = made_by(utc, values, tasks, timezone=zone)
    for given in (local, texts, stamps, stamps.to_series()):
        forecaster, made = made_by(given, values, tasks, timezone=zone)
        same(made, expected)
        assert forecaster.engine.origin.is_utc
    assert expected.times[0] == np.datetime64("2024-03-20T01")


def test_the_clock_that_seasons_follow_is_that_of_the_zone():
    """The rush hour moves against UTC when clocks change, and its forecasts with it."""
    zone = ZoneInfo("Australia/Melbourne")
    utc = [datetime(2024, 3, 11, tzinfo=UTC) + timedelta(hours=hour) for hour in range(24 * 35)]  # to 14 April
    busy = np.array([100.0 * (moment.astimezone(zone).hour == 8) for moment in utc])
    values = busy[:, None] * [1.0, 2.0] + np.random.default_rng(0).normal(size=(len(utc), 2))
    errors = []
    for timezone in ("Australia/Melbourne", None):
        made = bd.Forecaster(timezone=timezone).update(utc, values, ["a", "b"])
        after = (made.times >= np.datetime64("2024-04-07T20")) & (made.times < np.datetime64("2024-04-08T20"))
        errors.append(np.abs(made.actual - made.forecast)[after].mean())
    assert errors[0] < 0.6 * errors[1]


def test_options_reach_the_engine():
    times, values, tasks = walks(60)
    forecaster, made = made_by(
        times, values, tasks, season=7, holidays="AU-VIC", bounds=(0.0, 8.0), interval=0.5, compare=True
    )
    assert forecaster.engine.ensemble.seasons.lengths == (7.0,)
    assert np.nanmin(made.low) >= 0.0
    assert np.nanmax(made.high) <= 8.0
    assert forecaster.record.has("without sharing")
    assert forecaster.engine.coverage == 0.5
    alone, _ = made_by(times, values, tasks, season=(), sharing=False)
    assert alone.engine.ensemble.seasons.lengths == ()
    assert not alone.engine.shares
    assert made_by(times, values, tasks, season=(7, 365.25))[0].engine.ensemble.seasons.lengths == (7.0, 365.25)
    assert made_by(times, values, tasks, season="auto")[0].engine.ensemble.seasons.lengths == (7.0, 365.25)


def test_a_method_that_learns_is_tuned_on_the_first_fifth():
    panel = field()
    forecaster = bd.Forecaster(method="wrls")
    made = forecaster.update(panel.times, panel.values, panel.tasks)
    assert forecaster.engine.origin.choice.best.method == "wrls"
    assert forecaster.engine.origin.choice.best.rounds == 80
    assert np.isfinite(made.forecast).all()
    assert len(forecaster.forecast().forecast) == 4


def test_what_is_saved_goes_on_to_the_bit(tmp_path):
    times, values, tasks = walks(120, missing=0.05)
    whole, expected = made_by(times, values, tasks)
    forecaster, _ = made_by(times[:70], values[:70], tasks)
    forecaster.save(tmp_path / "model")
    again = bd.Forecaster.load(tmp_path / "model")
    made = again.update(times[70:], values[70:], tasks)
    np.testing.assert_array_equal(made.forecast, expected.forecast[-len(made.forecast) :])
    np.testing.assert_array_equal(made.high, expected.high[-len(made.high) :])
    same(again.forecast(), whole.forecast())
    bd.save(again, tmp_path / "other")
    assert (tmp_path / "other").read_bytes() == dumps(again.engine)
    assert isinstance(load_forecaster(tmp_path / "model"), AutoEngine)


@pytest.mark.parametrize("settings", [Settings(), Settings(("mt-wrls",), lags=3, **GIVEN)], ids=["auto", "learner"])
def test_a_model_of_a_run_goes_on(settings, tmp_path):
    panel = field(steps=120)
    engine, _ = run_in_memory(panel, settings)
    bd.save(engine, tmp_path / "model")
    forecaster = bd.Forecaster.load(tmp_path / "model")
    same(forecaster.forecast(), engine.ahead())
    later = panel.times[-1:] + np.timedelta64(5, "m")
    assert len(forecaster.update(later, panel.values[-1:]).forecast) == 4


def test_a_model_made_by_hand_goes_on(tmp_path):
    times, values, tasks = walks(60)
    engine = AutoEngine(bd.Auto())
    engine.advance(times[:50], values[:50], tasks)
    bd.save(engine, tmp_path / "model")
    assert len(bd.Forecaster.load(tmp_path / "model").update(times[50:], values[50:]).forecast) == 30


TIMES, VALUES, TASKS = walks(60)
AWARE = np.array([datetime(2024, 6, 1, tzinfo=UTC) + timedelta(days=day) for day in range(3)], object)
WRONG = {  # times, values, streams, what is said
    "no streams": (TIMES[:3], VALUES[:3], [], "streams is empty: give the name of each column of values"),
    "other streams": (TIMES[:3], VALUES[:3], ["a", "b"], r"values has shape \(3, 3\): times and streams say \(3, 2\)"),
    "a stream twice": (
        TIMES[:3],
        VALUES[:3],
        ["a", "b", "a"],
        "stream 'a' appears twice: give each stream its own key",
    ),
    "other rounds": (TIMES[:2], VALUES[:3], TASKS, r"values has shape \(3, 3\)"),
    "three dimensions": (TIMES[:3], VALUES[:3, :, None], TASKS, r"values has shape \(3, 3, 1\)"),
    "one number": (TIMES[:1], 3.0, TASKS, r"values"),
    "infinity": (TIMES[:3], np.full((3, 3), np.inf), TASKS, r"values\[0, 0\] is inf: use NaN for a missing value"),
    "words as values": (TIMES[:3], [["a"] * 3] * 3, TASKS, "values holds something else than numbers"),
    "words as times": (["a", "b", "c"], VALUES[:3], TASKS, "times holds 'a': give ISO 8601 dates"),
    "no order": (TIMES[[1, 0, 2]], VALUES[:3], TASKS, r"times\[1\] is 2024-01-01, not after 2024-01-02"),
    "a time twice": (
        TIMES[[0, 0, 2]],
        VALUES[:3],
        TASKS,
        "is 2024-01-01, not after .*: give each round once",
    ),
    "fractions as times": ([0.5, 1.5, 2.5], VALUES[:3], TASKS, "times has dtype float64"),
    "no time": (
        np.array(["2024-01-01", "NaT", "2024-01-03"], "datetime64[D]"),
        VALUES[:3],
        TASKS,
        r"times\[1\] is NaT",
    ),
    "one time": (TIMES[0], VALUES[:1], TASKS, "times"),
    "long, a stream twice": (TIMES[[0, 0]], [1.0, 2.0], ["a", "a"], "stream 'a' has several values at 2024-01-01"),
    "long, fewer names": (TIMES[:3], [1.0, 2.0, 3.0], ["a", "b"], "have 3, 3 and 2 rows"),
    "long, fewer times": (TIMES[:2], [1.0, 2.0, 3.0], ["a", "b", "c"], "have 2, 3 and 3 rows"),
    "offsets and none": ([AWARE[0], datetime(2024, 6, 2), AWARE[2]], VALUES[:3], TASKS, "some without UTC offsets"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input_is_named_and_leaves_the_forecaster_as_it_was(name):
    times, values, streams, said = WRONG[name]
    fresh = bd.Forecaster(members=MEMBERS)
    with pytest.raises(bd.InputError, match=said):
        fresh.update(times, values, streams)
    assert fresh.streams == ()
    used, _ = made_by(TIMES[:50] - 500, VALUES[:50], TASKS)
    before = dumps(used.engine)
    with pytest.raises(bd.InputError):
        used.update(times, values, streams)
    assert dumps(used.engine) == before


def test_what_comes_before_and_what_is_of_another_kind_is_refused():
    used, _ = made_by(TIMES[:50], VALUES[:50], TASKS)
    before = dumps(used.engine)
    for times, said in (
        (TIMES[40:41], r"times\[0\] is 2024-02-10, not after 2024-02-19"),
        ([7], "those of the rounds before were dates"),
        (AWARE[:1], "times with and without UTC offsets are mixed: give the same kind as before"),
    ):
        with pytest.raises(bd.InputError, match=said):
            used.update(times, VALUES[:1])
    assert dumps(used.engine) == before


def test_nothing_is_known_at_first():
    forecaster = bd.Forecaster()
    for use in (forecaster.forecast, lambda: forecaster.record, lambda: forecaster.save("model")):
        with pytest.raises(bd.InputError, match="nothing is known yet: call update with past values first"):
            use()
    assert repr(forecaster) == "Forecaster(auto)"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"season": "weekly"}, r"season is 'weekly': give 'auto', lengths in rounds, or \(\)"),
        ({"season": None}, "season is None"),
        ({"season": 1}, "has 1 rounds: give"),
        ({"bounds": (1.0,)}, r"bounds is \(1.0,\): give the lowest and the highest value, or None"),
        ({"bounds": 0}, "bounds is 0: give the lowest and the highest value, or None"),
        ({"members": [Linear]}, r"members holds the class Linear: give a member, Linear\('name'\)"),
        ({"bounds": (2.0, 1.0)}, "is 2 and high .--max. is 1"),
        ({"interval": 1.0}, "coverage is 1"),
        ({"method": "mt-wrl"}, "did you mean 'mt-wrls'"),
        ({"method": "wrls", "timezone": "Europe/Lisbon"}, "are options of Auto: leave them out, or use Auto"),
        ({"timezone": "Lisbon"}, "did you mean 'Europe/Lisbon'"),
        ({"members": ["x"]}, "give members of Auto"),
    ],
    ids=str,
)
def test_options_that_make_no_sense_are_refused_at_once(given, said):
    with pytest.raises(bd.InputError, match=said):
        bd.Forecaster(**given)
