"""Write files whole or not at all, one process at a time, and never over a file that braided did not make.

Every file that braided writes carries a mark. A file without it is never overwritten or deleted.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import zlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations, product
from os import PathLike
from pathlib import Path
from time import sleep
from typing import Any

from braided.errors import FileError, InputError, MissingFileError, unreadable

DRAFT = "draft-"
MARK = "made by braided, which may write over it"
MARKED_AT_START, MARKED_AT_END = 1 << 11, 1 << 16  # bytes in which a mark is looked for; at the end of Parquet only
OTHER_FOLDER = "choose another folder (--out)"


def is_there(path: str | PathLike[str]) -> bool:
    """Return whether a path exists; a folder without permission to enter is an error."""
    try:
        Path(path).stat()
    except PermissionError as error:
        raise unreadable(path, error) from error
    except (OSError, ValueError):  # also a name that no file can have
        return False
    return True


def insist_there(path: Path) -> None:
    """Refuse a path that does not exist."""
    if not is_there(path):
        raise MissingFileError(f"{path} does not exist: check the path")


def insist_folder(path: Path | None) -> None:
    """Refuse a file to write whose folder does not exist."""
    if path is not None and not is_there(path.parent):
        raise MissingFileError(f"no folder {path.parent}: make it first")


@contextlib.contextmanager
def reading(path: str | PathLike[str], *more: type[Exception]) -> Iterator[None]:
    """Report what goes wrong while a file is read, also errors of the types in `more`, as a FileError."""
    errors: tuple[type[Exception], ...] = (OSError, EOFError, zlib.error, *more)
    try:
        yield
    except errors as error:
        raise unreadable(path, error, "it may be cut short or damaged; copy or download it again") from error


@contextlib.contextmanager
def _writing(path: Path, remedy: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise FileError(f"can't write to {path} ({error.strerror or error}): {remedy}") from error


def mark_of(kind: str) -> str:
    """Return the mark of files of a kind; a file of another kind is not overwritten either."""
    return f"{MARK} ({kind})"


def write_whole(contents: Mapping[Path, bytes], mark: str | None, remedy: str = OTHER_FOLDER) -> None:
    """Write files; a kill leaves either the old or the new version of each. All are written before any is replaced.

    An existing file must be empty or carry the mark; with mark=None no file may exist.
    """
    for path in contents:
        insist_own(path, mark, remedy)
    drafts = {path.with_name(f".{path.name}.{DRAFT}{secrets.token_hex(4)}"): path for path in contents}
    try:
        for draft, path in drafts.items():
            with _writing(path.parent, remedy):
                path.parent.mkdir(parents=True, exist_ok=True)
                with draft.open("xb") as file:
                    file.write(contents[path])
                    file.flush()
                    os.fsync(file.fileno())
        for draft, path in drafts.items():
            with _writing(path.parent, remedy):
                draft.replace(path)
    finally:
        for draft in drafts:
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)
    for folder in {path.parent for path in contents}:
        with contextlib.suppress(OSError):  # new names outlive a loss of power, where the system can do that
            handle = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def remove_drafts(path: Path) -> None:
    """Remove the drafts of this file that killed writers left behind."""
    for draft in path.parent.iterdir() if path.parent.is_dir() else ():
        if re.fullmatch(rf"\.{re.escape(path.name)}\.{DRAFT}[0-9a-f]{{8}}", draft.name):
            draft.unlink(missing_ok=True)


# Marks of own files -----------------------------------------------------------------------------------------------


def insist_own(path: Path, mark: str | None, remedy: str = OTHER_FOLDER) -> None:
    """Refuse to overwrite a file that braided did not make, unless it is empty.

    A mark that ends in a line break or a comma must be the start of the file; any other may be near the start, or near
    the end of Parquet.
    """
    if path.exists() and not path.is_file():
        raise FileError(f"can't write to {path} (not a regular file): {remedy}")
    near = b""
    with _writing(path, remedy), contextlib.suppress(FileNotFoundError), path.open("rb") as file:
        near = file.read(MARKED_AT_START)
        if near.startswith(b"PAR1"):
            file.seek(max(file.seek(0, os.SEEK_END) - MARKED_AT_END, 0))
            near = file.read()
    sign = (mark or "").encode()
    marked = sign and (near.startswith(sign) if sign.endswith((b"\n", b",")) else sign in near)
    if near and not marked:
        unmarked = "" if mark is None else ", and is not marked as a file that this command made"
        raise FileError(f"{path} exists already{unmarked}: {remedy}, or move it away")


def remove_own(marks: Mapping[Path, str]) -> None:
    """Delete files that braided made, given the mark of each; if one has no mark, none is deleted."""
    for path, mark in marks.items():
        insist_own(path, mark)
    for path in marks:
        path.unlink(missing_ok=True)


def insist_apart(inputs: Iterable[Path], outputs: Iterable[Path]) -> None:
    """Refuse an output that is also an input, or a folder that contains one, and two outputs that are the same file.

    Paths are compared as files, however they are written.
    """
    outputs = list(outputs)
    for source, target in product(inputs, outputs):
        if _is_same(source, target):
            spelled = f" (as {source})" * (str(source) != str(target))
            raise InputError(f"{target} is an input of this command{spelled}: choose another path to write to")
        if source.resolve().is_relative_to(target.resolve()):
            raise InputError(f"{source} is an input of this command: choose another folder to write to than {target}")
    for one, other in combinations(outputs, 2):
        if _is_same(one, other):
            raise InputError(f"{one} and {other} are the same file: give each output a path of its own")


def _is_same(one: Path, other: Path) -> bool:
    try:
        return os.path.samefile(one, other)  # also through a link, or in other letters where case does not count
    except OSError:  # one of them does not exist
        return one.resolve() == other.resolve()


# Locks ------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def sole_writer(*, folder: Path | None = None, file: Path | None = None) -> Iterator[None]:
    """Lock a folder and a file while they are written; raise a FileError if another process holds a lock.

    The id of the process is in a file beside each lock. A thread may hold the same lock more than once. Locks end with
    the process, however it ends; their files stay, and are used again.
    """
    from filelock import FileLock, Timeout  # slow to import

    with contextlib.ExitStack() as held:
        for target, remedy in ((folder, OTHER_FOLDER), (file, "choose another path (--save, --out)")):
            if target is None:
                continue
            place = target.resolve() / ".lock" if target is folder else _lock_of(target)
            pid = place.with_name(f"{place.name}.pid")
            with _writing(target, remedy):
                place.parent.mkdir(parents=True, exist_ok=True)
                lock = FileLock(place, timeout=0, is_singleton=True, thread_local=True)
                is_first = not lock.is_locked
                try:
                    held.enter_context(lock)
                except Timeout as error:
                    raise FileError(f"{target} is in use by {_holder(pid)}: wait for it to end, or {remedy}") from error
                if is_first:
                    _write_pid(pid)
                    held.callback(pid.unlink, missing_ok=True)
        yield


def insist_unlocked(file: Path) -> None:
    """Refuse a file that another process is writing."""
    if _lock_of(file).exists():
        with sole_writer(file=file):
            pass


def _lock_of(file: Path) -> Path:
    return file.parent.resolve() / f".{file.name}.lock"


def _write_pid(path: Path) -> None:
    """Write the id of this process; a file that holds anything else is refused."""
    with _writing(path, "move it away"):
        handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
    with os.fdopen(handle, "r+b") as file:
        if not re.fullmatch(rb"\d*\n?", file.read(64)):
            raise FileError(f"{path} exists already, and holds no process id: move it away")
        file.seek(0)
        file.truncate()
        file.write(f"{os.getpid()}\n".encode())


def _holder(pid: Path) -> str:
    for _ in range(20):
        with contextlib.suppress(OSError, ValueError):
            return f"process {int(pid.read_text())}"
        sleep(0.05)  # the holder has the lock and is about to write its id
    return "another process"


# Plans ------------------------------------------------------------------------------------------------------------

PLAN_MARK = mark_of("plan")


def as_json(about: Mapping[str, Any], mark: str, indent: int | None = 1) -> bytes:
    """Return names and numbers as JSON that begins with a mark."""
    return json.dumps({"file": mark} | dict(about), indent=indent).encode()


def read_plan(path: Path, what: str) -> dict[str, Any]:
    """Return the plan that the results beside it belong to."""
    try:
        held = dict(json.loads(path.read_text("utf-8")))
    except (OSError, ValueError) as error:
        raise FileError(f"{path.parent} does not hold a readable {what} ({error}): start again (--fresh)") from error
    held.pop("file", None)
    return held


def open_plan(path: Path, about: dict[str, Any], what: str) -> None:
    """Write a plan, or check that the plan in the file is the same."""
    about = json.loads(json.dumps(about))  # with lists for tuples, as in the file
    held = read_plan(path, what) if path.exists() else about
    for name in sorted(about.keys() | held.keys(), key=lambda name: (name != "table", name)):
        if held.get(name) != about.get(name):
            said = differing(name, held.get(name), about.get(name))
            raise FileError(
                f"{path.parent} holds a {what} {said}: choose another folder (--out), or start again (--fresh)"
            )
    write_whole({path: as_json(about, PLAN_MARK)}, PLAN_MARK)  # even if it is the same: now it is known to be writable


def differing(name: str, found: Any, wanted: Any) -> str:
    """Say that what a plan has under a name is not what is wanted; options are written as they are typed.

    >>> differing("--min", 0.0, 25.0), differing("--season", None, []), differing("--compare", True, False)
    ('with --min 0, not 25', 'without --season, not with --season none', 'with --compare, not without it')
    """
    if not name.startswith("--"):
        one, other = (_cut(json.dumps(value)) for value in (found, wanted))
        return f"{'of' if name == 'table' else 'with'} {name} {one}, not {other}"
    one, other = (_typed(name, value) for value in (found, wanted))
    if one and other:
        return f"with {name} {one}, not {other}"
    typed = f"with {name}{f' {one or other}' * ((found or wanted) is not True)}"
    return f"{typed}, not without it" if one else f"without {name}, not {typed}"


def _typed(name: str, value: Any) -> str:
    """The value of an option as it is typed; nothing where the option is left out."""
    if value is None or value is False or value == {}:
        return ""
    if isinstance(value, dict):
        return _cut(",".join(f"{key}={_plain(number)}" for key, number in value.items()))
    if isinstance(value, list | tuple):
        return _cut(",".join(map(_plain, value)) or "none" * (name == "--season"))
    return _cut(_plain(value))


def _plain(value: Any) -> str:
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _cut(text: str) -> str:
    return text if len(text) <= 60 else f"{text:.57}…"
