"""Auto from the command line: its options, what they refuse, and lines."""

import io
import json
import sys

import numpy as np
import pandas as pd
import pytest

import braided as bd
from braided.cli import main
from braided.forecasting.auto import Auto, AutoEngine
from braided.runs.output import tail
from tests.auto import FEW, walks
from tests.cli.kills import stopped_after
from tests.runs.tables import field, lines_of, written


def called(monkeypatch, capsys, *arguments, lines=None):
    """A command in this process, which is quicker: exit code, standard output and standard error."""
    if lines is not None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\n".join(lines).encode())))
    monkeypatch.setattr(sys, "argv", ["braided", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capsys.readouterr()
    return ended.value.code or 0, printed.out, printed.err


@pytest.fixture
def table(tmp_path, monkeypatch):
    times, values, tasks = walks(60)
    pd.DataFrame(values, pd.Index(times, name="time"), tasks).to_csv(tmp_path / "mine.csv")
    monkeypatch.chdir(tmp_path)
    return values


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), {}),
        (("--season", "7,365.25"), {"seasons": (7.0, 365.25)}),
        (("--season", "365.25,7"), {"seasons": (7.0, 365.25)}),
        (("--season", "none"), {"seasons": ()}),
        (("--timezone", "Australia/Melbourne"), {"timezone": "Australia/Melbourne"}),
        (("--holidays", "AU-VIC"), {"holidays": "AU-VIC"}),
        (("--min", "0"), {"low": 0.0}),
        (("--min", "-2.5", "--max", "7"), {"low": -2.5, "high": 7.0}),
        (("--compare",), {"compares": True}),
        (("--horizon", "3"), {"horizon": 3}),
        (("--quantiles", "0.1,0.9"), {"quantiles": (0.1, 0.9)}),
        (("--as-is",), {"robust": False}),
        (("--method", "auto"), {}),
    ],
    ids=str,
)
def test_options_reach_auto(table, monkeypatch, capsys, options, expected):
    code, printed, said = called(monkeypatch, capsys, "run", "mine.csv", *options, "--format", "csv")
    assert code == 0, said
    model = bd.load("braided-run/model.braided")
    for name, value in expected.items():
        assert getattr(model.auto, name) == value
    frame = pd.read_csv("braided-run/forecasts.csv")
    assert len(frame) == sum(60 - h for h in range(1, model.horizon + 1)) * 3
    numbers = frame[["forecast", "low", "high"]].to_numpy()
    assert np.nanmin(numbers) >= expected.get("low", -np.inf)
    assert np.nanmax(numbers) <= expected.get("high", np.inf)
    assert model.record.has("without sharing") == ("--compare" in options)
    assert "Auto: " in printed
    shown = called(monkeypatch, capsys, "inspect", "braided-run/model.braided")
    assert shown[0] == 0, shown[2]
    code, ahead, said = called(monkeypatch, capsys, "forecast", "braided-run/model.braided", "--format", "json")
    assert code == 0, said
    assert [json.loads(line)["forecast"] for line in ahead.splitlines()] == model.ahead().forecast.tolist()


REFUSED = {
    "--season 'weekly': write numbers of rounds, such as 7,365.25, or none": ("--season", "weekly"),
    "a season (--season) has 1 rounds: give a length between 2 and 10,000": ("--season", "1"),
    "give at most 4, each once": ("--season", "7,7"),
    "no timezone 'Melborne': did you mean 'Australia/Melbourne'?": ("--timezone", "Melborne"),
    "no holidays for 'AU-VCI': did you mean 'AU-VIC'?": ("--holidays", "AU-VCI"),
    "--min is 5 and --max is 1: give a --min that is below --max": ("--min", "5", "--max", "1"),
    "--min is nan: it must be finite": ("--min", "nan"),
    "--tune has no meaning for Auto": ("--tune", "0.3"),
    "--lags has no meaning for Auto": ("--lags", "3"),
    "--log has no meaning for Auto": ("--log",),
    "--keep-constant has no meaning for Auto": ("--keep-constant",),
    "--parameters has no meaning for Auto": ("--parameters", "penalty=10"),
    "auto needs no tuning": ("--method", "auto,wrls"),
    "--season has no meaning with --method, as it is for Auto": ("--method", "wrls", "--season", "7"),
    "--min has no meaning with --method, as it is for Auto": ("--method", "wrls", "--min", "0"),
    "--quantiles is 90: give a share between 0 and 1, such as 0.9": ("--quantiles", "0.1,90"),
    "--quantiles 'median': write levels between 0 and 1, such as 0.1,0.5,0.9": ("--quantiles", "median"),
    "quantiles are (0.9, 0.1): give each once, in rising order": ("--quantiles", "0.9,0.1"),
    "quantiles are (0.5, 0.5): give each once, in rising order": ("--quantiles", "0.5,0.5"),
    "--quantiles has no meaning with --method, as it is for Auto": ("--method", "wrls", "--quantiles", "0.5"),
    "--horizon has no meaning with --method, as it is for Auto": ("--method", "wrls", "--horizon", "3"),
}
NEVER_FOR_LINES = ("--tune", "--keep-constant")


