"""Lines as they come: forecasts as those of a table, and bad lines without a trace."""

import contextlib
import io
import json

import numpy as np
import pytest

import braided as bd
from braided.runs import SetAsideError, Settings, load_forecaster, load_live, run_in_memory
from braided.runs.ahead import Ahead
from braided.runs.live import Live
from braided.state import dumps
from braided.tables import Lines
from braided.tables.lines import Row, read_lines
from tests.runs.bad_lines import bad_lines, mixed
from tests.runs.tables import GIVEN, KINDS, QUICK, field, lines_of

STEPS, WARM_UP = 150, 40


def fed(live, lines, first=1):
    return [made for number, line in enumerate(lines, first) for made in live.feed(line, number)]


both = pytest.mark.parametrize("settings", KINDS.values(), ids=list(KINDS))


def live(settings=QUICK, **options):
    return Live(settings, warm_up=WARM_UP, **options)


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
        [
            '{"time": "2012-01-01T04:00", "site": "site 1", "wind": 1}',
            '{"time": "2012-01-01T04:05", "site": "site 1", "wind": 1}',
        ],
    )
    assert notes == ["As given: MT-WRLS + neighbours (forgetting 0.99, penalty 10, ridge 0.1)."]


def test_before_there_is_a_model_a_stream_without_a_value_is_forecast_from_its_last():
    stream = live()
    lines = ("time,a,b", "1,5,6", "2,7,NA", "3,NA,8")
    last = (fed(stream, lines) + stream.end())[-1]
    assert (last.tasks, last.forecast.tolist(), last.times.tolist()) == (["a", "b"], [7.0, 8.0], [4, 4])


@both
def test_a_round_is_complete_with_its_last_task(settings):
    panel = field(steps=60)
    stream = live(settings)
    lines = lines_of(panel)
    assert len(fed(stream, lines[:8])) == 2  # the first round, by the second's first line; the second by itself
    assert len(fed(stream, lines[8:12])) == 1
    assert len(fed(stream, lines[12:15])) == 0
    assert len(fed(stream, lines[15:16])) == 1


def refused_lines(time):
    good = {"time": time, "site": "site 1", "wind": 1.0}
    return [
        ('{"time": ', "line 9 is not JSON"),
        ("[1, 2]", "write a JSON object"),
        (json.dumps(good | {"wind": "calm"}), "wind at line 9 is 'calm': write a number"),
        (json.dumps(good | {"wind": True}), "'wind' at line 9 is True"),
        ('{"time": "2099-01-01", "site": "site 1", "wind": Infinity}', "wind at line 9 is inf: write a finite number"),
        (json.dumps(good | {"time": "yesterday"}), "time at line 9 is 'yesterday': write all as"),
        (json.dumps(good | {"time": "2099-01-01T00:00+01:00"}), "time at line 9 is"),
        (json.dumps(good | {"time": 7}), "time at line 9 is 7"),
        (json.dumps(good | {"site": ""}), "site at line 9 is empty"),
        (json.dumps(good | {"site": None}), "site at line 9 is"),
        (json.dumps({"time": time, "site": "site 1"}), "line 9 has no 'wind'"),
        (json.dumps(good | {"time": "2012-01-01"}), "belongs to a round that is complete already"),
    ]


@both
@pytest.mark.parametrize(("line", "message"), refused_lines("2099-01-01"), ids=[m for _, m in refused_lines("")])
def test_a_bad_line_is_refused_and_leaves_no_trace(line, message, settings):
    panel = field(steps=60)
    streams = live(settings), live(settings)
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


@both
def test_within_a_round_each_task_comes_once_and_none_from_before(settings):
    panel = field(steps=60)
    stream = live(settings)
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
    with pytest.raises(bd.InputError, match="the next round waits for 'c'"):
        fed(stream, ["2,c,1"], 6)
    assert len(fed(stream, ["3,a,1", "3,b,1"], 7)) == 0
    assert len(fed(stream, ["3,c,1"], 9)) == 1


