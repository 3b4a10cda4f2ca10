"""The command line as a user meets it: real processes, exit codes, one line on standard error, nothing half written."""

import shutil
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from braided.datasets import wind_field
from braided.study import METHODS

pytestmark = pytest.mark.slow  # every test starts processes

HEADER = "timestamp,site,value"
STOPPED = "braided: stopped; the same command, without --fresh, resumes from here\n"


def braided(*arguments, cwd=None):
    command = [sys.executable, "-m", "braided", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)


def table(path, steps=900, sites=3, change=lambda rows: rows):
    panel = wind_field(seed=5, steps=steps, sites=sites)
    rows = [
        f"{moment},{site},{value:.4f}"
        for moment, values in zip(panel.times, panel.values, strict=True)
        for site, value in zip(panel.tasks, values, strict=True)
    ]
    path.write_text("".join(f"{line}\n" for line in [HEADER, *change(rows)]))
    return path


def test_help_needs_no_compiler():
    code = "import sys; sys.argv = ['braided', '--help']\nfrom braided.cli import main\n"
    code += "try: main()\nexcept SystemExit: pass\n"
    code += "assert not {'numba', 'scipy', 'numpy', 'matplotlib', 'pyarrow'} & set(sys.modules), 'heavy'"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "study" in done.stdout
    assert "methods" in done.stdout


def test_methods_are_listed_with_a_line_each():
    done = braided("methods")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.strip().splitlines()
    assert [line.split()[0] for line in lines] == list(METHODS)


OPTIONS = ("--methods", "mt-wrls,wrls", "--windows", "2", "--jobs", "1")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    done = braided("study", "--data", table(folder / "mine.csv"), *OPTIONS, "--out", folder / "out")
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def test_a_study_of_a_file_of_ones_own_prints_its_tables_and_writes_a_report(finished):
    folder, printed = finished
    for title in ("Errors, Experiment I, synchronous", "Ranks, Experiment II, interleaved", "MT-WRLS", "Report:"):
        assert title in printed
    assert (folder / "out" / "index.html").is_file()
    assert (folder / "out" / "report.md").is_file()


def test_another_plan_in_the_same_folder_is_refused_unless_it_starts_afresh(finished, tmp_path):
    folder, _ = finished
    out = shutil.copytree(folder / "out", tmp_path / "out")
    again = ("study", "--data", folder / "mine.csv", *OPTIONS, "--out", out, "--seed", "1")
    refused = braided(*again)
    assert refused.returncode == 1
    assert "holds a study with seed 0, not 1: choose another folder (--out), or start again (--fresh)" in refused.stderr
    assert braided(*again, "--fresh").returncode == 0


def test_a_killed_study_goes_on_and_ends_the_same(finished, tmp_path):
    folder, printed = finished
    command = ("study", "--data", str(folder / "mine.csv"), *OPTIONS, "--out", str(tmp_path))
    process = subprocess.Popen(
        [sys.executable, "-m", "braided", *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while process.poll() is None and not list(tmp_path.glob("store/mine.csv/choices/window*.parquet")):
        time.sleep(0.01)
    process.kill()
    process.wait()
    resumed = braided(*command)
    assert resumed.stdout.split("The study took")[0] == printed.split("The study took")[0]
    for name in ("scores", "forecasts", "choices", "graphs", "series"):
        for part in (folder / "out" / "store" / "mine.csv" / name).iterdir():
            assert (tmp_path / "store" / "mine.csv" / name / part.name).read_bytes() == part.read_bytes()
    assert all((tmp_path / name).is_file() for name in ("index.html", "report.md"))


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
    ({"change": one_site}, "only one stream"),
    ({"steps": 8}, "has 8 steps"),
    ({"change": constant}, "'site 2'"),
    ({"change": doubled}, "lines 6 and 2702"),
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
    ("arguments", "message"),
    [
        (("study", "--methods", "mt-wlrs"), "unknown method 'mt-wlrs': did you mean 'mt-wrls'?"),
        (("study", "--data", "la-haute-bone"), "no data and no file 'la-haute-bone': did you mean 'la-haute-borne'?"),
        (("study", "--data", "nothing.csv"), "no data and no file 'nothing.csv'"),
        (("study", "--windows", "0"), "Invalid value for '--windows': Input should be greater than or equal to 1"),
        (("study", "--jobs", "0"), "jobs is 0"),
        (("study", "--data", "us-incomes", "--methods", "wrls-elm"), "us-incomes has too few samples for wrls-elm"),
        (("study", "--data", "us-incomes", "--data", "us-incomes"), "two data sets have the same name"),
        (("learn",), "No such command 'learn'"),
    ],
)
def test_misuse_ends_with_2_and_says_what_to_do(tmp_path, arguments, message):
    done = braided(*arguments, cwd=tmp_path)
    assert done.returncode == 2
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
    assert "choose another folder" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert (tmp_path / "out").read_text() == "a file"


@pytest.fixture
def heard():
    """Processes that are started hear Ctrl-C, also where these tests themselves run in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heard")
def test_ctrl_c_says_how_to_go_on(tmp_path):
    command = [
        sys.executable,
        "-m",
        "braided",
        "study",
        "--data",
        "la-haute-borne",
        "--jobs",
        "1",
        "--out",
        str(tmp_path),
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not list(tmp_path.glob("store/*/plan.json")):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130
    assert said == STOPPED


IN_A_TEXT = """
exec("signal.raise_signal(signal.SIGINT)")
"""
IN_A_FINALISER = """
class Doomed:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

Doomed()
"""
IN_THE_COMPILER = """
import numba

def told(frame, event, _):
    hears_of = frame.f_locals["ll_module"].name if frame.f_code.co_name == "_object_compiled_hook" else ""
    if event == "call" and "lambda" in hears_of:
        signal.raise_signal(signal.SIGINT)

sys.setprofile(told)
numba.njit(lambda x: x + 1, cache=True)(1)
sys.setprofile(None)
"""


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("where", [IN_A_TEXT, IN_A_FINALISER, IN_THE_COMPILER], ids=["text", "finaliser", "compiler"])
def test_ctrl_c_is_neither_lost_nor_breaks_a_library(tmp_path, where):
    code = f"""
import signal, sys, time
from braided import cli

@cli.app.command()
def one():
{textwrap.indent(where, "    ")}
    time.sleep(30)

sys.argv = ["braided", "one"]
cli.main()
"""
    (tmp_path / "one.py").write_text(code)
    module = [sys.executable, "-m", "one"]
    done = subprocess.run(module, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, STOPPED)


def test_debug_shows_where(tmp_path):
    done = braided("study", "--methods", "x", "--debug", cwd=tmp_path)
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "InputError: unknown method 'x'" in done.stderr


def test_without_a_command_it_says_what_there_is():
    done = braided()
    assert (done.returncode, done.stderr) == (0, "")
    assert "study" in done.stdout


def test_version():
    done = braided("--version")
    assert done.returncode == 0
    assert done.stdout.startswith("braided 0.")