@pytest.mark.parametrize("command", ["run", "live"])
@pytest.mark.parametrize("horizon", ["0", "-1", "1001", "1.5", "many"])
def test_a_horizon_that_can_not_be_is_refused(table, tmp_path, monkeypatch, capsys, command, horizon):
    files = ["mine.csv"] if command == "run" else []
    code, printed, said = called(monkeypatch, capsys, command, *files, "--horizon", horizon, lines=[])
    assert (code, printed) == (2, "")
    assert "horizon" in said
    assert [path.name for path in tmp_path.iterdir()] == ["mine.csv"]


def test_forecasts_of_several_rounds_are_written_printed_and_scored(table, monkeypatch, capsys):
    code, printed, said = called(monkeypatch, capsys, "run", "mine.csv", "--horizon", "3", "--format", "csv")
    assert code == 0, said
    assert "Errors by horizon" in printed
    engine = AutoEngine(Auto(horizon=3))
    made = engine.advance(*walks(60))
    frame = pd.read_csv("braided-run/forecasts.csv", parse_dates=["time"])
    assert list(frame) == ["stream", "time", "horizon", "forecast", "low", "high", "actual"]
    for name, column in made.columns().items():
        np.testing.assert_array_equal(frame[name].to_numpy(), column, name)
    model = "braided-run/model.braided"
    code, printed, said = called(monkeypatch, capsys, "forecast", model, "--format", "csv")
    assert code == 0, said
    head, *rows = (line.split(",") for line in printed.splitlines())
    assert head == ["stream", "time", "horizon", "forecast", "low", "high"]
    ahead = engine.ahead()
    assert [row[0] for row in rows] == ahead.tasks
    assert [int(row[2]) for row in rows] == ahead.horizons.tolist() == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert [float(row[3]) for row in rows] == ahead.forecast.tolist()
    code, printed, _ = called(monkeypatch, capsys, "forecast", model)
    assert (code, len(printed.splitlines())) == (0, 10)
    code, printed, _ = called(monkeypatch, capsys, "inspect", model)
    assert (code, "Errors by horizon" in printed) == (0, True)


def test_quantiles_are_written_printed_and_scored(table, tmp_path, monkeypatch, capsys):
    command = ("run", "mine.csv", "--horizon", "2", "--format", "csv")
    code, printed, said = called(monkeypatch, capsys, *command, "--quantiles", "0.1,0.5,0.9")
    assert code == 0, said
    assert "Quantiles" in printed
    engine = AutoEngine(Auto(horizon=2, quantiles=(0.1, 0.5, 0.9)))
    made = engine.advance(*walks(60))
    frame = pd.read_csv("braided-run/forecasts.csv", parse_dates=["time"])
    columns = ["stream", "time", "horizon", "forecast", "low", "high", "q0.1", "q0.5", "q0.9"]
    assert list(frame) == list(made.columns()) == [*columns, "actual"]
    for name, column in made.columns().items():
        np.testing.assert_array_equal(frame[name].to_numpy(), column, name)
    last = tail(tmp_path / "braided-run" / "forecasts.csv", 20)
    np.testing.assert_array_equal(last["actual"], made.actual[-20:])
    model = "braided-run/model.braided"
    code, printed, _ = called(monkeypatch, capsys, "forecast", model, "--format", "csv")
    head, *rows = (line.split(",") for line in printed.splitlines())
    assert (code, head) == (0, columns)
    np.testing.assert_array_equal([[float(cell) for cell in row[6:]] for row in rows], engine.ahead().quantiles)
    code, printed, _ = called(monkeypatch, capsys, "inspect", model)
    assert (code, "Quantiles" in printed) == (0, True)
    assert "Quantiles" in (tmp_path / "braided-run" / "index.html").read_text("utf-8")
    code, printed, said = called(monkeypatch, capsys, *command, "--fresh")  # over a file with other columns
    assert code == 0, said
    assert "Quantiles" not in printed
    assert list(pd.read_csv("braided-run/forecasts.csv")) == [*columns[:6], "actual"]


