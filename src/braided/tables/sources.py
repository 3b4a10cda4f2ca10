"""Where rows come from: CSV files, and here Parquet files and data frames, which Arrow reads.

Nothing is read with the threads of pyarrow: they abort a process that ends soon after.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, final

import numpy as np

from braided.errors import FileError, InputError
from braided.files import insist_there, reading
from braided.graph import Indexed, Table
from braided.tables.batches import Batch, Source
from braided.tables.cells import utc_column
from braided.tables.csv_file import WHAT_TO_WRITE, Csv
from braided.tables.panel import Panel

TABLE_SUFFIXES = (".csv", ".csv.gz", ".parquet", ".pq", ".tsv", ".tsv.gz")


def open_sources(data: Any, block_bytes: int) -> list[Source]:
    """Return what a path, a list of paths, or a data frame holds, all with the same columns."""
    if isinstance(data, str | PathLike):
        return [_open_file(data, block_bytes)]
    if not isinstance(data, list | tuple):
        return [Frame(data)]
    if not data:
        raise InputError("no file: give the path of at least one")
    sources = [_open_file(path, block_bytes) for path in data]
    first, *others = sources
    for other in others:
        if differ := sorted((set(other.names) ^ set(first.names)) - {""}):
            what = f"{other.place} and {first.place} differ in the columns {', '.join(map(repr, differ))}"
            raise InputError(f"{what}: files that are read as one table need the same ones")
    return sources


def _open_file(path: Any, block_bytes: int) -> Source:
    if not isinstance(path, str | PathLike):
        raise InputError(f"a {type(path).__name__} is not a path: give the paths of files, or one data frame")
    file = Path(path)
    insist_there(file)
    if file.is_dir():
        raise FileError(f"{file} is a folder: give the path of one file")
    suffix = next((end for end in TABLE_SUFFIXES if file.name.lower().endswith(end)), None)
    if suffix is None:
        raise FileError(f"{file} is not a table that can be read: its name must end in {', '.join(TABLE_SUFFIXES)}")
    if not file.stat().st_size:
        raise InputError(f"{file} is empty: {WHAT_TO_WRITE}")
    return Parquet(file) if suffix in (".parquet", ".pq") else Csv(file, block_bytes)


@final
class Frame(Source):
    """A panel, a data frame of pandas or polars, or an Arrow table."""

    def __init__(self, data: Any) -> None:
        import pyarrow as pa  # slow to import, here and below

        super().__init__()
        if isinstance(data, Panel):
            self.name = self.place = data.name
            self.timezone = data.timezone
            times = data.times if data.timezone is None else utc_column(data.times)
            data = pa.table({"time": times} | dict(zip(data.tasks, data.values.T, strict=True)))
        try:
            is_pandas = isinstance(data, Table) and isinstance(data, Indexed)
            table = pa.Table.from_pandas(data, preserve_index=True, nthreads=1) if is_pandas else pa.table(data)
        except (TypeError, ValueError, pa.ArrowException) as error:
            raise InputError(
                f"a {type(data).__name__} is not a table that can be read ({error}): give a path, a list of paths, or "
                "a data frame of pandas, polars or Arrow with one type per column"
            ) from error
        self.names = ["" if name.startswith("__index_level_") else name for name in table.column_names]
        self._table = table.rename_columns(self.names)
        self.size = len(table)

    def batches(self, names: Sequence[str], rows: int, labels: Sequence[str] = ()) -> Iterator[Batch]:
        """Yield columns, about `rows` rows at a time."""
        yield from _numbered(self._table.select(names).to_batches(max_chunksize=rows), names, self.size)


@final
class Parquet(Source):
    """A Parquet file."""

    def __init__(self, file: Path) -> None:
        super().__init__(file)
        with self._open() as table:
            self.names = table.schema_arrow.names

    @contextmanager
    def _open(self, labels: Sequence[str] = ()) -> Iterator[Any]:
        import pyarrow as pa
        from pyarrow.parquet import ParquetFile

        options: dict[str, Any] = {"pre_buffer": False, "read_dictionary": list(labels)}
        with reading(self.place, pa.ArrowException), ParquetFile(self.place, **options) as table:
            yield table

    def batches(self, names: Sequence[str], rows: int, labels: Sequence[str] = ()) -> Iterator[Batch]:
        """Yield columns, about `rows` rows at a time."""
        with self._open(labels) as table:
            batches = table.iter_batches(rows, columns=list(names), use_threads=False)
            yield from _numbered(batches, names, table.metadata.num_rows)
        self._note_change()


def _numbered(batches: Any, names: Sequence[str], total: int) -> Iterator[Batch]:
    """Batches of Arrow with the numbers of their rows."""
    read = 0
    for batch in batches:
        places = np.arange(read + 1, read + 1 + len(batch))
        read += len(batch)
        yield Batch({name: batch.column(name) for name in names}, places, read / total)