@both
def test_a_stream_goes_on_from_a_saved_model(tmp_path, settings):
    panel = field(steps=STEPS)
    lines = lines_of(panel)
    unbroken, first = live(settings), live(settings)
    expected = fed(unbroken, lines)
    fed(first, lines[:400])
    bd.save(first.forecaster, tmp_path / "model")
    again = Live(settings, bd.load(tmp_path / "model"))
    made = fed(again, lines[400:])
    for a, b in zip(made, expected[-len(made) :], strict=True):
        np.testing.assert_array_equal(a.forecast, b.forecast)
        np.testing.assert_array_equal(a.high, b.high)


@both
def test_rows_of_all_tasks_at_once(settings):
    panel = field(steps=STEPS)
    lines = [
        json.dumps({"when": str(moment)} | dict(zip(panel.tasks, map(float, values), strict=True)))
        for moment, values in zip(panel.times, panel.values, strict=True)
    ]
    wide, long = live(settings, time="when"), live(settings)
    made, expected = fed(wide, lines), fed(long, lines_of(panel))
    np.testing.assert_array_equal(made[-1].forecast, expected[-1].forecast)


def test_a_start_that_fails_is_tried_again_later():
    notes = []
    rows = [
        f"{time},{task},{0 if time < 25 else np.sin(time * (1 + ord(task)))}" for time in range(60) for task in "ab"
    ]
    stream = Live(QUICK, warm_up=20, note=notes.append)
    fed(stream, ["time,site,value", *rows])
    assert notes[0].startswith("still forecasting “no change”, up to round 40: no stream that changes has")
    assert notes[1].startswith("As given: MT-WRLS")


def test_growth_needs_values_above_nothing():
    stream = Live(Settings((), logarithm=True))
    with pytest.raises(bd.InputError, match="line 2: -1 has no logarithm"):
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
    with pytest.raises(bd.InputError, match="line 5 is not valid CSV"):
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
        [
            '{"time": "2012-01-01T05:00", "site": "site 2", "wind": 1}',
            '{"time": "2012-01-01T05:05", "site": "site 1", "wind": 1}',
        ],
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


@both
def test_times_of_another_kind_than_the_model_knows_are_refused(settings):
    stream = live(settings)
    fed(stream, lines_of(field(steps=60)))
    for time in ("2099-01-01T00:00+01:00", 2099):
        again = Live(settings, stream.forecaster)
        with pytest.raises(bd.InputError, match="line 1 has another kind of time"):
            fed(again, [json.dumps({"time": time, "site": "site 1", "wind": 1.0})])


@both
def test_integers_that_could_be_dates_stay_integers_after_a_stop(tmp_path, settings):
    stream = live(settings)
    counted = [at(20240100 + count, site, float(count % 7)) for count in range(60) for site in "ab"]
    fed(stream, counted[:-2])
    stream.save(tmp_path / "model")
    again = Live(settings, load_live(tmp_path / "model"))
    fed(again, counted[-2:])
    assert again.rounds == 60


# Bad lines, many of them -------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("form", ["json", "csv"])
@pytest.mark.parametrize("seed", range(4))
def test_500_bad_lines_of_40_kinds_change_nothing_and_each_is_reported_once(form, seed, settings):
    good = lines_of(field(steps=120), form)
    lines, n_bad = mixed(form, good, seed)
    assert n_bad >= 500
    assert len(bad_lines(form)[0]) >= 40
    clean, stream = live(settings), live(settings)
    fed(clean, good)
    reported = 0
    for number, line in read_lines(io.BytesIO(b"\n".join(lines))):
        try:
            if isinstance(line, bd.InputError):
                raise line
            stream.feed(line, number)
        except bd.InputError:
            assert isinstance(line, bd.InputError) or line.decode(errors="replace").strip() not in good
            reported += 1
    assert reported + len(stream.rejected) == n_bad
    assert dumps(stream.forecaster) == dumps(clean.forecaster)


@both
def test_wild_values_in_the_warm_up_end_no_run(settings):
    rng = np.random.default_rng(0)
    for wild in (1e149, 1e-300, 0.0):
        stream = Live(settings, warm_up=20)
        values = rng.normal(size=(60, 2)) * np.where(rng.uniform(size=(60, 2)) < 0.2, wild, 1.0)
        fed(stream, [json.dumps({"time": t, "a": values[t, 0], "b": values[t, 1]}) for t in range(60)])
        stream.end()
        assert stream.rounds == 60


# Times too far ahead -----------------------------------------------------------------------------------------------