@pytest.mark.parametrize("form", ["json", "csv"])
def test_lines_get_quantiles_from_the_first_round_on(tmp_path, monkeypatch, capsys, form):
    lines, has_head = lines_of(field(steps=30), form), form == "csv"
    options = ("live", "--quantiles", "0.05,0.9", "--save", tmp_path / "model")
    code, printed, said = called(monkeypatch, capsys, *options, lines=lines)
    assert code == 0, said
    made = printed.splitlines()
    if has_head:
        assert made[0] == "stream,time,horizon,forecast,low,high,q0.05,q0.9"
        rows = [line.split(",")[6:] for line in made[1:]]
        assert {len(row) for row in rows} == {2}
        assert rows[0] == ["", ""]
    else:
        rows = [[json.loads(line)[name] for name in ("q0.05", "q0.9")] for line in made]
        assert rows[0] == [None, None]
    last = np.array(rows[-4:], float)
    np.testing.assert_array_equal(last, bd.load(tmp_path / "model").ahead().quantiles)


@pytest.mark.parametrize("form", ["json", "csv"])
def test_lines_are_forecast_several_rounds_ahead(tmp_path, monkeypatch, capsys, form):
    lines, has_head = lines_of(field(steps=30), form), form == "csv"
    head, rest = lines[:has_head], lines[has_head:]
    options = ("live", "--horizon", "2", "--save")
    code, printed, said = called(monkeypatch, capsys, *options, tmp_path / "whole", lines=lines)
    assert code == 0, said
    made = printed.splitlines()
    if has_head:
        assert made[0] == "stream,time,horizon,forecast,low,high"
    horizons = [int(line.split(",")[2]) if has_head else json.loads(line)["horizon"] for line in made[has_head:]]
    assert horizons[-8:] == [1] * 4 + [2] * 4
    assert {*horizons} == {1, 2}
    assert bd.load(tmp_path / "whole").horizon == 2
    first = called(monkeypatch, capsys, *options, tmp_path / "cut", lines=[*head, *rest[:48]])
    again = called(monkeypatch, capsys, "live", "--save", tmp_path / "cut", lines=[*head, *rest[48:]])
    assert (first[0], again[0]) == (0, 0), again[2]
    assert [*first[1].splitlines(), *again[1].splitlines()[has_head:]] == made
    assert (tmp_path / "cut").read_bytes() == (tmp_path / "whole").read_bytes()


@pytest.mark.parametrize(("message", "options"), REFUSED.items(), ids=list(REFUSED))
@pytest.mark.parametrize("command", ["run", "live"])
def test_options_that_make_no_sense_are_refused_in_a_line_and_nothing_is_left(
    table, tmp_path, monkeypatch, capsys, command, message, options
):
    if command == "live" and options[0] in NEVER_FOR_LINES:
        pytest.skip("no option of lines")
    files = ["mine.csv"] if command == "run" else []
    code, printed, said = called(monkeypatch, capsys, command, *files, *options, lines=[])
    assert (code, printed) == (2, "")
    assert message in said
    assert said.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["mine.csv"]


@pytest.mark.parametrize(
    "option",
    [
        ("--season", "7"),
        ("--timezone", "UTC"),
        ("--holidays", "AU"),
        ("--min", "0"),
        ("--compare",),
        ("--horizon", "2"),
        ("--quantiles", "0.5"),
    ],
)
def test_a_saved_model_keeps_what_it_was_told(table, monkeypatch, capsys, option):
    assert called(monkeypatch, capsys, "run", "mine.csv")[0] == 0
    model = "braided-run/model.braided"
    code, _, said = called(monkeypatch, capsys, "run", "mine.csv", "--model", model, "--out", "other", *option)
    assert (code, f"{option[0]} has no meaning for a run from a saved model: leave it out" in said) == (2, True)


LIVE_OPTIONS = {
    "with --min 0, not 25": ("--min", "25"),
    "with --interval 0.9, not 0.5": ("--interval", "0.5"),
    "without --without, not with --without site 1": ("--without", "site 1"),
    "with --method auto, not wrls": ("--method", "wrls"),
    "without --season, not with --season none": ("--season", "none"),
    "without --timezone, not with --timezone UTC": ("--timezone", "UTC"),
    "without --compare, not with --compare": ("--compare",),
    "without --quantiles, not with --quantiles 0.5": ("--quantiles", "0.5"),
}


def test_lines_go_on_with_the_options_that_the_model_was_made_with(tmp_path, monkeypatch, capsys):
    lines, path = lines_of(field(steps=12)), tmp_path / "model"
    same = ("live", "--save", path, "--min", "0", "--interval", "0.9")
    assert called(monkeypatch, capsys, *same, lines=lines[:24])[0] == 0
    before = path.read_bytes()
    for message, options in LIVE_OPTIONS.items():
        code, printed, said = called(monkeypatch, capsys, "live", "--save", path, *options, lines=lines[24:])
        assert (code, printed, f"was made {message}: leave it out" in said) == (2, "", True), said
        assert path.read_bytes() == before
    assert called(monkeypatch, capsys, *same, lines=lines[24:36])[0] == 0
    assert called(monkeypatch, capsys, *same[:3], lines=lines[36:])[0] == 0
    assert (bd.load(path).rounds, bd.load(path).auto.low) == (12, 0.0)


