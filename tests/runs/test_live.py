"""Lines as they come: forecasts as those of a table, and bad lines without a trace."""

import json

import numpy as np
import pytest

import braided as bd
from braided.runs import Settings, run_in_memory
from braided.runs.live import Live
from braided.state import dumps
from braided.streams import Lines
from tests.runs.tables import GIVEN, QUICK, field, lines_of

STEPS, WARM_UP = 150, 40


def fed(live, lines, first=1):
    return [made for number, line in enumerate(lines, first) for made in live.feed(line, number)]


def live(**options):
    return Live(QUICK, warm_up=WARM_UP, **options)


@pytest.mark.parametrize("form", ["json", "csv"])
@pytest.mark.parametrize("missing", [0.0, 0.03])
def test_the_forecasts_are_those_of_the_table(form, missing):
    panel = field(steps=STEPS, missing=missing)
    stream = live()
    made = fed(stream, lines_of(panel, form)) + stream.end()
    _, whole = run_in_memory(panel, Settings(("mt-wrls-neighbours",), lags=3, tune=WARM_UP / STEPS, **GIVEN))
    found = {
        (time, task): bounds
        for one in made
        for time, task, *bounds in zip(one.times, one.tasks, one.forecast, one.low, one.high, strict=True)
    }
    for time, task, *bounds in zip(whole.times, whole.tasks, whole.forecast, whole.low, whole.high, strict=True):
        assert found[time, task] == bounds
    assert stream.forecaster.rounds == STEPS


def test_before_there_is_a_model_no_change_is_forecast():
    panel = field(steps=WARM_UP - 1)
    notes = []
    stream = live(note=notes.append)
    made = fed(stream, lines_of(panel)) + stream.end()
    assert len(made) == WARM_UP - 1
    assert len(made[0].times) == 0  # it is not yet known when the next round will be
    np.testing.assert_array_equal(made[-1].forecast, panel.values[-1])
    assert np.isnan(made[-1].low).all()
    assert made[-1].times[0] == panel.times[-1] + np.timedelta64(300, "s")
    assert notes == []
    fed(
        stream,
        ['{"time": "2012-06-01", "site": "site 1", "wind": 1}', '{"time": "2012-06-02", "site": "site 1", "wind": 1}'],
    )
    assert notes == ["As given: MT-WRLS + neighbours (forgetting 0.99, penalty 10, ridge 0.1)."]


def test_a_round_is_complete_with_its_last_task():
    panel = field(steps=60)
    stream = live()
    lines = lines_of(panel)
    assert len(fed(stream, lines[:8])) == 2  # the first round, by the second's first line; the second by itself
    assert len(fed(stream, lines[8:12])) == 1
    assert len(fed(stream, lines[12:15])) == 0
    assert len(fed(stream, lines[15:16])) == 1


def bad_lines(time):
    good = {"time": time, "site": "site 1", "wind": 1.0}
    return [
        ('{"time": ', "line 9 is no JSON"),
        ("[1, 2]", "write a JSON object"),
        (json.dumps(good | {"wind": "calm"}), "wind at line 9 is 'calm': write a number"),
        (json.dumps(good | {"wind": True}), "wind at line 9 is True"),
        ('{"time": "2099-01-01", "site": "site 1", "wind": Infinity}', "wind at line 9 is inf: write a finite number"),
        (json.dumps(good | {"time": "yesterday"}), "time at line 9 is 'yesterday': write all as"),
        (json.dumps(good | {"time": "2099-01-01T00:00+01:00"}), "time at line 9 is"),
        (json.dumps(good | {"time": 7}), "time at line 9 is 7"),
        (json.dumps(good | {"site": ""}), "site at line 9 is empty"),
        (json.dumps(good | {"site": None}), "site at line 9 is"),
        (json.dumps({"time": time, "site": "site 1"}), "line 9 has no 'wind'"),
        (json.dumps(good | {"time": "2012-01-01"}), "belongs to a round that is complete already"),
    ]


@pytest.mark.parametrize(("line", "message"), bad_lines("2099-01-01"), ids=[m for _, m in bad_lines("")])
def test_a_bad_line_is_refused_and_leaves_no_trace(line, message):
    panel = field(steps=60)
    streams = live(), live()
    lines = lines_of(panel)
    for stream in streams:
        fed(stream, lines[:202])  # two lines into a round
    before = dumps(streams[0].forecaster)
    with pytest.raises(bd.InputError, match=message):
        fed(streams[0], [line], first=9)
    assert dumps(streams[0].forecaster) == before
    one, two = (fed(stream, lines[202:]) for stream in streams)
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a.forecast, b.forecast)


def test_within_a_round_each_task_comes_once_and_none_from_before():
    panel = field(steps=60)
    stream = live()
    lines = lines_of(panel)
    fed(stream, lines[:202])
    with pytest.raises(bd.InputError, match="line 9 gives 'site 2' for the second time in a round"):
        fed(stream, [lines[201]], first=9)
    fed(stream, lines[202:206])
    with pytest.raises(bd.InputError, match="belongs to a round that is complete already"):
        fed(stream, [lines[201]], first=9)