def at(time, site="a", value=1.0):
    return json.dumps({"time": time, "site": site, "wind": value})


def begun(**options):
    stream = Live(QUICK, warm_up=10**6, **options)
    fed(stream, [at(time, site) for time in range(5) for site in "ab"])
    return stream


@pytest.mark.parametrize("place", range(14))
@pytest.mark.parametrize("ahead", ["2044-01-01", "2012-01-02"])
@both
def test_a_date_far_ahead_is_set_aside_wherever_it_comes(place, ahead, settings):
    good = lines_of(field(steps=WARM_UP + 5))
    clean, stream = live(settings), live(settings)
    fed(clean, good)
    lines = [*good[:place], json.dumps({"time": ahead, "site": "site 1", "wind": 1.0}), *good[place:]]
    refused = []
    for number, line in enumerate(lines, 1):
        try:
            stream.feed(line, number)
        except bd.InputError as error:
            refused.append((number, str(error)))
    assert [number for number, _ in refused] == ([place + 1] if place > 4 else [])  # else found out by the line after
    assert len(refused) + len(stream.rejected) == stream.set_aside == 1
    assert dumps(stream.forecaster) == dumps(clean.forecaster)


def test_the_message_names_the_time_the_expected_one_and_the_option():
    stream = begun()
    with pytest.raises(
        SetAsideError, match=r"line 11 .* is set aside: its time is more than 100 steps .*5 was expected.*--max-ahead"
    ):
        fed(stream, [at(105)], 11)
    fed(stream, [at(104)], 12)
    fed(begun(max_ahead=0), [at(10**9)])


def test_an_outage_is_believed_after_three_rounds_and_nothing_is_lost():
    notes = []
    stream, patient = begun(note=notes.append), begun(max_ahead=0)
    after = [at(time, site) for time in range(1000, 1010) for site in "ab"]
    made = []
    for number, line in enumerate(after, 11):
        try:
            made += stream.feed(line, number)
        except SetAsideError:
            assert number < 15  # two rounds
    expected = fed(patient, after)
    assert [one.forecast.tolist() for one in made] == [one.forecast.tolist() for one in expected]
    assert stream._gathered == patient._gathered
    assert stream.set_aside == 0
    assert notes == ["3 rounds in a row from 1000 on: the jump is accepted, and their 5 lines are learned"]


def test_far_times_between_good_lines_are_never_believed():
    stream = begun()
    for time in range(5, 50):
        for ahead in (1000, 1001):
            with pytest.raises(SetAsideError):
                fed(stream, [at(ahead + time)])
        fed(stream, [at(time), at(time, "b")])
    assert stream.rounds == 50


def test_a_stream_that_changes_its_step_is_not_shut_out_for_ever():
    stream = begun()
    for time in range(1000, 12_000, 1000):
        with contextlib.suppress(SetAsideError):
            fed(stream, [at(time)])
    assert stream.rounds >= 14


def test_sites_with_times_of_their_own_lose_nothing():
    stream = Live(QUICK, warm_up=10**6)
    times = [600 * step + late for step in range(50) for late in (0, 3)]
    for number, time in enumerate(times):
        with contextlib.suppress(SetAsideError) if number < 12 else contextlib.nullcontext():
            fed(stream, [at(time)])
    stream.end()
    assert [one.time for one in stream._gathered] == times
    assert stream.set_aside == 0


@both
def test_a_date_far_ahead_does_not_reach_the_saved_model(tmp_path, settings):
    stream = live(settings)
    good = lines_of(field(steps=60))
    fed(stream, good[:200])
    with pytest.raises(SetAsideError):
        fed(stream, [json.dumps({"time": "2044-01-01", "site": "site 1", "wind": 1.0})])
    stream.save(tmp_path / "model")
    again = Live(settings, load_live(tmp_path / "model"))
    fed(again, good[200:])
    assert again.forecaster.rounds == 60


# Stopped, and started again ----------------------------------------------------------------------------------------


def shown(made):
    return [
        (one.times.tolist(), one.tasks, *(part.tolist() for part in (one.forecast, one.low, one.high))) for one in made
    ]


