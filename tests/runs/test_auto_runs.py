"""Tables and lines through Auto: what a file or a user can tell."""

import contextlib
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import braided as bd
from braided.forecasting import LiveRounds
from braided.forecasting.auto import Auto, AutoEngine
from braided.report import in_words
from braided.runs import Live, Settings, learn, load_forecaster, load_live, run, run_in_memory
from braided.runs.start import chosen
from braided.state import dumps
from braided.tables import open_rounds
from tests.auto import AHEAD, FEW, same, walks
from tests.runs.kills import insist_same_bytes_after_kills
from tests.runs.tables import GIVEN, KINDS, QUICK, field, lines_of, written

QUICK_AUTO = Settings(auto=FEW)


def fed(live, lines, first=1):
    return [made for number, line in enumerate(lines, first) for made in live.feed(line, number)]


def go(folder, table, settings=QUICK_AUTO, suffix="parquet", every=10**6, **reading):
    return run(open_rounds(table, **reading), settings, folder / f"forecasts.{suffix}", folder / "model", every=every)


def test_the_default_is_auto():
    assert Settings().is_auto
    assert not Settings(()).is_auto
    forecaster, made = run_in_memory(field(steps=60))
    assert isinstance(forecaster, AutoEngine)
    assert len(made.forecast) == 59 * 4
    assert forecaster.origin.choice is None
    assert chosen(forecaster).startswith("Auto: ")


def test_the_file_holds_the_forecasts_of_the_engine(tmp_path):
    panel = field(missing=0.02)
    done = go(tmp_path, written(tmp_path / "table.csv", missing=0.02))
    engine = AutoEngine(FEW)
    made = engine.advance(panel.times, panel.values, panel.tasks)
    frame = pd.read_parquet(done.forecasts)
    np.testing.assert_array_equal(frame.time.to_numpy(), made.times)
    assert frame.stream.tolist() == made.tasks
    for name in ("actual", "forecast", "low", "high"):
        np.testing.assert_array_equal(frame[name].to_numpy(), getattr(made, name))
    np.testing.assert_array_equal(done.forecaster.record.squares, engine.record.squares)
    text = go(tmp_path / "csv", tmp_path / "table.csv", suffix="csv")
    pd.testing.assert_frame_equal(frame, pd.read_csv(text.forecasts, parse_dates=["time"]), check_dtype=False)


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
@pytest.mark.parametrize("every", [101, 400])
@pytest.mark.parametrize(
    "auto", [FEW, replace(AHEAD, horizon=3, quantiles=(0.1, 0.9))], ids=["next round", "three rounds, quantiles"]
)
def test_a_run_that_was_killed_ends_with_the_same_bytes(tmp_path, monkeypatch, suffix, every, auto):
    """Killed after each of its saves, from the one before the first round to the very last."""
    options = {
        "table": written(tmp_path / "table.csv", steps=250, missing=0.02),
        "settings": Settings(auto=auto),
        "suffix": suffix,
        "every": every,
        "batch_rows": 300,
    }
    insist_same_bytes_after_kills(lambda folder: go(folder, **options), tmp_path, monkeypatch)


@pytest.mark.parametrize("batch", [1, 7, 90, 10_000])
@pytest.mark.parametrize("form", ["long", "wide"])
def test_how_a_table_is_read_leaves_no_trace(tmp_path, batch, form):
    times, values, tasks = walks(240, 4, missing=0.05)
    values[:30, 2], values[:210, 3] = np.nan, np.nan  # come late
    values[0, :2] = 1.0
    frame = pd.DataFrame(values, pd.Index(times, name="time"), tasks)
    if form == "long":
        frame = (
            frame.reset_index()
            .melt("time", var_name="site", value_name="value")
            .dropna()
            .sort_values("time", kind="stable")
        )
        frame.to_csv(tmp_path / "table.csv", index=False)
    else:
        frame.to_csv(tmp_path / "table.csv")
    engine = AutoEngine(FEW)
    expected = engine.advance(times, values, tasks)
    done = go(tmp_path / "out", tmp_path / "table.csv", batch_rows=batch)
    frame = pd.read_parquet(done.forecasts)
    for name in ("actual", "forecast", "low", "high"):
        np.testing.assert_array_equal(frame[name].to_numpy(), getattr(expected, name), name)
    assert done.forecaster.gaps == engine.gaps == 0


