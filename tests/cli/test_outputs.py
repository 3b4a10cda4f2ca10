"""What commands write: never over what they read, nor over a file that braided did not make; one process at a time."""

import os
import shutil
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import braided as bd
from braided.cli import main
from braided.errors import FileWarning
from braided.files import sole_writer
from braided.forecasting import Forecasts
from braided.runs import Settings, run
from braided.runs.output import ForecastFile
from braided.tables import open_rounds, read_table
from tests.cli.test_streams import GIVEN
from tests.runs.tables import written


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a table, and a run of it in `o`."""
    folder = tmp_path_factory.mktemp("made")
    table = written(folder / "t.csv", steps=60)
    settings = Settings(("mt-wrls",), parameters={"penalty": 10.0, "ridge": 0.1, "forgetting": 1.0}, lags=3)
    run(open_rounds(table), settings, folder / "o" / "forecasts.csv", folder / "o" / "model.braided")
    return folder


@pytest.fixture
def folder(made, tmp_path, monkeypatch):
    """A copy to work in, with links to the table under other names."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    (tmp_path / "link.csv").symlink_to("t.csv")
    os.link(tmp_path / "t.csv", tmp_path / "hard.csv")
    (tmp_path / "store").mkdir()  # where a study keeps its results
    shutil.copy(tmp_path / "t.csv", tmp_path / "store")
    (tmp_path / "notes.json").write_text('{"my": "notes"}')
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "page").mkdir()
    (tmp_path / "page" / "index.html").write_text("<p>mine</p>")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "forecasts.parquet").write_bytes(b"PAR1 mine PAR1")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said_by(monkeypatch, capsys, *arguments):
    """What a command says when it is refused."""
    monkeypatch.setattr(sys, "argv", ["braided", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code in (1, 2)
    return capsys.readouterr().err


def content_of(folder):
    """Every file that is no lock, and what it holds."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and not path.name.startswith("."))
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


RUN = ("run", "t.csv", *GIVEN)
INPUTS = {
    "model": (*RUN, "--save", "t.csv", "--fresh"),
    "another spelling": (*RUN, "--save", "o/../t.csv", "--fresh"),
    "a symbolic link": (*RUN, "--save", "link.csv", "--fresh"),
    "a link read": ("run", "link.csv", *GIVEN, "--save", "t.csv", "--fresh"),
    "a hard link": (*RUN, "--save", "hard.csv", "--fresh"),
    "forecasts": ("run", "o/forecasts.csv", *GIVEN, "--value", "actual", "--out", "o", "--format", "csv", "--fresh"),
    "the model it starts from": ("run", "t.csv", "--model", "o/model.braided", "--save", "o/model.braided"),
    "a choice": ("tune", "t.csv", "--out", "t.csv"),
    "newer rows": ("forecast", "o/model.braided", "o/forecasts.csv", "--save", "o/forecasts.csv"),
    "a study": ("study", "--data", "store/t.csv", "--out", ".", "--fresh"),
}


@pytest.mark.parametrize("arguments", INPUTS.values(), ids=list(INPUTS))
def test_no_command_writes_over_what_it_reads(folder, monkeypatch, capsys, arguments):
    before = content_of(folder)
    said = said_by(monkeypatch, capsys, *arguments)
    assert "is an input of this command" in said
    assert "choose another" in said
    assert content_of(folder) == before


FOREIGN = {
    "a model": (*RUN, "--save", "notes.json", "--fresh"),
    "forecasts": (*RUN, "--out", "mine", "--fresh"),
    "a page": (*RUN, "--out", "page"),
    "a choice": ("tune", "t.csv", "--method", "wrls", "--out", "notes.json"),
    "a model with newer rows": ("forecast", "o/model.braided", "--save", "notes.json"),
    "a model over a plan": ("forecast", "o/model.braided", "--save", "o/model.braided.json"),
    "a choice over a plan": ("tune", "t.csv", "--method", "wrls", "--out", "o/model.braided.json"),
    "a choice over forecasts": ("tune", "t.csv", "--method", "wrls", "--out", "o/forecasts.csv"),
    "a folder": ("data", "export", "us-incomes", "folder.csv"),
    "data": ("data", "export", "us-incomes", "t.csv"),
    "lines": ("live", "--save", "notes.json"),
}


@pytest.mark.parametrize("arguments", FOREIGN.values(), ids=list(FOREIGN))
def test_no_command_writes_over_a_file_that_braided_did_not_make(folder, monkeypatch, capsys, arguments):
    before = content_of(folder)
    said = said_by(monkeypatch, capsys, *arguments)
    assert "exists already" in said or "not a regular file" in said
    after = content_of(folder)
    assert {name: after.get(name) for name in before} == before


def test_two_outputs_are_two_files(folder, monkeypatch, capsys):
    said = said_by(monkeypatch, capsys, *RUN, "--out", "new", "--save", "new/forecasts.parquet")
    assert "are the same file: give each output a path of its own" in said
    said = said_by(monkeypatch, capsys, *RUN, "--out", "new", "--save", "new/index.html")
    assert "are the same file" in said
    assert not (folder / "new").exists()  # what is refused leaves nothing behind


def test_the_file_of_parameters_is_an_input(folder, monkeypatch, capsys):
    Path("tuned.json").write_text('{"best": 1}')
    said = said_by(monkeypatch, capsys, "run", "t.csv", "--parameters", "tuned.json", "--save", "tuned", "--out", "new")
    assert "is an input of this command" in said or "holds no choice" in said
    with pytest.raises(bd.InputError, match=r"tuned\.json is an input"):
        bd.runs.claim(Path("new/f.csv"), Path("tuned"), [Path("tuned.json")])


def test_parts_and_process_ids_of_somebody_else_stay(folder):
    parts = folder / "new" / ".forecasts.csv.parts"
    (folder / "data").mkdir()
    (folder / "data" / "000001.csv").write_text("mine")
    parts.parent.mkdir()
    parts.symlink_to(folder / "data")
    with pytest.raises(bd.FileError, match="braided did not make it: move it away"):
        ForecastFile(folder / "new" / "forecasts.csv")
    parts.unlink()
    shutil.copytree(folder / "data", parts)
    with pytest.raises(bd.FileError, match="braided did not make it: move it away"):
        ForecastFile(folder / "new" / "forecasts.csv")
    assert (folder / "data" / "000001.csv").read_text() == (parts / "000001.csv").read_text() == "mine"
    (folder / "new" / ".lock.pid").symlink_to(folder / "notes.json")
    with pytest.raises(bd.FileError, match="move it away"), sole_writer(folder=folder / "new"):
        pass
    (folder / "new" / ".lock.pid").unlink()
    (folder / "new" / ".lock.pid").write_text("mine")
    with pytest.raises(bd.FileError, match="holds no process id"), sole_writer(folder=folder / "new"):
        pass
    assert (folder / "notes.json").read_text() == '{"my": "notes"}'
    assert (folder / "new" / ".lock.pid").read_text() == "mine"


def test_a_file_that_comes_during_the_run_stays(folder):
    panel = read_table("t.csv")
    file = ForecastFile(folder / "new" / "forecasts.csv")
    nothing = np.zeros(2)
    file.add(
        Forecasts(panel.times[:2], np.array([0, 1]), np.ones(2, int), panel.tasks, *[nothing] * 4, np.empty((2, 0)), ())
    )
    (folder / "new" / "forecasts.csv").write_text("mine")
    with pytest.raises(bd.FileError, match="not marked as a file that this command made"):
        file.finish()
    assert (folder / "new" / "forecasts.csv").read_text() == "mine"


def test_more_parts_than_there_are_files_are_refused_at_once(tmp_path):
    with pytest.raises(bd.FileError, match="is missing, so the run can't be resumed"):
        ForecastFile(tmp_path / "forecasts.csv", parts=10**12)


def test_a_study_that_starts_again_deletes_its_own_files_only(folder):
    store = bd.study.Store(folder / "store")
    store.open({"data": "t"})
    (folder / "store" / "scores").mkdir(parents=True)
    (folder / "store" / "notes.txt").write_text("mine")
    store.clear()
    assert not (folder / "store" / "plan.json").exists()
    assert (folder / "store" / "notes.txt").read_text() == "mine"
    (folder / "store" / "scores" / "1.parquet").write_bytes(b"mine")
    with pytest.raises(bd.FileError, match="not marked as a file that this command made"):
        store.clear()


def test_a_model_is_saved_over_a_model_or_an_empty_file_only(folder):
    model = bd.load("o/model.braided")
    bd.save(model, "o/model.braided")
    Path("empty").touch()
    bd.save(model, "empty")
    with pytest.raises(bd.FileError, match=r"notes.json exists already, and is not marked"):
        bd.save(model, "notes.json")
    os.mkfifo("pipe")  # which would wait for ever to be read
    for path in ("pipe", "o"):
        with pytest.raises(bd.FileError, match=r"can't write to (pipe|o) \(not a regular file\)"):
            bd.save(model, path)


# One writer --------------------------------------------------------------------------------------------------------


HOLD = """
import sys
from pathlib import Path
from braided.files import sole_writer
from braided.forecasting import Forecasts
with sole_writer(folder=Path("o"), file=Path("o/model.braided")):
    print("held", flush=True)
    sys.stdin.read()
"""
LOCKED = (
    (*RUN, "--out", "o"),
    (*RUN, "--out", "o", "--fresh"),
    ("forecast", "o/model.braided", "--save", "o/model.braided"),
    ("live", "--model", "o/model.braided", "--save", "o/model.braided"),
    ("study", "--data", "t.csv", "--out", "o", "--quick"),
)


@pytest.fixture
def holder(folder):
    """Another process that writes to the folder and the model."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.stdin.close()


def test_a_second_process_is_refused_with_the_id_of_the_first(folder, holder, monkeypatch, capsys):
    before = content_of(folder)
    for arguments in LOCKED:
        said = said_by(monkeypatch, capsys, *arguments)
        assert f"is in use by process {holder.pid}: wait for it to end" in said
    with pytest.raises(bd.FileError, match=f"in use by process {holder.pid}"):
        bd.save(bd.load("o/model.braided"), "o/model.braided")
    assert content_of(folder) == before
    holder.kill()  # a lock ends with its process, however that ends
    holder.wait()
    bd.save(bd.load("o/model.braided"), "o/model.braided")


def test_another_thread_is_refused(tmp_path):
    def enter():
        with sole_writer(folder=tmp_path):
            pass

    with sole_writer(folder=tmp_path), ThreadPoolExecutor(1) as pool:
        refused = pool.submit(enter).exception()
    assert f"in use by process {os.getpid()}" in str(refused)


def test_a_thread_may_hold_a_lock_twice(tmp_path):
    with sole_writer(folder=tmp_path):
        with sole_writer(folder=tmp_path):
            pass
        assert (tmp_path / ".lock.pid").read_text() == f"{os.getpid()}\n"
    assert not (tmp_path / ".lock.pid").exists()


# Files that are not finished ---------------------------------------------------------------------------------------

ROWS = "time,site,value\n1,a,1.5\n1,b,2.5\n2,a,2.5\n2,b,4.5\n"


def notes_on(path):
    """The panel in a file, and what is noted of the file."""
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        panel = read_table(path)
    assert {note.category for note in notes} <= {FileWarning}
    return panel, [str(note.message) for note in notes]


@pytest.mark.parametrize("rest", ["3,a", "3", '3,"a', '3,"a,b', "3,a,7.25", '3,"a",7.25'])
def test_a_last_line_that_is_cut_short_is_noted(tmp_path, rest):
    path = tmp_path / "t.csv"
    path.write_text(ROWS)
    whole, notes = notes_on(path)
    assert notes == []
    path.write_text(ROWS + rest)
    panel, notes = notes_on(path)
    assert len(notes) == 1
    if rest.endswith("7.25"):
        assert "does not end in a line break: its last line was used, but may be incomplete" in notes[0]
        assert panel.values[-1, 0] == 7.25
    else:
        assert "is incomplete and was skipped" in notes[0]
        assert panel.values.tolist() == whole.values.tolist()


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_file_that_grows_while_it_is_read_is_noted(tmp_path, suffix):
    path = written(tmp_path / f"t{suffix}", steps=60)
    rounds = open_rounds(path, batch_rows=40, sort_rows=0, block_bytes=100)
    chunks = rounds.chunks()
    read = [next(chunks)]
    path.write_bytes(path.read_bytes() + b"2099-01-01,site 1,5.0\n2099-01-01,si")
    with pytest.warns(FileWarning, match=r"t\.(csv|parquet) changed while it was being read"):
        read += chunks
    assert sum(len(chunk.times) for chunk in read) == 60  # as it was when it was opened


def test_a_line_that_is_finished_later_is_left_out(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(ROWS + "3,a,7.2")
    rounds = open_rounds(path)
    path.write_text(ROWS + "3,a,7.25\n3,b,1.0\n")
    with pytest.warns(FileWarning) as notes:
        (chunk,) = rounds.chunks()
    assert chunk.times.tolist() == [1, 2]
    assert "is incomplete and was skipped: '3,a,7.2'" in str(notes[0].message)


def test_a_line_whose_end_comes_later_is_read(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(ROWS + "3,a,7.25")
    rounds = open_rounds(path)
    path.write_text(ROWS + "3,a,7.25\n3,b,1.0\n")
    with pytest.warns(FileWarning):
        (chunk,) = rounds.chunks()
    assert chunk.times.tolist() == [1, 2, 3]


def test_the_command_line_shows_notes_in_a_line(folder, monkeypatch, capsys):
    Path("t.csv").write_text(Path("t.csv").read_text() + "2012-01-01T05:00:00,si")
    monkeypatch.setattr(sys, "argv", ["braided", *RUN, "--out", "new"])
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # is changed, and must be put back
    monkeypatch.setattr(warnings, "filters", [("default", None, FileWarning, None, 0)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code in (0, None)
    said = capsys.readouterr().err
    assert said.count("braided: the last line of t.csv is incomplete and was skipped: '2012-01-01T05:00:00,si'\n") == 1
