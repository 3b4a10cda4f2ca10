"""Files that appear whole or not at all."""

import os

import pytest

from braided.errors import FileError
from braided.files import MARK, insist_own, remove_drafts, write_whole
from braided.state import MODEL_MARK


def test_a_disk_that_fails_leaves_the_old_files_and_no_drafts(tmp_path, monkeypatch):
    (tmp_path / "a").write_text(MARK)

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(FileError, match=r"can't write to .* \(No space left on device\): choose another path"):
        write_whole({tmp_path / "a": b"new"}, MARK, "choose another path")
    assert [path.read_text() for path in tmp_path.iterdir()] == [MARK]


def test_all_files_are_written_before_any_is_replaced(tmp_path):
    (tmp_path / "a").write_text(MARK)
    (tmp_path / "b").mkdir()  # can't be replaced by a file
    with pytest.raises(FileError, match="choose another folder"):
        write_whole({tmp_path / "b": b"new", tmp_path / "a": b"new"}, MARK)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]
    assert (tmp_path / "a").read_text() == MARK
    write_whole({tmp_path / "deep" / "c": b"new", tmp_path / "a": b"new"}, MARK)
    assert (tmp_path / "deep" / "c").read_bytes() == (tmp_path / "a").read_bytes() == b"new"


def test_drafts_of_a_killed_writer_are_removed_and_nothing_else(tmp_path):
    for name in (".a.draft-12345678", ".a.draft-notes", ".a.parts", ".ab.draft-12345678", "a"):
        (tmp_path / name).touch()
    remove_drafts(tmp_path / "a")
    remove_drafts(tmp_path / "nowhere" / "a")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".a.draft-notes", ".a.parts", ".ab.draft-12345678", "a"]


@pytest.mark.parametrize("content", ["notes on a\nbraided model\n", 3000 * "x" + MARK, "no mark at all"])
def test_a_mark_counts_at_its_place_only(tmp_path, content):
    (tmp_path / "notes").write_text(content)
    for mark in (MARK, MODEL_MARK, None):
        with pytest.raises(FileError, match="exists already"):
            insist_own(tmp_path / "notes", mark)
    (tmp_path / "empty").touch()
    insist_own(tmp_path / "empty", MODEL_MARK)