def test_a_finished_run_is_shown_again_and_another_one_refused(tmp_path):
    table = written(tmp_path / "table.csv", steps=60)
    go(tmp_path, table)
    assert go(tmp_path, table).how == "finished"
    for auto, said in (
        (Auto(FEW.members, (7.0,)), "without --season, not with --season 7:"),
        (Auto(FEW.members, timezone="UTC"), "not with --timezone UTC:"),
        (Auto(FEW.members, low=0.0), "not with --min 0:"),
        (Auto(FEW.members, compares=True), "without --compare, not with --compare:"),
    ):
        with pytest.raises(bd.FileError, match=said):
            go(tmp_path, table, Settings(auto=auto))
    with pytest.raises(bd.FileError, match="holds a run without --lags, not with --lags 3"):
        go(tmp_path, table, QUICK)


REFUSED = {  # a table, and what is said of it
    "empty": ("", "is empty: write a header"),
    "no rows": ("time,site,value\n", "has a header and no rows"),
    "a word": ("time,site,value\n1,a,5\n1,b,calm\n", "is 'calm'"),
    "a value twice": ("time,site,value\n1,a,5\n1,b,6\n1,a,5\n", "appears twice"),
    "no time": ("site,value\na,5\nb,6\n", "has no time column"),
    "infinity": ("time,site,value\n1,a,5\n1,b,inf\n", "is 'inf'"),
    "a date and a number": ("time,site,value\n2024-01-01,a,5\n7,b,6\n", "time at line 3"),
}


@pytest.mark.parametrize("settings", [QUICK_AUTO, QUICK], ids=["auto", "learner"])
@pytest.mark.parametrize("name", REFUSED)
def test_a_table_that_can_not_be_read_leaves_nothing_behind(tmp_path, name, settings):
    text, said = REFUSED[name]
    (tmp_path / "table.csv").write_text(text)
    with pytest.raises(bd.InputError, match=said):
        go(tmp_path / "out", tmp_path / "table.csv", settings)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "text",
    [
        "time,site,value\n" + "".join(f"{t},a,{t % 3}\n" for t in range(40)),  # a single stream
        "time,a,b\n" + "".join(f"{t},7,{t % 5}\n" for t in range(40)),  # one never changes
        "time,a,b\n1,2,3\n",  # one round
        "time,a,b\n1,2,3\n2,3,4\n",
        "time,site,value\n1,a,2\n2,b,3\n3,c,4\n",
        "time,a,b\n" + "".join(f"{t},,{t % 5}\n" for t in range(40)),  # one has no value
    ],
    ids=["single", "constant", "one round", "two rounds", "each once", "empty column"],
)
def test_small_tables_run(tmp_path, text):
    (tmp_path / "table.csv").write_text(text)
    done = go(tmp_path / "out", tmp_path / "table.csv", Settings())
    has_second_values = text.count("\n") > 4 or "2,3,4" in text
    assert (done.forecasts is not None) == has_second_values
    assert not has_second_values or np.isfinite(pd.read_parquet(done.forecasts).forecast).all()
    assert isinstance(load_forecaster(tmp_path / "out" / "model"), AutoEngine)


def test_streams_that_are_left_out_stay_out():
    panel = field(steps=60)
    forecaster, _ = run_in_memory(panel, Settings(auto=FEW, without=("site 2",)))
    assert forecaster.tasks == ("site 1", "site 3", "site 4")
    with pytest.raises(bd.InputError, match="did you mean 'site 2'"):
        run_in_memory(panel, Settings(auto=FEW, without=("site 22",)))


