"""A panel from a table of one's own: CSV or Parquet, one row per sample, in any order.

>>> from pathlib import Path
>>> from tempfile import TemporaryDirectory
>>> rows = ["time,site,wind_speed", "2024-01-01,north,5.5", "2024-01-01,south,4.0", "2024-01-02,south,4.5",
...         "2024-01-03,north,NA", "2024-01-03,south,6.0", "2024-01-02,north,7.0"]
>>> with TemporaryDirectory() as folder:
...     path = Path(folder, "wind.csv")
...     _ = path.write_text("\\n".join(rows))
...     panel = read_table(path)
>>> panel
Panel('wind.csv': 3 steps × 2 tasks, 2024-01-01T00:00:00 to 2024-01-03T00:00:00, 1 value missing)
>>> panel.values
array([[5.5, 4. ],
       [7. , 4.5],
       [nan, 6. ]])
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from bisect import bisect_left
from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from braided.errors import FileError, InputError
from braided.streams.panel import Panel, Times

SUFFIXES = (".csv", ".csv.gz", ".parquet", ".pq")
GUESSES = {
    "time": ("timestamp", "time", "datetime", "date", "year"),
    "task": ("site", "task", "station", "state", "turbine", "meter", "sensor", "id", "name"),
    "value": ("value",),
}
NO_VALUES = {"", "lat", "lon", "latitude", "longitude", "height", "altitude", *GUESSES["time"], *GUESSES["task"]}
MISSING = ("", "na", "n/a", "#n/a", "nan", "null", "none")  # in small or capital letters

Where = Callable[..., str]  # from rows of the table to the place where a reader of the file finds them


def read_table(
    path: str | PathLike[str], *, time: str | None = None, task: str | None = None, value: str | None = None
) -> Panel:
    """Return the panel in a long table: `time`, `task` and `value` name its columns where they can't be guessed.

    Times are integers such as years, or ISO 8601; those with a UTC offset become UTC. A value is missing where its row
    is absent, or where it is empty, NA or NaN.
    """
    file = Path(path)
    table, where = _read(file)
    if not len(table):
        raise InputError(f"{file} has a header and no rows: give one row per sample")
    time, task, value = _choose(table, file, {"time": time, "task": task, "value": value})
    stamps = _times(_filled(table, time, where), time, where)
    names = _filled(table, task, where).cast("string").dictionary_encode()
    column = _column(table, value, MISSING)
    numbers = _cast_all(column, "double", value, where, "write a number, or NA where it is missing")
    for row in np.flatnonzero(np.isinf(numbers)):
        raise InputError(f"{value} at {where(row)} is {column[row].as_py()!r:.80}: write a finite number, or NA")

    found = names.dictionary.to_pylist()
    tasks = tuple(sorted(found))
    if len(tasks) == 1:
        raise InputError(
            f"one task only: column {task!r} of {file} says {tasks[0]!r:.80} in every row; sharing needs at least two; "
            "add the rows of another, or call the column that tells the tasks apart 'site'"
        )
    rank = {name: place for place, name in enumerate(tasks)}
    tasks_of_rows = np.array([rank[name] for name in found])[names.indices.to_numpy()]
    times, steps_of_rows = np.unique(stamps, return_inverse=True)
    cells = steps_of_rows * len(tasks) + tasks_of_rows
    rows = np.arange(len(cells))
    last = np.empty(len(times) * len(tasks), np.intp)
    last[cells] = rows  # of several rows in one cell, the last one stays
    for row in np.flatnonzero(last[cells] != rows):
        raise InputError(
            f"{time} {stamps[row]} of {task} {tasks[tasks_of_rows[row]]!r:.80} stands twice, at "
            f"{where(row, last[cells[row]])}: keep one, or call the column that tells the tasks apart 'site'"
        )
    values = np.full((len(times), len(tasks)), np.nan)
    values.flat[cells] = numbers
    low, high = np.fmin.reduce(values), np.fmax.reduce(values)  # of the values that are there
    for place in np.flatnonzero(~(low < high)):
        what = "has no value at all" if np.isnan(low[place]) else f"is constant, {low[place]}"
        raise InputError(f"{task} {tasks[place]!r:.80} of {file} {what}: there is nothing to learn; leave its rows out")
    return Panel(file.name, tasks, times, values, f"file {file.name}, {value!r} by {task!r} and {time!r}")


def _read(file: Path) -> tuple[Any, Where]:
    """The table, and how to find its rows in the file."""
    import pyarrow as pa  # slow to import, here and below
    from pyarrow import parquet

    if not file.exists():
        raise FileError(f"{file} does not exist: check the path")
    if file.is_dir():
        raise FileError(f"{file} is a folder: give the path of one file")
    suffix = next((end for end in SUFFIXES if file.name.lower().endswith(end)), None)
    if suffix is None:
        raise FileError(f"{file} is no table that can be read: its name must end in {', '.join(SUFFIXES)}")
    try:
        data = gzip.decompress(file.read_bytes()) if suffix == ".csv.gz" else file.read_bytes()
        if not data or data.isspace():
            raise InputError(f"{file} is empty: give a header and one row per sample")
        is_csv = suffix.startswith(".csv")
        table = (
            _csv(file, data)
            if is_csv
            else parquet.ParquetFile(io.BytesIO(data), pre_buffer=False).read(use_threads=False)
        )
    except (OSError, EOFError, zlib.error, pa.ArrowException) as error:
        raise FileError(f"{file} can't be read ({error}): it may be cut short or damaged; copy it again") from error

    def where(*rows: int) -> str:
        lines = enumerate(_records(file, data), start=-1)
        places = [line for row, (line, _) in lines if row in rows] if is_csv else [row + 1 for row in rows]
        return f"{'line' if is_csv else 'row'}{'s' * (len(rows) > 1)} {' and '.join(map(str, places))} of {file}"

    return table, where


def _csv(file: Path, data: bytes) -> Any:
    """All columns as text, so that a site 007 keeps its zeros, and a fault can be found and quoted."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    try:
        data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"line {line} of {file} is no UTF-8 text ({error.reason}): save it as UTF-8") from error
    _, header = next(_records(file, data), (1, []))
    try:
        table = arrow_csv.read_csv(
            io.BytesIO(data + b"\n"),  # pyarrow refuses a header without a line end
            read_options=arrow_csv.ReadOptions(use_threads=False),  # threads abort a process that ends soon after
            parse_options=arrow_csv.ParseOptions(newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(column_types=dict.fromkeys(header, pa.string())),
        )
    except pa.ArrowInvalid as error:
        for line, fields in _records(file, data):
            if len(fields) != len(header):
                raise InputError(
                    f"line {line} of {file} has {len(fields)} field{'s' * (len(fields) > 1)}, the header "
                    f"{len(header)}: quote a field that holds a comma, and close every quote"
                ) from error
        raise InputError(f"{file} is no CSV table ({error}): write a header and one row per sample") from error
    return table.rename_columns([name.strip() for name in header])


def _records(file: Path, data: bytes) -> Iterator[tuple[int, list[str]]]:
    """The records of a CSV, the header first, and the line on which each starts; too slow for more than faults."""
    reader = csv.reader(io.TextIOWrapper(io.BytesIO(data), "utf-8-sig", newline=""))
    line = 1
    try:
        for fields in reader:
            if fields:  # pyarrow, too, passes over empty lines
                yield line, fields
            line = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"line {line} of {file} starts a record without end ({error}): close every quote") from error


