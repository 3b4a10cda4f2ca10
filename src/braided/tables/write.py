"""A panel as a table in a file."""

from __future__ import annotations

import gzip
import io
from os import PathLike
from pathlib import Path

import numpy as np

from braided.errors import FileError, InputError
from braided.files import write_whole
from braided.tables.cells import to_seconds
from braided.tables.panel import Panel

SUFFIXES = (".csv", ".csv.gz", ".parquet", ".pq")


def write_table(panel: Panel, path: str | PathLike[str]) -> None:
    """Write a panel as a long table of timestamp, site and value, which `read_table` and the command line read.

    Missing values are left out. The file is written whole, or not at all; another one that is there is not replaced.

    >>> from tempfile import TemporaryDirectory
    >>> from braided.tables import read_table
    >>> panel = Panel("two", ("a", "b"), np.arange(2001, 2004), np.array([[1, 2], [np.nan, 3], [4, 5.5]]), "made up")
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "two.csv")
    ...     write_table(panel, file)
    ...     print(file.read_text())
    ...     read_table(file)
    "timestamp","site","value"
    2001,"a",1
    2001,"b",2
    2002,"b",3
    2003,"a",4
    2003,"b",5.5
    <BLANKLINE>
    Panel('two.csv': 3 steps × 2 tasks, 2001 to 2003, 1 value missing)
    """
    import pyarrow as pa  # slow to import
    from pyarrow import csv, parquet

    file = Path(path)
    suffix = next((end for end in SUFFIXES if file.name.lower().endswith(end)), None)
    if suffix is None:
        raise FileError(f"{file} is no name of a table: it must end in {', '.join(SUFFIXES)}")
    steps, columns = np.nonzero(~np.isnan(panel.values))
    if not len(steps):
        raise InputError(f"{panel!r} has no value at all: there is nothing to write")
    times = to_seconds(panel.times)
    sites = pa.DictionaryArray.from_arrays(columns.astype(np.int32), list(panel.tasks)).cast("string")
    table = pa.table({"timestamp": times[steps], "site": sites, "value": panel.values[steps, columns]})
    buffer = io.BytesIO()
    if suffix.startswith(".csv"):
        csv.write_csv(table, buffer)
    else:
        parquet.write_table(table, buffer)
    content = gzip.compress(buffer.getvalue(), mtime=0) if suffix == ".csv.gz" else buffer.getvalue()
    if not (file.is_file() and file.read_bytes() == content):
        write_whole({file: content}, None, "choose another path")
