"""Files that appear whole or not at all, and plans of what a folder of them belongs to."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from braided.errors import FileError

DRAFT = "draft-"


def write_whole(contents: Mapping[Path, bytes], remedy: str = "choose another folder (--out)") -> None:
    """Write files; a kill leaves of each the old one or the new one. All are written before any is replaced."""
    drafts: dict[Path, Path] = {}
    path = Path()
    try:
        for path, content in contents.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            draft = path.with_name(f".{path.name}.{DRAFT}{secrets.token_hex(4)}")
            drafts[draft] = path
            with draft.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        for draft, path in drafts.items():
            draft.replace(path)
        for folder in {path.parent for path in contents}:
            _settle(folder)
    except OSError as error:
        raise FileError(f"can't write to {path.parent} ({error.strerror or error}): {remedy}") from error
    finally:
        for draft in drafts:
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)


def remove_drafts(path: Path) -> None:
    """Remove what writers of this file left behind when they were killed."""
    for draft in path.parent.iterdir() if path.parent.is_dir() else ():
        if draft.name.startswith(f".{path.name}.{DRAFT}"):
            draft.unlink(missing_ok=True)


def read_plan(path: Path, what: str) -> dict[str, Any]:
    """Return the plan that the results beside it belong to."""
    try:
        return dict(json.loads(path.read_text("utf-8")))
    except (OSError, ValueError) as error:
        raise FileError(f"{path.parent} holds no {what} that can be read ({error}): run it anew") from error


def open_plan(path: Path, about: dict[str, Any], what: str) -> None:
    """Write down the plan of what is about to be done, or see that it is the one that is there."""
    about = json.loads(json.dumps(about))  # with lists for tuples, as in the file
    held = read_plan(path, what) if path.exists() else about
    for name in sorted(about.keys() | held.keys(), key=lambda name: (name != "table", name)):
        if held.get(name) != about.get(name):
            found, wanted = (_short(one.get(name)) for one in (held, about))
            raise FileError(
                f"{path.parent} holds a {what} {'of' if name == 'table' else 'with'} {name} {found}, not {wanted}: "
                "choose another folder (--out), or start again (--fresh)"
            )
    write_whole({path: json.dumps(about, indent=1).encode()})  # anew, to see at once whether it can be


def _settle(folder: Path) -> None:
    """See to it that new names outlive a loss of power, where the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