def test_a_saved_model_learns_newer_rows_only_and_a_run_goes_on_from_it(tmp_path):
    panel = field(steps=160)
    part = pd.DataFrame(panel.values[:100], panel.times[:100], panel.tasks)
    forecaster, _ = run_in_memory(part, QUICK_AUTO)
    bd.save(forecaster, tmp_path / "model")
    whole, made = run_in_memory(panel, QUICK_AUTO)
    later = bd.load(tmp_path / "model")
    learn(later, open_rounds(panel))
    assert later.rounds == 160
    same(later.ahead(), whole.ahead())
    engine, rest = run_in_memory(panel, Settings(model=str(tmp_path / "model")))
    np.testing.assert_array_equal(rest.forecast, made.forecast[-len(rest.forecast) :])
    assert rest.times[0] == panel.times[100]
    assert engine.record.counts.tolist() == [60] * 4
    assert engine.record.contenders == whole.record.contenders


def test_a_run_from_a_model_says_when_no_row_is_newer(tmp_path):
    table = written(tmp_path / "table.csv", steps=60)
    for settings in KINDS.values():
        whole, _ = run_in_memory(table, settings)
        bd.save(whole, tmp_path / "model")
        again, made = run_in_memory(table, Settings(model=str(tmp_path / "model")))
        assert len(made.forecast) == 0
        assert in_words(again)[0].startswith("No row is newer than the model, which has learned all up to 2012-01-01 ")
        longer = written(tmp_path / "longer.csv", steps=90)
        assert "newer" not in in_words(run_in_memory(longer, Settings(model=str(tmp_path / "model")))[0])[0]


def test_further_columns_are_used():
    rng = np.random.default_rng(0)
    hint = rng.normal(size=(400, 2))
    values = np.zeros((400, 2))
    values[1:] = (hint[:-1] + 0.1 * rng.normal(size=(399, 2))).cumsum(axis=0)
    columns = {"time": np.repeat(np.arange(400), 2), "site": np.tile(["a", "b"], 400)}
    frame = pd.DataFrame(columns | {"value": values.ravel(), "hint": hint.ravel()})
    with_hint, without = (run_in_memory(frame, value="value", features=names)[0] for names in (["hint"], []))
    errors = [one.record.rmse_of("model") / one.record.rmse_of("no change") for one in (with_hint, without)]
    assert (errors[0] < 0.4).all()
    assert (errors[1] > 0.9).all()
    assert len(with_hint.ahead().forecast) == 2


@pytest.mark.parametrize("zone", ["Australia/Melbourne", None])
def test_times_with_offsets_are_in_utc_and_their_seasons_on_the_clock_that_is_named(tmp_path, zone):
    times, values, tasks = walks(100, kind="hourly")
    frame = pd.DataFrame(
        values, pd.DatetimeIndex(times, tz="UTC", name="time").tz_convert("Australia/Melbourne"), tasks
    )
    frame.to_csv(tmp_path / "table.csv")
    done = go(tmp_path / "out", tmp_path / "table.csv", Settings(auto=Auto(FEW.members, timezone=zone)))
    assert done.forecaster.auto.timezone == zone
    assert done.forecaster.origin.is_utc
    assert ("--timezone Europe/Berlin makes them local" in chosen(done.forecaster)) == (zone is None)
    known = pd.read_parquet(done.forecasts)["time"]
    assert str(known.dt.tz) == "UTC"
    engine = AutoEngine(Auto(FEW.members, timezone=zone))
    shift = np.timedelta64(11 if zone else 0, "h")  # all before the clock changes
    made = engine.advance(times[:80] + shift, values[:80], tasks)
    np.testing.assert_array_equal(made.forecast, pd.read_parquet(done.forecasts).forecast[: len(made.forecast)])


# Lines --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize("form", ["json", "csv"])
def test_lines_are_forecast_as_the_table_from_the_second_round_on(form, missing):
    panel = field(steps=120, missing=missing)
    stream = Live(QUICK_AUTO)
    lines, made = lines_of(panel, form), []
    for number, line in enumerate(lines, 1):
        with contextlib.suppress(bd.InputError):  # after a round without the last site, the next one does not wait
            made += stream.feed(line, number)
    made += stream.end()
    if missing:
        assert stream.rounds == 120
        return
    assert [len(one.times) for one in made] == [0] + 119 * [4]
    forecaster, whole = run_in_memory(panel, QUICK_AUTO)
    for row, one in enumerate(made[1:-1], start=2):
        now = whole.times == panel.times[row]
        np.testing.assert_array_equal(one.forecast, whole.forecast[now])
        np.testing.assert_array_equal(one.low, whole.low[now])
        np.testing.assert_array_equal(one.high, whole.high[now])
    same(made[-1], forecaster.ahead())