def test_a_run_with_other_options_is_told_in_options_as_typed(table, monkeypatch, capsys):
    assert called(monkeypatch, capsys, "run", "mine.csv", "--min", "0")[0] == 0
    for options, message in {
        ("--min", "25"): "a run with --min 0, not 25: choose another folder",
        (): "a run with --min 0, not without it",
        ("--min", "0", "--season", "none"): "a run without --season, not with --season none",
    }.items():
        code, _, said = called(monkeypatch, capsys, "run", "mine.csv", *options)
        assert (code, message in said) == (1, True), said


def test_the_warm_up_is_no_option_of_auto(monkeypatch, capsys):
    code, _, said = called(monkeypatch, capsys, "live", "--warm-up", "50", lines=[])
    assert (code, "--warm-up has no meaning for Auto, which tunes nothing: leave it out" in said) == (2, True)


def test_a_tuned_method_is_still_tuned(tmp_path, monkeypatch, capsys):
    written(tmp_path / "mine.csv", steps=120)
    monkeypatch.chdir(tmp_path)
    code, printed, said = called(
        monkeypatch, capsys, "run", "mine.csv", "--method", "wrls", "--lags", "2", "--jobs", "1"
    )
    assert code == 0, said
    assert "Chosen from" in printed
    code, printed, said = called(monkeypatch, capsys, "tune", "mine.csv", "--lags", "2", "--jobs", "1")
    assert code == 0, said
    assert json.loads((tmp_path / "tuned.json").read_text())["best"]["method"] in (
        "mt-wrls",
        "mt-wrls-neighbours",
        "wrls",
        "wrls-neighbours",
    )


def test_lines_are_forecast_from_the_second_round_on(tmp_path, monkeypatch, capsys):
    lines = lines_of(field(steps=40))
    options = ("live", "--min", "0", "--holidays", "PT", "--save", tmp_path / "whole")
    code, printed, said = called(monkeypatch, capsys, *options, lines=lines)
    assert code == 0, said
    made = [json.loads(line) for line in printed.splitlines()]
    assert len(made) == 39 * 4
    assert made[0]["time"] == "2012-01-01T00:10:00"
    assert min(one["forecast"] for one in made) >= 0.0
    assert made[-1]["low"] is not None
    model = bd.load(tmp_path / "whole")
    assert isinstance(model, AutoEngine)
    assert (model.auto.low, model.auto.holidays, model.rounds) == (0.0, "PT", 40)


@pytest.mark.slow
@pytest.mark.parametrize("cut", [2, 4 * 3 + 1, 4 * 25 + 2], ids=["first round", "first rounds", "later"])
def test_a_run_of_lines_that_is_killed_goes_on_to_the_same_bytes(tmp_path, monkeypatch, capsys, cut):
    lines = lines_of(field(steps=40))
    code, expected, _ = called(monkeypatch, capsys, "live", "--save", tmp_path / "whole", lines=lines)
    assert code == 0
    printed, _ = stopped_after(lines[:cut], "--save", tmp_path / "model")
    code, more, said = called(monkeypatch, capsys, "live", "--save", tmp_path / "model", lines=lines[cut:])
    assert code == 0, said
    assert "continuing from" in said
    assert printed + more == expected
    assert (tmp_path / "model").read_bytes() == (tmp_path / "whole").read_bytes()


def test_forecast_says_of_which_streams_too_little_is_known(tmp_path, monkeypatch, capsys):
    times, values, tasks = walks(30)
    values[:, 2] = np.nan
    for rounds, missing in ((1, "'s0', 's1', 's2'"), (30, "'s2'")):
        engine = AutoEngine(FEW)
        engine.advance(times[:rounds], values[:rounds], tasks)
        bd.save(engine, tmp_path / "model")
        code, printed, said = called(monkeypatch, capsys, "forecast", tmp_path / "model", "--format", "csv")
        assert (code, said) == (0, f"no forecast for {missing}: too few values so far\n")
        assert printed.count("\n") == 1 + len(engine.ahead().tasks)


@pytest.mark.parametrize("command", ["run", "live", "tune"])
def test_help_says_which_options_are_for_methods(monkeypatch, capsys, command):
    monkeypatch.setenv("COLUMNS", "300")
    _, printed, _ = called(monkeypatch, capsys, command, "--help")
    assert ("With --method: past changes" in printed, "Past changes" in printed) == (
        command != "tune",
        command == "tune",
    )


def test_methods_list_auto(monkeypatch, capsys):
    code, printed, _ = called(monkeypatch, capsys, "methods")
    assert (code, "auto" in printed) == (0, True)
