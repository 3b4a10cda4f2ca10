"""A panel from your table (CSV, Parquet or a data frame, long or wide, rows in any order), and a panel as a file.

>>> import numpy as np
>>> from pathlib import Path
>>> from tempfile import TemporaryDirectory
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
Panel('two.csv': 3 steps × 2 streams, 2001 to 2003, 1 value missing)
"""

from __future__ import annotations

import gzip
import io
import sys
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from braided.errors import FileError, InputError
from braided.files import write_whole
from braided.tables.cells import to_seconds, utc_column
from braided.tables.panel import Panel
from braided.tables.rounds import open_rounds, stacked

PANEL_SUFFIXES = (".csv", ".csv.gz", ".parquet", ".pq")


def read_table(
    source: Any,
    *,
    time: str | None = None,
    task: str | None = None,
    value: str | None = None,
    any_streams: bool = False,
) -> Panel:
    """Return the panel in a table; `time`, `task` and `value` name its columns where they can't be guessed.

    The table is what `open_rounds` takes. Times are integers such as years, or ISO 8601; those with a UTC offset become
    UTC. A value is missing where its row is absent, or where it is empty, NA or NaN. A stream that never changes is
    refused, and so is one stream alone, unless `any_streams` is set.
    """
    rounds = open_rounds(source, time=time, task=task, value=value, sort_rows=sys.maxsize)
    times, found, values, _ = stacked(list(rounds.chunks()))
    if len(found) == 1 and not any_streams:
        raise InputError(rounds.one_stream_only(found[0]))
    values = values[:, sorted(range(len(found)), key=found.__getitem__)]
    tasks = tuple(sorted(found))
    columns = rounds.columns
    low, high = np.fmin.reduce(values), np.fmax.reduce(values)  # of the values that are there
    for place in [] if any_streams else np.flatnonzero(~(low < high)):
        what = "has no value at all" if np.isnan(low[place]) else f"is constant, {low[place]}"
        whose = f"{columns.task or 'column'} {tasks[place]!r:.80} of {rounds.place}"
        raise InputError(f"{whose} {what}: there is nothing to learn; leave {'its rows' if columns.task else 'it'} out")
    name = rounds.name if rounds.name == "data frame" else f"file {rounds.name}"
    what = "a column per stream" if columns.task is None else f"{columns.value!r} by {columns.task!r}"
    return Panel(rounds.name, tasks, to_seconds(times), values, f"{name}, {what} and {columns.time!r}")


def write_table(panel: Panel, path: str | PathLike[str]) -> None:
    """Write a panel as a long table of timestamp, site and value, which `read_table` and the command line read.

    Missing values are left out, and times of a panel with a timezone are marked as UTC. The file is
    written whole or not at all, and never over another file.
    """
    import pyarrow as pa  # slow to import
    from pyarrow import csv, parquet

    file = Path(path)
    suffix = next((end for end in PANEL_SUFFIXES if file.name.lower().endswith(end)), None)
    if suffix is None:
        raise FileError(f"{file} is not the name of a table: it must end in {', '.join(PANEL_SUFFIXES)}")
    steps, columns = np.nonzero(~np.isnan(panel.values))
    if not len(steps):
        raise InputError(f"{panel!r} has no value at all: there is nothing to write")
    sites = pa.DictionaryArray.from_arrays(columns.astype(np.int32), list(panel.tasks)).cast("string")
    times = to_seconds(panel.times)[steps]
    times = times if panel.timezone is None else utc_column(times)
    table = pa.table({"timestamp": times, "site": sites, "value": panel.values[steps, columns]})
    buffer = io.BytesIO()
    write = csv.write_csv if suffix.startswith(".csv") else parquet.write_table
    write(table, buffer)
    content = gzip.compress(buffer.getvalue(), mtime=0) if suffix == ".csv.gz" else buffer.getvalue()
    if not (file.is_file() and file.read_bytes() == content):
        write_whole({file: content}, None, "choose another path")