def _choose(table: Any, file: Path, given: dict[str, str | None]) -> list[str]:
    """The names of the columns of time, task and value."""
    names = table.column_names
    chosen: list[str] = []
    for role, name in given.items():
        what, remedy = f"column {name!r}", f"give another name as {role}="
        fits = [own for own in names if own == name]
        if name is None:
            what, remedy = (
                f"{role} column",
                f"call it {' or '.join(GUESSES[role])}, or in Python give its name as {role}=",
            )
            matches = ([own for own in names if own.lower() == guess] for guess in GUESSES[role])
            fits = next(filter(None, matches), [])
            if role == "value" and not fits:
                fits = [own for own in names if own.lower() not in NO_VALUES and own not in chosen]
                if 1 < len(fits) == len(set(fits)):  # a single one is it, and text in it will be told with its line
                    fits = [own for own in fits if _cast(_column(table, own, MISSING), "double") is not None]
        if len(fits) != 1:
            count = f"{len(fits)} columns that may be the {what}" if fits else f"no {what}"
            raise InputError(f"{file} has {count}; its columns are {', '.join(map(repr, names))}: {remedy}")
        chosen += fits
    return chosen


def _column(table: Any, name: str, missing: tuple[str, ...] = ("",)) -> Any:
    """One column; if it is text, without spaces around it, and null where it is one of `missing`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = table.column(name).combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if "string" in str(column.type):  # there are three types of it
        column = pc.utf8_trim_whitespace(column.cast("string"))
        column = pc.if_else(pc.is_in(pc.utf8_lower(column), pa.array(missing)), None, column)
    return column


def _filled(table: Any, name: str, where: Where) -> Any:
    """One column, in which nothing may be missing."""
    column = _column(table, name)
    for row in np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False)):
        raise InputError(f"{name} at {where(row)} is empty: every row needs one")
    return column


def _times(column: Any, name: str, where: Where) -> Times:
    """Integers, or times in UTC, to the second where that is exact, else to the microsecond."""
    import pyarrow as pa

    kinds = [pa.int64(), pa.timestamp("us"), pa.timestamp("us", "UTC")]  # a text fits one of them at most
    if column.type != pa.string():
        kinds = kinds[2:] if pa.types.is_temporal(column.type) else kinds[:1]
    kind = next((kind for kind in kinds if _cast(column[:1], kind) is not None), kinds[0])
    remedy = "write all as 2024-01-31 18:30:00 (ISO 8601), or all with a UTC offset, or all as integers such as years"
    times = _cast_all(column, kind, name, where, remedy)
    if times.dtype.kind == "i":
        return times
    seconds = times.astype("datetime64[s]")
    return seconds if (seconds == times).all() else times


def _cast(column: Any, kind: Any) -> Any:
    """The column as another type, or None where an entry refuses."""
    import pyarrow as pa

    try:
        return column.cast(kind, safe=kind == pa.int64())  # 2000.5 is no year; but digits past the 16th may go
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def _cast_all(column: Any, kind: Any, name: str, where: Where, remedy: str) -> Any:
    """The column as an array, NaN where it is null; an entry that refuses is named."""
    parsed = _cast(column, kind)
    if parsed is None:
        row = bisect_left(range(len(column)), True, key=lambda row: _cast(column[: row + 1], kind) is None)
        raise InputError(f"{name} at {where(row)} is {column[row].as_py()!r:.80}: {remedy}")
    return parsed.to_numpy(zero_copy_only=False)