@both
@pytest.mark.parametrize("form", ["json", "csv", "wide"])
@pytest.mark.parametrize("every", [1, 7, 61])
def test_a_run_that_is_stopped_anywhere_goes_on_as_if_it_had_not_been(tmp_path, form, every, settings):
    """In the warm-up, in a round, between rounds; with values that are missing, and lines far ahead."""
    panel = field(steps=55 if every == 1 else STEPS, missing=0.05)
    if form == "wide":
        lines = [
            json.dumps({"time": str(time)} | {s: v for s, v in zip(panel.tasks, row.tolist(), strict=True) if v == v})
            for time, row in zip(panel.times, panel.values, strict=True)
        ]
        lines[0] = json.dumps({"time": str(panel.times[0])} | dict.fromkeys(panel.tasks, 5.0))
    else:
        header, lines = [], lines_of(panel, form)
        if form == "csv":
            header, lines = lines[:1], lines[1:]
    header = header if form == "csv" else []
    unbroken, stream = live(settings), live(settings)
    expected, made = [], []
    for one in (unbroken, stream):
        fed(one, header)
    for number, line in enumerate(lines):
        for one, forecasts in ((unbroken, expected), (stream, made)):
            with contextlib.suppress(bd.InputError):  # after a round without the last site, the next one does not wait
                forecasts += shown(one.feed(line, number))
        if number % every == 0:
            stream.save(tmp_path / "model")
            stream = Live(settings, load_live(tmp_path / "model"), warm_up=WARM_UP)
            fed(stream, header)
    np.testing.assert_equal(made, expected)
    unbroken.save(tmp_path / "one")
    stream.save(tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_rounds_that_are_set_aside_outlive_a_stop(tmp_path):
    stream = begun()
    for time in (1000, 1001):
        with pytest.raises(SetAsideError):
            fed(stream, [at(time)])
    stream.save(tmp_path / "warm-up")
    again = Live(QUICK, load_live(tmp_path / "warm-up"), warm_up=10**6)
    fed(again, [at(1002)])
    assert [one.time for one in again._gathered] == [*range(5), 1000, 1001, 1002]


def test_a_start_that_failed_is_not_tried_sooner_after_a_stop(tmp_path):
    rows = [
        f"{time},{task},{0 if time < 25 else np.sin(time * (1 + ord(task)))}" for time in range(60) for task in "ab"
    ]
    stream = Live(QUICK, warm_up=20)
    fed(stream, ["time,site,value", *rows[:50]])
    stream.save(tmp_path / "warm-up")
    notes = []
    again = Live(QUICK, load_live(tmp_path / "warm-up"), warm_up=20, note=notes.append)
    fed(again, ["time,site,value", *rows[50:]])
    assert len(notes) == 1
    assert notes[0].startswith("As given: MT-WRLS")


@both
def test_the_first_line_after_a_stop_can_not_change_columns_or_kind_of_time(tmp_path, settings):
    good = lines_of(field(steps=60))
    for cut in (40, 202):  # in the warm-up, and after it
        clean, stream = live(settings), live(settings)
        fed(clean, good)
        fed(stream, good[:cut])
        stream.save(tmp_path / "model")
        again = Live(settings, load_live(tmp_path / "model"), warm_up=WARM_UP)
        for bad in (at(5), '{"time": "2012-01-01T09:00", "site": "a", "gust": 1}', at("2012-01-01T09:00+00:00")):
            with pytest.raises(bd.InputError):
                fed(again, [bad])
        fed(again, good[cut:])
        assert dumps(again.forecaster) == dumps(clean.forecaster)


@both
def test_rows_that_a_table_has_brought_meanwhile_replace_the_open_round(tmp_path, settings):
    panel = field(steps=60)
    stream = live(settings)
    fed(stream, lines_of(panel)[:202])
    stream.save(tmp_path / "model")
    forecaster = load_live(tmp_path / "model")
    forecaster.advance(panel.times[50:55], panel.values[50:55], panel.tasks)
    again = Live(settings, forecaster)
    fed(again, lines_of(panel)[220:])
    assert again.forecaster.rounds == 60


@both
def test_features_of_another_number_are_refused(settings):
    stream = live(settings)
    fed(stream, lines_of(field(steps=60)))
    again = Live(settings, stream.forecaster, features=["gust"])
    with pytest.raises(bd.InputError, match="line 1 has 1 feature, the rounds before have 0"):
        fed(again, ['{"time": "2012-01-01T05:00", "site": "site 1", "wind": 1, "gust": 2}'])


def test_a_warm_up_is_not_a_model_and_a_file_of_one_says_so(tmp_path):
    stream = begun()
    stream.save(tmp_path / "warm-up")
    with pytest.raises(bd.FileError, match="holds a warm-up of 5 rounds of 2 streams, and no model yet"):
        load_forecaster(tmp_path / "warm-up")


def test_nothing_is_saved_where_nothing_came(tmp_path):
    Live(QUICK).save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("max_ahead", [0, 100])
def test_one_early_line_does_not_cost_a_round_of_many(max_ahead):
    stream = Live(QUICK, warm_up=10**6, max_ahead=max_ahead)
    fed(stream, [at(5, site) for site in "abcdef"])
    with pytest.raises(bd.InputError, match="earlier than the open round"):
        fed(stream, [at(3, "g")], 7)
    made = fed(stream, [at(6)], 8)
    assert (stream.rounds, len(made)) == (1, 1)


def test_a_stop_in_the_first_rounds_forgets_nothing(tmp_path):
    lines = [at(1), at(10, "b"), at(10, "a"), at(5), at(6)]
    whole = Live(QUICK, warm_up=10**6)
    for cut in range(1, 5):
        stream = Live(QUICK, warm_up=10**6)
        for number, line in enumerate(lines, 1):
            with contextlib.suppress(bd.InputError):
                stream.feed(line, number)
            if number == cut:
                stream.save(tmp_path / "rounds")
                stream = Live(QUICK, bd.load(tmp_path / "rounds"), warm_up=10**6)
        stream.save(tmp_path / f"after-{cut}")
    for number, line in enumerate(lines, 1):
        with contextlib.suppress(bd.InputError):
            whole.feed(line, number)
    whole.save(tmp_path / "whole")
    for cut in range(1, 5):
        assert (tmp_path / f"after-{cut}").read_bytes() == (tmp_path / "whole").read_bytes()


WRONG_FIRST = {
    "another kind of time": '{"time": "2024-01-01", "site": "a", "wind": 1}',
    "a log that looks like a wide row": '{"time": 1, "pid": 5, "line": 7}',
}


@both
@pytest.mark.parametrize("first", WRONG_FIRST.values(), ids=list(WRONG_FIRST))
def test_a_wrong_first_line_costs_itself_alone(first, settings):
    good = [at(time, site) for time in range(1, 40) for site in "ab"]
    streams = Live(settings, warm_up=20), Live(settings, warm_up=20)
    refused = []
    for number, line in enumerate([first, *good], 1):
        try:
            streams[0].feed(line, number)
        except bd.InputError:
            refused.append(number)
    fed(streams[1], good, first=2)
    assert len(refused) == 1  # the first good line, until the next one agrees with it
    assert [str(error) for error in streams[0].rejected] == [
        "line 1 does not fit the lines that follow, which are used: check the times"
    ]
    assert dumps(streams[0].forecaster) == dumps(streams[1].forecaster)


def test_two_wrong_lines_do_not_displace_a_right_one_for_good():
    wrong = ['{"time": "2024-01-01", "site": "a", "wind": 1}', '{"time": "2024-01-02", "site": "a", "wind": 1}']
    stream = Live(QUICK, warm_up=10**6)
    for number, line in enumerate([at(1), *wrong, *[at(time) for time in range(2, 30)]], 1):
        with contextlib.suppress(bd.InputError):
            stream.feed(line, number)
    assert stream.rounds >= 27
    assert stream.last_time == "29"


def test_exactly_the_limit_counts_and_ten_rounds_are_believed():
    def row(time):
        return Row(time, False, False, {"a": 1.0}, {"a": []})

    ahead = Ahead([])
    assert not ahead.keep(row(1000), 1, 100)
    assert not ahead.keep(row(1100), 2, 100)
    assert len(ahead.keep(row(1200), 3, 100)) == 3
    for number in range(9):
        assert not ahead.keep(row(1000 * (number + 1)), number, 100)
    assert len(ahead.keep(row(10**5), 9, 100)) == 10


def test_a_task_that_is_left_out_may_hold_anything():
    stream = Live(Settings((), logarithm=True, without=("b",)))
    assert stream.feed('{"time": 1, "site": "b", "wind": -1}', 1) == []
