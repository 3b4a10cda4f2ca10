"""Source: the rows of one file or data frame, a batch at a time, each row with its place."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from braided.errors import FileWarning, InputError
from braided.types import Ints

SAMPLE_ROWS = 1000  # from which the columns are guessed


class Batch(NamedTuple):
    """Some rows: Arrow arrays by name, the line or row of each, and the share of the source read so far."""

    columns: dict[str, Any]
    places: Ints
    share: float


class Source(ABC):
    """Rows of one file or data frame; `size` is in bytes or rows, `changed` the file's time of modification.

    `timezone` names the clock that seasons follow, where the source says it; times are then UTC.
    """

    unit = "row"

    def __init__(self, file: Path | None = None) -> None:
        self.file = file
        self.name, self.place = ("data frame", "the data frame") if file is None else (file.name, str(file))
        self.size, self.changed = (0, 0) if file is None else (file.stat().st_size, file.stat().st_mtime_ns)
        self.names: list[str] = []
        self.timezone: str | None = None
        self._notes: set[str] = set()

    @abstractmethod
    def batches(self, names: Sequence[str], rows: int, labels: Sequence[str] = ()) -> Iterator[Batch]:
        """Yield columns, about `rows` rows at a time; text of the `labels` may be dictionary-encoded."""

    def no_rows(self) -> InputError:
        """Return the error for a source without rows."""
        return InputError(f"{self.place} has a header and no rows: give one row per sample")

    def sample(self, names: Sequence[str]) -> dict[str, Any]:
        """Return the first rows of some columns."""
        import pyarrow as pa  # slow to import

        parts: list[dict[str, Any]] = []
        read = 0
        try:
            for columns, places, _ in self.batches(names, SAMPLE_ROWS):
                parts.append(columns)
                read += len(places)
                if read >= SAMPLE_ROWS:
                    break
        except InputError:
            if not parts:
                raise  # a later fault is reported when its rows are read
        if not read:
            raise self.no_rows()
        return {name: pa.chunked_array([part[name] for part in parts]).slice(0, SAMPLE_ROWS) for name in names}

    def _note(self, text: str) -> None:
        """Warn once, even if the file is read again."""
        if text not in self._notes:
            self._notes.add(text)
            warnings.warn(text, FileWarning, stacklevel=2)

    def _note_change(self) -> None:
        """Warn if the file has changed since it was opened."""
        if self.file is not None and self.file.stat().st_mtime_ns != self.changed:
            self._note(f"{self.place} changed while it was being read: read it again when it is complete")