def test_a_task_that_comes_last_in_its_rounds_is_waited_for():
    stream = Live(QUICK, warm_up=10**6)
    assert len(fed(stream, ["time,site,value", "1,a,1", "1,b,1", "2,a,1", "2,b,1"])) == 2
    with pytest.raises(bd.InputError, match="from now on rounds wait for c"):
        fed(stream, ["2,c,1"], 6)
    assert len(fed(stream, ["3,a,1", "3,b,1"], 7)) == 0
    assert len(fed(stream, ["3,c,1"], 9)) == 1


def test_a_stream_goes_on_from_a_saved_model(tmp_path):
    panel = field(steps=STEPS)
    lines = lines_of(panel)
    unbroken, first = live(), live()
    expected = fed(unbroken, lines)
    fed(first, lines[:400])
    bd.save(first.forecaster, tmp_path / "model")
    again = Live(QUICK, bd.load(tmp_path / "model"))
    made = fed(again, lines[400:])
    for a, b in zip(made, expected[-len(made) :], strict=True):
        np.testing.assert_array_equal(a.forecast, b.forecast)
        np.testing.assert_array_equal(a.high, b.high)


def test_rows_of_all_tasks_at_once():
    panel = field(steps=STEPS)
    lines = [
        json.dumps({"when": str(moment)} | dict(zip(panel.tasks, map(float, values), strict=True)))
        for moment, values in zip(panel.times, panel.values, strict=True)
    ]
    wide = Live(QUICK, warm_up=WARM_UP, time="when")
    long = live()
    made, expected = fed(wide, lines), fed(long, lines_of(panel))
    np.testing.assert_array_equal(made[-1].forecast, expected[-1].forecast)


def test_a_start_that_fails_is_tried_again_later():
    notes = []
    rows = [
        f"{time},{task},{0 if time < 25 else np.sin(time * (1 + ord(task)))}" for time in range(60) for task in "ab"
    ]
    stream = Live(QUICK, warm_up=20, note=notes.append)
    fed(stream, ["time,site,value", *rows])
    assert notes[0].startswith("still forecasting “no change”, up to round 40: one task only")
    assert notes[1].startswith("As given: MT-WRLS")


def test_growth_needs_values_above_nothing():
    stream = Live(Settings(logarithm=True))
    with pytest.raises(bd.InputError, match="line 2 gives -1, which has no logarithm"):
        fed(stream, ["time,site,value", "1,a,-1"])


def test_lines_of_csv():
    lines = Lines(features=["gust"])
    assert lines.parse("\ufefftime;site;wind;gust\r\n", 1) is None
    assert lines.parse("  \n", 2) is None
    row = lines.parse('2024;"a;b";1.5;NA\n', 3)
    assert (row.time, row.is_dated, row.values) == (2024, False, {"a;b": 1.5})
    assert np.isnan(row.extras["a;b"][0])
    with pytest.raises(bd.InputError, match=r"line 4 has 3 fields, the header 4: quote a field that holds a semicolon"):
        lines.parse("2024;a;1", 4)
    with pytest.raises(bd.InputError, match="line 5 is no CSV"):
        lines.parse('2024;"a;1;2', 5)
    with pytest.raises(bd.InputError, match="line 1 has no time column"):
        Lines().parse('{"a": 1}', 1)


def test_tasks_that_are_left_out_stay_out(tmp_path):
    panel = field(steps=60)
    stream = Live(Settings(("mt-wrls-neighbours",), lags=3, without=("site 2",), **GIVEN), warm_up=WARM_UP)
    fed(stream, lines_of(panel))
    assert stream.forecaster.tasks == ("site 1", "site 3", "site 4")
    again = Live(QUICK, stream.forecaster)
    fed(
        again,
        ['{"time": "2099-01-01", "site": "site 2", "wind": 1}', '{"time": "2099-01-02", "site": "site 1", "wind": 1}'],
    )
    assert "site 2" not in again.forecaster.columns


def test_a_wide_line_may_lack_a_task_and_hold_text():
    lines = Lines()
    first = lines.parse('{"time": 1, "north": 5.5, "south": 4.0, "note": "calm"}', 1)
    assert first.values == {"north": 5.5, "south": 4.0}
    assert lines.parse('{"time": 2, "south": 4.5, "note": "rough"}', 2).values == {"south": 4.5}


def test_the_warm_up_is_not_scored_and_features_keep_their_order():
    rng = np.random.default_rng(0)
    values, extras = 10.0 + rng.normal(size=(60, 2)).cumsum(axis=0), rng.normal(size=(60, 2, 2))
    settings = Settings(("mt-wrls",), lags=2, **GIVEN)
    stream = Live(settings, warm_up=40, features=["f", "g"])
    numbers = np.concatenate([values[:, :, None], extras], axis=2).tolist()
    rows = [f"{step},{'ab'[k]},{','.join(map(repr, numbers[step][k]))}" for step in range(60) for k in range(2)]
    fed(stream, ["time,site,value,f,g", *rows])
    assert stream.forecaster.record.counts.tolist() == [20, 20]
    np.testing.assert_array_equal(stream.forecaster._recent_extras, extras[-3:])


def test_times_of_another_kind_than_the_model_knows_are_refused():
    stream = live()
    fed(stream, lines_of(field(steps=60)))
    for time in ("2099-01-01T00:00+01:00", 2099):
        again = Live(QUICK, stream.forecaster)
        with pytest.raises(bd.InputError, match="line 1 has a time of another kind"):
            fed(again, [json.dumps({"time": time, "site": "site 1", "wind": 1.0})])
