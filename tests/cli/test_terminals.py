"""What is printed works on any terminal, and no name of a stream can steer it."""

import csv
import io
import json
import os
import subprocess
import sys

import pandas as pd
import pytest

from braided.cli.encoding import ERROR_HANDLER, replace_what_terminals_lack
from tests.cli.test_streams import GIVEN
from tests.runs.tables import field

pytestmark = pytest.mark.slow  # every test starts processes

NAMES = ("a\x1b[31mred\x07", "two\nlines", "Zürich “×”", "[b]\u202eleft\tright")
SHOWN = (r"a\x1b[31mred\x07", r"two\nlines", r'Z\xfcrich "x"', r"[b]\u202eleft\tright")
ASCII = {"PYTHONIOENCODING": "ascii"}
C_LOCALE = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}


def braided(*arguments, cwd=None, **environment):
    command = [sys.executable, "-m", "braided", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, cwd=cwd, check=False, env=os.environ | environment)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of streams with names that nobody would wish for, on a terminal that knows ASCII only."""
    folder, panel = tmp_path_factory.mktemp("terminals"), field(steps=200)
    with (folder / "mine.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["time", "site", "value"])
        for moment, values in zip(panel.times, panel.values, strict=True):
            rows.writerows((moment, name, f"{value:.4f}") for name, value in zip(NAMES, values, strict=True))
    done = braided("run", "mine.csv", *GIVEN, "--format", "csv", cwd=folder, **ASCII)
    assert done.returncode == 0, done.stderr
    return folder, done


def test_a_run_prints_plain_characters_for_typographic_ones_and_escapes_for_others(finished):
    _, done = finished
    printed = done.stdout.decode("ascii")
    assert 'the forecast "no change"' in printed
    assert "\n* " in printed
    assert "+----" in printed
    for shown in SHOWN:
        assert shown in printed


def test_names_are_escaped_for_people_and_kept_in_files_for_machines(finished):
    folder, done = finished
    out = folder / "braided-run"
    assert not set(done.stdout) & set(range(32)) - set(b"\n")
    pages = [(out / name).read_text("utf-8") for name in ("index.html", "report.md")]
    pages += [figure.read_text("utf-8") for figure in (out / "figures").glob("*.svg")]
    for page in pages:
        assert not {"\x1b", "\x07", "\u202e", "\t"} & set(page)
    assert r"a\x1b[31mred\x07" in pages[0]
    assert r"a\\x1b\[31mred\\x07" in pages[1]
    assert set(pd.read_csv(out / "forecasts.csv").stream) == set(NAMES)


def test_json_lines_stay_json_with_the_true_names(finished):
    folder, _ = finished
    done = braided("forecast", "braided-run/model.braided", "--format", "json", cwd=folder, **C_LOCALE)
    assert (done.returncode, done.stderr) == (0, b"")
    assert {json.loads(line)["stream"] for line in done.stdout.decode("ascii").splitlines()} == set(NAMES)


def test_csv_quotes_a_name_with_a_line_break(finished):
    folder, _ = finished
    done = braided("forecast", "braided-run/model.braided", "--format", "csv", cwd=folder, PYTHONIOENCODING="utf-8")
    assert set(pd.read_csv(io.BytesIO(done.stdout)).stream) == set(NAMES)


def test_what_a_model_is_can_be_told_in_the_c_locale(finished):
    folder, _ = finished
    done = braided("inspect", "braided-run/model.braided", cwd=folder, **C_LOCALE)
    assert (done.returncode, done.stderr) == (0, b"")
    for shown in SHOWN:
        assert shown in done.stdout.decode("ascii")


def test_an_error_names_a_file_in_escapes():
    done = braided("run", "caf\u00e9\x1b[31m.csv", **ASCII)
    assert done.returncode == 2
    assert rb"caf\xe9\x1b[31m.csv" in done.stderr


@pytest.mark.parametrize(
    ("encoding", "written"),
    [
        ("ascii", rb'"no change" -1.5 x 3 ... lambda \xe9 \u6771 \U0001f300'),
        ("latin-1", '"no change" -1.5 × 3 ... lambda é \\u6771 \\U0001f300'.encode("latin-1")),
        ("utf-8", "“no change” −1.5 × 3 … λ é 東 🌀".encode()),
    ],
)
def test_each_terminal_gets_what_it_can_show(encoding, written, monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding))
    replace_what_terminals_lack()
    print("“no change” −1.5 × 3 … λ é 東 🌀", end="", flush=True)
    assert raw.getvalue() == written


def test_several_characters_in_a_row_are_replaced_once_each():
    replace_what_terminals_lack()
    assert "a→→b…é".encode("ascii", ERROR_HANDLER) == rb"a->->b...\xe9"
