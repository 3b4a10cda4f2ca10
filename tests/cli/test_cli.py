"""The command line as a user meets it: real processes, exit codes, one line on standard error, nothing half written."""

import os
import subprocess
import sys
import time

import numpy as np
import pytest

from braided.streams import wind_field
from braided.study import METHODS

HEADER = "timestamp,site,value"


def braided(*arguments, cwd=None):
    command = [sys.executable, "-m", "braided", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)


def table(path, steps=500, sites=3, change=lambda rows: rows):
    panel = wind_field(seed=5, steps=steps, sites=sites)
    rows = [
        f"{moment},{site},{value:.4f}"
        for moment, values in zip(panel.times, panel.values, strict=True)
        for site, value in zip(panel.tasks, values, strict=True)
    ]
    path.write_text("\n".join([HEADER, *change(rows)]))
    return path


def test_help_is_quick_and_needs_no_compiler():
    code = "import sys; sys.argv = ['braided', '--help']\nfrom braided.cli import main\n"
    code += "try: main()\nexcept SystemExit: pass\n"
    code += "assert not {'numba', 'scipy', 'numpy', 'matplotlib', 'pyarrow'} & set(sys.modules), 'heavy'"
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "study" in done.stdout
    assert "methods" in done.stdout
    assert time.perf_counter() - began < 5  # a bound against accidents; `make bench` shows the time


def test_methods_are_listed_with_a_line_each():
    done = braided("methods")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.strip().splitlines()
    assert [line.split()[0] for line in lines] == list(METHODS)


def test_a_study_of_a_file_of_ones_own_prints_its_tables_and_writes_a_report(tmp_path):
    file = table(tmp_path / "mine.csv")
    options = ("--methods", "mt-wrls,wrls,no-change", "--windows", "2", "--jobs", "1", "--out", tmp_path / "out")
    done = braided("study", "--data", file, *options)
    assert done.returncode == 0, done.stderr
    for title in ("Errors, Experiment I, synchronous", "Ranks, Experiment II, interleaved", "MT-WRLS", "Report:"):
        assert title in done.stdout
    assert (tmp_path / "out" / "index.html").is_file()
    assert (tmp_path / "out" / "report.md").is_file()
    tables = done.stdout[: done.stdout.index("The study took")]
    again = braided("study", "--data", file, *options)  # nothing is run again
    assert again.stdout.startswith(tables)
    fresh = braided("study", "--data", file, *options, "--fresh")
    assert fresh.stdout.startswith(tables)
    other = braided("study", "--data", file, *options, "--seed", "1")
    assert other.returncode == 1
    assert "holds a study with seed 0, not 1: choose another --out, or --fresh" in other.stderr


def one_site(rows):
    return [row for row in rows if "site 1" in row]


def doubled(rows):
    return [*rows, rows[4]]


def with_text(rows):
    return [*rows[:6], rows[6].rsplit(",", 1)[0] + ",calm", *rows[7:]]


def constant(rows):
    return [row.rsplit(",", 1)[0] + ",3.0" if "site 2" in row else row for row in rows]


REFUSED = [
    ({"change": lambda rows: []}, "no rows"),
    ({"change": one_site}, "one task only"),
    ({"steps": 8}, "has 8 steps"),
    ({"change": constant}, "'site 2'"),
    ({"change": doubled}, "lines 6 and 1502"),
    ({"change": with_text}, "line 8"),
]


@pytest.mark.parametrize(("made", "message"), REFUSED)
def test_data_that_cannot_be_used_are_refused_in_one_line_and_nothing_is_written(tmp_path, made, message):
    file = table(tmp_path / "mine.csv", **made)
    done = braided("study", "--data", file, "--out", tmp_path / "out")
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stdout == ""
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("study", "--methods", "mt-wlrs"), 2, "unknown method 'mt-wlrs': did you mean 'mt-wrls'?"),
        (
            ("study", "--data", "la-haute-bone"),
            2,
            "no data and no file 'la-haute-bone': did you mean 'la-haute-borne'?",
        ),
        (("study", "--data", "nothing.csv"), 2, "no data and no file 'nothing.csv'"),
        (("study", "--windows", "0"), 2, "Invalid value for '--windows': Input should be greater than or equal to 1"),
        (("study", "--jobs", "0"), 2, "jobs is 0"),
        (("learn",), 2, "No such command 'learn'"),
    ],
)
def test_misuse_ends_with_2_and_says_what_to_do(tmp_path, arguments, code, message):
    done = braided(*arguments, cwd=tmp_path)
    assert done.returncode == code
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_an_empty_file_is_refused(tmp_path):
    (tmp_path / "mine.csv").write_text("")
    done = braided("study", "--data", tmp_path / "mine.csv")
    assert done.returncode == 2
    assert "is empty" in done.stderr


def test_a_folder_that_cannot_be_written_is_told_before_anything_runs(tmp_path):
    (tmp_path / "out").write_text("a file")
    done = braided("study", "--quick", "--out", tmp_path / "out")
    assert done.returncode == 1
    assert "choose another --out" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert (tmp_path / "out").read_text() == "a file"


def test_debug_shows_where(tmp_path):
    done = braided("study", "--methods", "x", "--debug", cwd=tmp_path)
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "InputError: unknown method 'x'" in done.stderr


def test_version():
    done = braided("--version")
    assert done.returncode == 0
    assert done.stdout.startswith("braided 0.")


def test_a_killed_study_goes_on(tmp_path):
    file = table(tmp_path / "mine.csv", steps=450)
    options = ("--methods", "mt-wrls,wrls,mogd", "--windows", "3", "--jobs", "1")
    whole = braided("study", "--data", file, *options, "--out", tmp_path / "whole")
    assert whole.returncode == 0, whole.stderr
    out = tmp_path / "killed"
    command = [sys.executable, "-m", "braided", "study", "--data", str(file), *options, "--out", str(out)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and not list(out.glob("store/mine.csv/choices/*.parquet")):
        time.sleep(0.01)
    process.kill()
    process.wait()
    resumed = braided("study", "--data", file, *options, "--out", out)
    assert resumed.stdout.split("The study took")[0] == whole.stdout.split("The study took")[0]
    for name in ("scores", "forecasts", "choices", "graphs", "series"):
        for part in (tmp_path / "whole" / "store" / "mine.csv" / name).iterdir():
            assert (out / "store" / "mine.csv" / name / part.name).read_bytes() == part.read_bytes()
    assert np.all([os.access(out / name, os.R_OK) for name in ("index.html", "report.md")])
