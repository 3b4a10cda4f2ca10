"""Your streams, as a user meets them: real processes, files, standard input, kills."""

import gzip
import io
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import braided as bd
from braided.cli import main
from braided.cli.live import Notes
from braided.cli.options import BUILT_IN
from braided.datasets import EMBEDDED
from braided.report import Summary
from tests.cli.kills import stopped_after
from tests.cli.test_cli import braided
from tests.runs.bad_lines import mixed
from tests.runs.tables import LEARNERS, field, written
from tests.runs.tables import lines_of as panel_lines

GIVEN = ("--method", "mt-wrls", "--parameters", "penalty=10,ridge=0.1,forgetting=1", "--lags", "3")
DATA = Path(__file__).parents[3] / "shared" / "data"
KILLS = int(os.environ.get("BRAIDED_KILLS", "3"))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    written(folder / "mine.csv", missing=0.01)
    done = braided("run", "mine.csv", "--method", "mt-wrls,wrls", "--lags", "3", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def test_a_run_says_what_it_read_whether_sharing_pays_and_where_things_are(finished):
    folder, printed = finished
    for text in (
        "mine.csv: long table: time 'timestamp', stream 'site', value 'value' (guessed)",
        "Errors by stream",
        "site 4",
        "it lowers the error of",
        "The 90 % intervals contained",
        "Report: ",
        "Forecasts: ",
        "Model: ",
    ):
        assert text in printed
    out = folder / "braided-run"
    frame = pd.read_parquet(out / "forecasts.parquet")
    assert list(frame) == ["stream", "time", "horizon", "forecast", "low", "high", "actual"]
    assert (out / "index.html").read_text("utf-8").startswith("<!doctype html>")
    assert isinstance(bd.load(out / "model.braided"), bd.forecasting.LearnerEngine)


@pytest.mark.slow
def test_the_same_command_again_shows_the_same_and_another_needs_fresh(finished, tmp_path):
    folder, printed = finished
    same = ("run", "mine.csv", "--method", "mt-wrls,wrls", "--lags", "3")
    before = (folder / "braided-run" / "forecasts.parquet").read_bytes()
    again = braided(*same, cwd=folder)
    assert again.returncode == 0, again.stderr
    assert again.stdout.split("The run")[0] == printed.split("The run")[0]
    other = braided(*same[:-1], "4", cwd=folder)
    assert other.returncode == 1
    assert "holds a run with --lags 3, not 4: choose another folder (--out), or start again (--fresh)" in other.stderr
    afresh = braided(*same, "--fresh", cwd=folder)
    assert afresh.returncode == 0
    assert (folder / "braided-run" / "forecasts.parquet").read_bytes() == before


@pytest.mark.slow
def test_a_saved_model_forecasts_the_next_round(finished, tmp_path):
    folder, _ = finished
    model = folder / "braided-run" / "model.braided"
    expected = bd.load(model).ahead()
    shown = braided("forecast", model)
    assert shown.returncode == 0, shown.stderr
    assert "2012-01-02T09:20:00" in shown.stdout
    rows = [json.loads(line) for line in braided("forecast", model, "--format", "json").stdout.splitlines()]
    assert [row["forecast"] for row in rows] == expected.forecast.tolist()
    more = written(tmp_path / "more.csv", steps=500, missing=0.01)
    learned = braided("forecast", model, more, "--format", "csv", "--save", tmp_path / "later.braided")
    assert learned.returncode == 0, learned.stderr
    assert "learned 100 rounds, up to 2012-01-02 17:35" in learned.stderr
    lines = learned.stdout.splitlines()
    assert lines[0] == "stream,time,horizon,forecast,low,high"
    assert lines[1].startswith("site 1,2012-01-02T17:40:00,1,")
    assert bd.load(tmp_path / "later.braided").rounds == 500
    last = pd.read_csv(more)
    last[:-1].to_csv(tmp_path / "short.csv", index=False)  # without the last value of the last round
    short = braided("forecast", model, tmp_path / "short.csv", "--format", "csv")
    assert f"no forecast for '{last.site.iloc[-1]}': no value in the last round" in short.stderr
    assert len(short.stdout.splitlines()) == 4
    assert bd.load(model).rounds == 400


def test_a_model_can_be_looked_into(finished, tmp_path):
    folder, _ = finished
    shown = braided("inspect", folder / "braided-run" / "model.braided")
    assert shown.returncode == 0, shown.stderr
    for text in ("mine.csv", "400 rounds", "site 1", "Errors by stream", "penalty"):
        assert text in shown.stdout
    bd.save(bd.MTWRLS(bd.TaskGraph.pooled(["north", "[/b]south"]), 2), tmp_path / "plain")  # no markup
    plain = braided("inspect", tmp_path / "plain")
    assert plain.returncode == 0, plain.stderr
    assert "MTWRLS" in plain.stdout
    assert "[/b]south" in plain.stdout


@pytest.mark.slow
def test_parameters_are_tuned_once_and_used_later(tmp_path):
    table = written(tmp_path / "mine.parquet")
    tuned = braided("tune", table, "--method", "wrls", "--lags", "3", "--jobs", "1", "--out", tmp_path / "t.json")
    assert tuned.returncode == 0, tuned.stderr
    assert "132 trials on 80 rounds" in tuned.stdout
    assert (tmp_path / "t.json.trials").read_text().count("\n") == 133
    used = braided("run", table, "--parameters", tmp_path / "t.json", "--out", tmp_path / "out", "--format", "csv")
    assert used.returncode == 0, used.stderr
    assert "Each stream has its own filter." in used.stdout
    choice = json.loads((tmp_path / "t.json").read_text())
    loaded = bd.load(tmp_path / "out" / "model.braided")
    assert loaded.learner.penalty == choice["best"]["parameters"]["penalty"]
    assert (tmp_path / "out" / "forecasts.csv").read_text().startswith("stream,time,horizon,forecast,low,high,actual\n")


@pytest.mark.slow
def test_data_are_listed_written_and_run_by_name(tmp_path):
    listed = braided("data")
    assert listed.returncode == 0, listed.stderr
    assert {*EMBEDDED, "synthetic"} <= set(listed.stdout.split())
    assert BUILT_IN.replace(" or ", ", ").split(", ") == [*EMBEDDED, "synthetic"]
    assert "wind-toolkit" in listed.stdout
    out = braided("data", "export", "us-incomes", tmp_path / "incomes.csv")
    assert out.returncode == 0, out.stderr
    assert len(pd.read_csv(tmp_path / "incomes.csv")) == 48 * 81
    by_name = braided("run", "us-incomes", "--log", *GIVEN, "--out", tmp_path / "out")
    assert by_name.returncode == 0, by_name.stderr


def test_wind_toolkit_files_become_a_table(tmp_path):
    for site, latitude in (("1", 25.0), ("2", 26.0), ("3", 40.0)):
        rows = [f"2012,1,{day},{hour},0,{5 + hour + day / 10}" for day in (1, 2, 3) for hour in range(24)]
        head = f"SiteID,{site},Site Timezone,-5,Data Timezone,0,Longitude,-80.0,Latitude,{latitude}"
        text = [head, "Year,Month,Day,Hour,Minute,wind speed at 100m (m/s)", *rows]
        (tmp_path / f"{site}.csv").write_text("\n".join(text))
    files = [tmp_path / f"{site}.csv" for site in "123"]
    made = braided(
        "data",
        "wind-toolkit",
        *files,
        "--near",
        "25.7,-80.2",
        "--sites",
        "2",
        "--end",
        "2012-01-02",
        "--out",
        tmp_path / "m.csv",
    )
    assert made.returncode == 0, made.stderr
    frame = pd.read_csv(tmp_path / "m.csv", dtype={"site": str})
    assert sorted(frame.site.unique()) == ["1", "2"]
    assert len(frame) == 96
    wrong = braided("data", "wind-toolkit", files[0], "--near", "Miami")
    assert (wrong.returncode, "write latitude,longitude" in wrong.stderr) == (2, True)


# Killed, and continued ---------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_a_run_that_is_killed_goes_on_to_the_same_bytes(tmp_path, form):
    """BRAIDED_KILLS says how often; `make test` kills a few times per format."""
    written(tmp_path / "mine.csv", steps=6000, sites=6, missing=0.01)
    command = ("run", "mine.csv", *GIVEN, "--every", "300", "--format", form)
    whole = braided(*command, "--out", "whole", cwd=tmp_path)
    took = 0.5  # seconds from the first save to the last, about
    assert whole.returncode == 0, whole.stderr
    expected = (tmp_path / "whole" / f"forecasts.{form}").read_bytes()
    rng = random.Random(form)
    for kill in range(KILLS):
        out = tmp_path / f"out-{kill}"
        arguments = [sys.executable, "-m", "braided", *command, "--out", out.name]
        process = subprocess.Popen(arguments, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while not (out / "model.braided").exists() and time.monotonic() < deadline:  # the first save
            time.sleep(0.01)
        time.sleep(rng.uniform(0.0, 1.0) * took)
        process.kill()
        process.wait()
        again = braided(*command, "--out", out.name, cwd=tmp_path)
        assert again.returncode == 0, again.stderr
        assert "The run continued and took" in again.stdout or "The run was finished before" in again.stdout
        assert (out / f"forecasts.{form}").read_bytes() == expected
        assert sorted(path.name for path in out.iterdir()) == sorted(
            path.name for path in (tmp_path / "whole").iterdir()
        )


# Standard input ----------------------------------------------------------------------------------------------------


def lines_of(steps, form="json"):
    return panel_lines(field(steps=steps), form)


def piped(text, *arguments):
    command = [sys.executable, "-m", "braided", "live", *map(str, arguments)]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_lines_in_forecasts_out(tmp_path):
    lines = lines_of(70)[:240]
    lines.insert(100, "nonsense")
    done = piped("\n".join(lines), *GIVEN, "--warm-up", "30", "--save", tmp_path / "model")
    assert done.returncode == 0, done.stderr
    made = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(made) == 59 * 4
    assert set(made[-1]) == {"stream", "time", "horizon", "forecast", "low", "high"}
    assert "line 101 is not JSON" in done.stderr
    assert "As given: MT-WRLS (forgetting 1, penalty 10, ridge 0.1)." in done.stderr
    assert "ended after 241 lines, 1 bad; " in done.stderr
    assert bd.load(tmp_path / "model").rounds == 60
    more = piped("\n".join(lines_of(70)[240:]), "--model", tmp_path / "model")
    assert len(more.stdout.splitlines()) == 40
    last = [json.loads(line)["forecast"] for line in more.stdout.splitlines()[-4:]]
    whole = piped("\n".join(lines_of(70)), *GIVEN, "--warm-up", "30")
    assert last == [json.loads(line)["forecast"] for line in whole.stdout.splitlines()[-4:]]


def test_a_bad_line_may_be_fatal(tmp_path):
    lines = lines_of(40, "csv")
    lines.insert(90, "2012-01-01T01:50:00,site 2,calm")
    done = piped("\n".join(lines), *GIVEN, "--warm-up", "15", "--on-error", "stop")
    assert done.returncode == 2
    assert (
        done.stderr.splitlines()[-1] == "braided: wind at line 91 is 'calm': write a number, or NA where it is missing"
    )
    assert done.stdout.startswith("stream,time,horizon,forecast,low,high\n")


def fed(monkeypatch, capsys, lines, *arguments):
    """`braided live` in this process, which is quicker: exit code, standard output and standard error."""
    text = b"\n".join(line if isinstance(line, bytes) else line.encode() for line in lines)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    return called(monkeypatch, capsys, "live", *arguments)


def called(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["braided", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capsys.readouterr()
    return ended.value.code or 0, printed.out, printed.err


@pytest.mark.parametrize(("form", "cut"), [("json", 4 * 30 + 2), ("csv", 1 + 4 * 5 + 3)], ids=["in a round", "warm-up"])
@pytest.mark.slow
def test_a_run_that_is_killed_politely_goes_on_to_the_same_bytes(tmp_path, monkeypatch, capsys, form, cut):
    options = (*GIVEN, "--warm-up", "10", "--save")
    lines = lines_of(40, form)
    code, expected, _ = fed(monkeypatch, capsys, lines, *options, tmp_path / "whole")
    assert code == 0
    printed, said = stopped_after(lines[:cut], *options, tmp_path / "model")
    assert f"stopped after {cut + 1} lines, 1 bad" in said
    rest = [*lines[: form == "csv"], *lines[cut:]]
    code, more, said = fed(monkeypatch, capsys, rest, *options, tmp_path / "model")
    assert code == 0
    what = "30 rounds to 2012-01-01 02:25" if form == "json" else "5 rounds of the warm-up to 2012-01-01 00:20"
    assert f"continuing from {tmp_path / 'model'} (--fresh starts again): {what}" in said
    header = "stream,time,horizon,forecast,low,high\n" if form == "csv" else ""
    assert printed + more.removeprefix(header) == expected
    assert (tmp_path / "model").read_bytes() == (tmp_path / "whole").read_bytes()


@pytest.mark.parametrize("form", ["json", "csv"])
def test_500_bad_lines_change_nothing(tmp_path, monkeypatch, capsys, form):
    good = lines_of(120, form)
    lines, n_bad = mixed(form, good, seed=5)
    assert n_bad >= 500
    options = (*GIVEN, "--warm-up", "30", "--save")
    code, printed, said = fed(monkeypatch, capsys, lines, *options, tmp_path / "bad")
    assert code == 0
    assert f"ended after {len(lines):,} lines, {n_bad - 8:,} bad, 8 set aside (--max-ahead)" in said
    assert said.count("\n") < 20
    assert fed(monkeypatch, capsys, good, *options, tmp_path / "good")[:2] == (0, printed)
    assert (tmp_path / "bad").read_bytes() == (tmp_path / "good").read_bytes()


def test_a_run_of_lines_goes_on_from_the_model_that_is_there(tmp_path, monkeypatch, capsys):
    lines, model = lines_of(60), tmp_path / "model"
    options = (*GIVEN, "--warm-up", "20", "--save", model)
    assert fed(monkeypatch, capsys, lines[:160], *options)[0] == 0
    assert fed(monkeypatch, capsys, lines[160:], *options)[0] == 0
    assert bd.load(model).rounds == 60
    for other in (
        ("--lags", "4"),
        ("--log",),
        ("--as-is",),
        ("--method", "wrls"),
        ("--parameters", "penalty=1,ridge=0.1,forgetting=1"),
    ):
        code, _, said = fed(monkeypatch, capsys, lines[160:], *GIVEN[:2], *other, "--save", model)
        assert code == 2, said
    assert bd.load(model).rounds == 60
    code, _, said = fed(monkeypatch, capsys, lines[:160], *options, "--fresh")
    assert (code, bd.load(model).rounds, "continuing" in said) == (0, 40, False)
    other = tmp_path / "other"
    other.write_bytes(model.read_bytes())
    code, _, said = fed(monkeypatch, capsys, lines[160:], "--model", model, "--save", other)
    assert (code, bd.load(other).rounds) == (0, 60)
    assert f"continuing from {other} instead of --model" in said


def test_a_warm_up_is_kept_at_the_end_of_input_and_is_not_a_model(tmp_path, monkeypatch, capsys):
    lines, model = lines_of(30), tmp_path / "model"
    code, _, said = fed(monkeypatch, capsys, lines[:40], *GIVEN, "--warm-up", "20", "--save", model)
    assert (code, "no model yet: it is made after 20 rounds, 10 are complete" in said) == (0, True)
    code, _, said = called(monkeypatch, capsys, "forecast", model)
    assert (code, "holds a warm-up of 10 rounds of 4 streams, and no model yet" in said) == (1, True)
    code, printed, _ = called(monkeypatch, capsys, "inspect", model)
    assert (code, "a warm-up of 10 rounds of 4 streams" in printed) == (0, True)
    assert "makes it after 5 rounds, with --method after those of --warm-up" in " ".join(printed.split())
    assert fed(monkeypatch, capsys, lines[40:], *GIVEN, "--warm-up", "20", "--save", model)[0] == 0
    assert bd.load(model).rounds == 30


def test_a_model_that_is_saved_on_the_way_holds_the_open_round(tmp_path, monkeypatch, capsys):
    lines = lines_of(40)
    for name, rest in (("one", lines[:122]), ("two", [*lines[:122], b"nonsense"])):
        stop = ("--on-error", "stop") if name == "two" else ()
        fed(monkeypatch, capsys, rest, *GIVEN, "--warm-up", "10", "--every", "1", "--save", tmp_path / name, *stop)
    held = bd.load(tmp_path / "two").origin.live
    assert (held.is_open, held.tasks) == (True, ("site 1", "site 2"))
    assert not bd.load(tmp_path / "one").origin.live.is_open  # at the end of input it is learned


class Unread(io.BytesIO):
    def readline(self, size=-1):
        raise AssertionError("a line was read")


def test_a_model_that_can_not_be_saved_is_refused_before_a_line_is_read(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Unread()))
    (tmp_path / "folder").mkdir()
    (tmp_path / "notes.txt").write_text("mine")
    for path, message in {
        "folder": "can't write to",
        "notes.txt/model": "can't write to",
        "notes.txt": "exists already, and is not marked",
        "x/typo/model": f"no folder {tmp_path}/x/typo: make it first",
    }.items():
        code, _, said = called(monkeypatch, capsys, "live", "--save", tmp_path / path)
        assert (code, message in said, said.count("\n")) == (2 if "x/" in path else 1, True, 1)
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "notes.txt"]


def test_a_closed_standard_input_is_an_error_in_words():
    done = subprocess.run(
        f"{sys.executable} -m braided live <&-", shell=True, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr == "braided: standard input is closed: pipe lines into it, or run a file (`braided run`)\n"


def test_lines_of_which_none_can_be_used_are_an_error(tmp_path, monkeypatch, capsys):
    code, _, said = fed(monkeypatch, capsys, 30 * ["nonsense"], "--save", tmp_path / "model")
    assert (code, "none of 30 lines of standard input could be used" in said) == (2, True)
    assert not (tmp_path / "model").exists()


def test_notes_are_limited_in_rate_and_never_silent_for_good():
    said, now = [], 0.0
    notes = Notes(said.append, lambda: now)
    for minute in range(3):
        for second in range(60):
            now = 60.0 * minute + second
            notes.add(f"line {second}")
    assert len(said) == 3 * 10 + 2
    assert said[9] == "line 9; further bad lines within this minute are only counted"
    assert (said[10], said[11]) == ("50 more bad lines", "line 0")


def test_former_spellings_work_and_are_noted(tmp_path, monkeypatch, capsys):
    lines = lines_of(12, "csv")
    _, expected, _ = fed(monkeypatch, capsys, lines, "--stream", "site", *GIVEN)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\n".join(lines).encode())))
    code, printed, said = called(monkeypatch, capsys, "run", "--fresh", "-", "--task=site", *GIVEN, "--warm-up", "50")
    assert (code, printed) == (0, expected)
    assert said.splitlines()[:2] == [
        "braided: `braided run -` is now `braided live`; the former spelling works in this version only",
        "braided: --task is now --stream; the former spelling works in this version only",
    ]


def test_options_of_files_are_refused_for_lines():
    done = piped("", "--out", "somewhere")
    assert done.returncode == 2
    assert "No such option: --out" in done.stderr


def test_forecasts_are_printed_as_soon_as_a_round_is_complete():
    command = [sys.executable, "-m", "braided", "live", *GIVEN, "--warm-up", "1000"]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, text=True, **pipes) as process:
        process.stdin.write("".join(f"{line}\n" for line in lines_of(2)))
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["stream"] == "site 1"  # would wait for ever if it were not flushed
        process.communicate()
    assert process.returncode == 0


# Refusals ----------------------------------------------------------------------------------------------------------


def rows_of(steps=120):
    panel = field(steps=steps, sites=3)
    return [
        f"{moment},{site},{value:.4f}"
        for moment, values in zip(panel.times, panel.values, strict=True)
        for site, value in zip(panel.tasks, values, strict=True)
    ]


def refused(monkeypatch, capsys, folder, message, *arguments):
    """Run the command in this process, which is quicker."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["braided", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr().err
    assert ended.value.code in (1, 2)
    assert message in said
    assert said.count("\n") == 1


HEADER = "timestamp,site,value"
REFUSED = {
    "is empty: write a header": lambda rows: [],
    "has a header and no rows": lambda rows: [HEADER],
    "only one stream": lambda rows: [HEADER, *rows[::3]],
    "the tuning period has 4 rounds": lambda rows: [HEADER, *rows[:60]],
    "'site 3' never changes in the tuning period": lambda rows: [
        HEADER,
        *(row if "site 3" not in row else row.rsplit(",", 1)[0] + ",5.0" for row in rows),
    ],
    "appears twice, at lines 5 and 362": lambda rows: [HEADER, *rows, rows[3]],
    "value at line 203 of mine.csv is 'calm'": lambda rows: [
        HEADER,
        *rows[:201],
        rows[201].rsplit(",", 1)[0] + ",calm",
        *rows[202:],
    ],
    "value at line 3 of mine.csv is 'inf'": lambda rows: [
        HEADER,
        rows[0],
        rows[1].rsplit(",", 1)[0] + ",inf",
        *rows[2:],
    ],
    "timestamp at line 301 of mine.csv is '2012-01-01T08:15:00+01:00'": lambda rows: [
        HEADER,
        *rows[:299],
        "2012-01-01T08:15:00+01:00,site 9,1.0",
        *rows[299:],
    ],
    "has no time column": lambda rows: ["site,value", *(row.split(",", 1)[1] for row in rows)],
}


@pytest.mark.parametrize(("message", "change"), REFUSED.items(), ids=list(REFUSED))
def test_what_can_not_be_run_is_refused_in_a_line_and_nothing_is_left(tmp_path, monkeypatch, capsys, message, change):
    (tmp_path / "mine.csv").write_text("\n".join(change(rows_of())))
    refused(monkeypatch, capsys, tmp_path, message, "run", "mine.csv", "--method", "wrls", "--lags", "3")
    assert not (tmp_path / "braided-run" / "forecasts.parquet").exists()


def test_a_file_cut_short_is_refused(tmp_path):
    content = gzip.compress("\n".join([HEADER, *rows_of()]).encode())
    (tmp_path / "mine.csv.gz").write_bytes(content[: len(content) // 2])
    done = braided("run", "mine.csv.gz", cwd=tmp_path)
    assert done.returncode == 1
    assert "mine.csv.gz can't be read" in done.stderr
    assert "copy or download it again" in done.stderr


MISUSED = {
    "did you mean 'mt-wrls'?": ("--method", "mt-wrl"),
    "graph-ridge can't be run by itself, as it is refitted on all data": ("--method", "graph-ridge"),
    "write a name and a number": ("--method", "wrls", "--parameters", "penalty=much"),
    "mt-wrls lacks forgetting, ridge and does not know lvel: give all of its parameters": (
        "--method",
        "mt-wrls",
        "--parameters",
        "penalty=1,lvel=1",
    ),
    "--interval is 90: give a share between 0 and 1, such as 0.9": ("--interval", "90"),
    "Invalid value for '--format': 'xml' is not one of 'parquet', 'csv'": ("--format", "xml"),
    "absent.json can't be read (No such file": ("--parameters", "absent.json"),
    "holds no choice that `braided tune` made": ("--parameters", "mine.csv"),
    "mine.csv says which method and lags to use: leave out": ("--parameters", "mine.csv", "--lags", "3"),
    "--tune is 2: give a share between 0 and 1, such as 0.02": ("--tune", "2"),
    "no stream 'x' to leave out: there are 'site 1', 'site 2', 'site 3'": ("--without", "x"),
    "no column 'x'": ("--value", "x"),
    "absent.braided can't be read (No such file": ("--model", "absent.braided"),
    "No such option: --warm-up": ("--warm-up", "50"),
    "--tune has no meaning for a run from a saved model": ("--model", "m", "--tune", "0.3"),
    "is not a braided model": ("--model", "mine.csv"),
}


@pytest.mark.parametrize(("message", "options"), MISUSED.items(), ids=list(MISUSED))
def test_options_that_do_not_fit_are_refused_in_a_line(tmp_path, monkeypatch, capsys, message, options):
    (tmp_path / "mine.csv").write_text("\n".join([HEADER, *rows_of(60)]))
    refused(monkeypatch, capsys, tmp_path, message, "run", "mine.csv", *options)


def test_a_folder_that_can_not_be_written_to(tmp_path):
    (tmp_path / "mine.csv").write_text("\n".join([HEADER, *rows_of(60)]))
    (tmp_path / "taken").touch()
    done = braided("run", "mine.csv", *GIVEN, "--out", "taken", cwd=tmp_path)
    assert done.returncode == 1
    assert "can't write to taken" in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason=f"no data in {DATA}")
@pytest.mark.parametrize(
    "name", ["irish_wind_12sites_daily", "la_haute_borne_4turbines_10min", "wind_toolkit_10sites_hourly"]
)
def test_each_wind_file_runs_with_nothing_but_its_name(tmp_path, name):
    done = braided("run", DATA / f"{name}.csv.gz", "--method", LEARNERS, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Sharing helps: " in done.stdout
    model = bd.load(tmp_path / "braided-run" / "model.braided")
    assert 0.89 < model.record.covered.sum() / model.record.intervals.sum() < 0.91
    assert Summary.of(model).gains.min() > -0.5  # per cent: no stream is worse off
    assert np.isfinite(model.record.rmse).all()


def test_a_refused_table_leaves_nothing_behind(tmp_path, monkeypatch, capsys):
    (tmp_path / "mine.csv").write_text("\n".join([HEADER, *(row for row in rows_of() if "site 1" in row)]))
    for command in (("run", "--method", LEARNERS), ("tune",)):
        refused(monkeypatch, capsys, tmp_path, "only one stream", *command, "mine.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.csv"]


MISSING = {
    "run": ("run", "absent.csv"),
    "several files": ("run", "absent.csv", "other.csv"),
    "its parameters": ("run", "synthetic", "--parameters", "absent.json"),
    "its model": ("run", "synthetic", "--model", "absent.braided"),
    "tune": ("tune", "absent.csv"),
    "forecast": ("forecast", "absent.braided"),
    "inspect": ("inspect", "absent.braided"),
    "live": ("live", "--model", "absent.braided"),
    "study": ("study", "--data", "absent.csv"),
    "wind toolkit": ("data", "wind-toolkit", "absent"),
}


@pytest.mark.parametrize("arguments", MISSING.values(), ids=list(MISSING))
def test_a_missing_file_ends_every_command_alike(tmp_path, monkeypatch, capsys, arguments):
    monkeypatch.chdir(tmp_path)
    code, _, said = called(monkeypatch, capsys, *arguments)
    assert (code, "absent" in said, said.count("\n")) == (2, True, 1)


def test_columns_are_looked_for_in_data_that_come_with_the_package(tmp_path, monkeypatch, capsys):
    refused(monkeypatch, capsys, tmp_path, "synthetic has no column 'x'", "run", "synthetic", "--time", "x")
    refused(
        monkeypatch,
        capsys,
        tmp_path,
        "--value (value= in Python) names one column, 'x'",
        "tune",
        "synthetic",
        "--value",
        "x",
    )


def test_a_dash_that_is_the_value_of_an_option_is_not_standard_input(tmp_path, monkeypatch, capsys):
    (tmp_path / "mine.csv").write_text("\n".join([HEADER, *rows_of(60)]))
    refused(monkeypatch, capsys, tmp_path, "no stream '-' to leave out", "run", "mine.csv", "--without", "-")


def test_a_table_with_other_streams_than_the_model_is_refused(finished, tmp_path, monkeypatch, capsys):
    table = "\n".join([HEADER, *rows_of(60)]).replace("site ", "meter ")
    (tmp_path / "other.csv").write_text(table)
    message = "other.csv has 'meter 1', 'meter 2', 'meter 3', the model 'site 1', 'site 2', 'site 3', 'site 4'"
    model = finished[0] / "braided-run" / "model.braided"
    refused(monkeypatch, capsys, tmp_path, message, "forecast", str(model), "other.csv", "--save", "new.braided")
    assert not (tmp_path / "new.braided").exists()