def test_auto_has_no_warm_up_to_speak_of():
    notes = []
    stream = Live(QUICK_AUTO, note=notes.append)
    lines = lines_of(field(steps=30))
    fed(stream, lines[: 4 * 4])
    assert stream.forecaster is None
    assert notes == []
    fed(stream, lines[4 * 4 : 4 * 5])
    assert isinstance(stream.forecaster, AutoEngine)
    assert len(notes) == 1
    assert notes[0].startswith("Auto: ")
    fed(stream, lines[4 * 5 :])
    assert stream.rounds == 30
    assert (len(notes), "learners" in notes[0], "learners" in notes[1]) == (2, False, True)
    assert notes[1] == stream.forecaster.in_words()


def test_a_stream_that_is_new_is_forecast_from_its_second_value_on():
    stream = Live(QUICK_AUTO)
    fed(stream, lines_of(field(steps=30)))
    new = [json.dumps({"time": f"2012-01-01T02:{30 + 5 * k}", "site": "new", "wind": 5.0 + k}) for k in range(3)]
    made = fed(stream, new)
    assert "new" in made[-1].tasks
    place = made[-1].tasks.index("new")
    assert made[-1].forecast[place] in (5.0, 6.0, 7.0)


def test_the_first_rounds_outlive_a_stop(tmp_path):
    lines = lines_of(field(steps=30))
    stream, unbroken = Live(QUICK_AUTO), Live(QUICK_AUTO)
    expected = fed(unbroken, lines)
    made = fed(stream, lines[:10])
    stream.save(tmp_path / "model")
    assert isinstance(load_live(tmp_path / "model"), LiveRounds)
    again = Live(QUICK_AUTO, load_live(tmp_path / "model"))
    made += fed(again, lines[10:])
    for one, other in zip(made, expected, strict=True):
        same(one, other)
    assert dumps(again.forecaster) == dumps(unbroken.forecaster)


def test_a_model_of_a_table_takes_lines():
    panel = field(steps=100)
    part = pd.DataFrame(panel.values[:60], panel.times[:60], panel.tasks)
    forecaster, _ = run_in_memory(part, QUICK_AUTO)
    whole, _ = run_in_memory(panel, QUICK_AUTO)
    live = Live(Settings(), forecaster)
    fed(live, lines_of(panel)[240:])
    live.end()
    same(live.forecaster.ahead(), whole.ahead())


# Options that make no sense together --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"tune": 0.3}, "--tune has no meaning for Auto, which tunes nothing: leave it out, or name methods"),
        ({"how": "grid"}, "--search has no meaning for Auto, which tunes nothing"),
        ({"lags": 3}, "--lags has no meaning for Auto, which has its own features"),
        ({"logarithm": True}, "--log has no meaning for Auto, which has members that see growth"),
        ({"keep_constant": True}, "--keep-constant has no meaning for Auto, which takes constant streams"),
        ({"parameters": {"penalty": 1.0}}, "--parameters has no meaning for Auto, which has none to give"),
        ({"methods": ("auto", "wrls")}, "auto"),
        ({"methods": (), "auto": Auto(seasons=(7.0,))}, "are options of Auto: leave them out, or use Auto"),
        ({"methods": ("wrls",), "auto": FEW}, "are options of Auto: leave them out, or use Auto"),
        ({"auto": {"penalty": 1.0}}, "auto of a Settings is"),
    ],
    ids=str,
)
def test_settings_that_make_no_sense_together_are_refused(given, said):
    with pytest.raises(bd.InputError, match=said):
        Settings(**given)


def test_parameters_of_a_learner_are_no_auto():
    with pytest.raises(bd.InputError, match="auto of a Settings is"):
        Settings(("mt-wrls",), GIVEN["parameters"])
