"""A file that may not be read is reported as that, and not as damaged. (Tests may run as root, who may read all.)"""

import errno
import io
import os
from pathlib import Path

import pyarrow.parquet
import pytest

import braided as bd
from braided.cli import main
from braided.datasets import open_panel, read_wind_toolkit
from braided.runs import read_choice
from braided.tables import open_rounds
from tests.runs.tables import written

DENIED = PermissionError(errno.EACCES, os.strerror(errno.EACCES))
MESSAGE = r"^no permission to read .*closed.*: get read access"


def deny(*_, **__):
    raise DENIED


@pytest.fixture
def no_opening(monkeypatch):
    """No file may be opened, but its folder is open."""
    for place, name in ((Path, "open"), (Path, "read_bytes"), (Path, "read_text"), (io, "open")):
        monkeypatch.setattr(place, name, deny)
    monkeypatch.setattr(pyarrow.parquet, "ParquetFile", deny)


@pytest.fixture
def no_entering(monkeypatch):
    """The folder may not be entered."""
    monkeypatch.setattr(Path, "stat", deny)


@pytest.mark.parametrize("name", ["closed.csv", "closed.csv.gz", "closed.parquet"])
def test_a_table_that_may_not_be_opened(name, tmp_path, request):
    path = written(tmp_path / name)
    request.getfixturevalue("no_opening")
    with pytest.raises(bd.FileError, match=MESSAGE):
        open_rounds(path)


@pytest.mark.usefixtures("no_opening")
@pytest.mark.parametrize("read", [bd.load, read_choice])
def test_a_model_or_a_choice_that_may_not_be_opened(read):
    with pytest.raises(bd.FileError, match=MESSAGE):
        read(Path("closed.file"))


@pytest.mark.usefixtures("no_entering")
@pytest.mark.parametrize("read", [open_rounds, open_panel, lambda path: read_wind_toolkit([path])])
def test_a_folder_that_may_not_be_entered(read):
    with pytest.raises(bd.FileError, match=MESSAGE):
        read("closed/file.csv")


@pytest.mark.usefixtures("no_entering")
@pytest.mark.parametrize("arguments", [["closed/file.csv"], ["us-incomes", "--parameters", "closed/penalty=1"]])
def test_the_command_line_says_so_in_one_line(arguments, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["braided", "run", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    assert capsys.readouterr().err.startswith("braided: no permission to read closed/")
