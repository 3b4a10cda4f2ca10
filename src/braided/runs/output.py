"""Forecasts in a file: Parquet or CSV with `stream, time, horizon, forecast, low, high, actual`.

Quantiles, if any, have columns of their own before the last one: `q0.1, q0.5, …`.

During a run, forecasts are kept in numbered parts beside the file. A part is written whole or not at all, so a run that
was killed can resume after the last part that its saved model knows of. At the end the parts are joined into the file.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, final

import numpy as np

from braided.errors import FileError, InputError
from braided.files import insist_own, mark_of
from braided.forecasting import Forecasts
from braided.forecasting.forecasts import quantile_names
from braided.tables.cells import to_seconds
from braided.types import Times

FORECASTS_MARK = mark_of("forecasts")
LINE_FIELDS = ("stream", "time", "horizon", "forecast", "low", "high")
FORECAST_COLUMNS = (*LINE_FIELDS, "actual")
FORECAST_SUFFIXES = (".parquet", ".csv")
FOUR_DIGIT_YEARS = np.array(["0001", "10000"], "datetime64[us]")  # Arrow reads the years between these


@final
class ForecastFile:
    """A file of forecasts that is being written; its first `parts` parts are complete."""

    def __init__(self, path: Path, parts: int = 0, is_utc: bool = False, levels: tuple[float, ...] = ()) -> None:
        self.path, self.parts, self.is_utc, self._mark = path, parts, is_utc, forecasts_mark(path)
        self._header = ",".join((*fields_of(levels), *FORECAST_COLUMNS[-1:])) + "\n"
        self._folder = path.with_name(f".{path.name}.parts")
        self._draft = self._folder / f"draft{path.suffix}"
        self._writer: Any = None
        try:
            self._claim_folder()
            there = set(self._parts())
            known = {self._part(number) for number in range(min(parts, len(there) + 1))}  # `parts` is from a file
            for stale in there - known:
                stale.unlink()
        except OSError as error:
            raise FileError(
                f"can't write to {path.parent} ({error.strerror}): choose another folder (--out)"
            ) from error
        for gone in known - there:
            raise FileError(f"{gone} is missing, so the run can't be resumed: start again (--fresh)")

    def _part(self, number: int) -> Path:
        return self._folder / f"{number:06d}{self.path.suffix}"

    def _claim_folder(self) -> None:
        """Create the folder of the parts, with a mark in it; a folder without the mark is refused."""
        mark = self._folder / ".mark"
        is_own = mark.is_file() and not self._folder.is_symlink()
        if not is_own and (self._folder.is_symlink() or (self._folder.exists() and any(self._folder.iterdir()))):
            raise FileError(f"{self._folder} exists already, and braided did not make it: move it away")
        self._folder.mkdir(parents=True, exist_ok=True)
        mark.write_text(f"{FORECASTS_MARK}\n")

    def _parts(self) -> Iterator[Path]:
        """The files in the folder that this class wrote; others are left alone."""
        name = re.compile(rf"(draft|\d{{6,}}){re.escape(self.path.suffix)}")
        return (file for file in self._folder.iterdir() if name.fullmatch(file.name))

    def add(self, forecasts: Forecasts) -> None:
        """Append forecasts to the part that is being written."""
        import pyarrow.csv as arrow_csv

        if not len(forecasts.times):
            return
        if self.path.suffix == ".csv":
            table = as_table(forecasts, _csv_times(forecasts.times, self.is_utc), self.is_utc)
            if self._writer is None:
                self._writer = self._draft.open("wb")
                self._writer.write(b"" if self.parts else self._header.encode())
            plain = not any(set('",\r\n') & set(str(name)) for name in forecasts.names)
            options = arrow_csv.WriteOptions(include_header=False, quoting_style="none" if plain else "needed")
            arrow_csv.write_csv(table, self._writer, options)
        else:
            table = as_table(forecasts, forecasts.times, self.is_utc)
            self._writer = self._writer or _parquet_writer(self._draft, table.schema)
            self._writer.write_table(table)

    def commit(self) -> int:
        """Complete the part that is being written, and return the number of parts."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
            self._draft.replace(self._part(self.parts))
            self.parts += 1
        return self.parts

    def finish(self) -> Path | None:
        """Join the parts, which stay until `clear`, into the file; None if there was nothing to forecast."""
        parts = [self._part(number) for number in range(self.commit())]
        if not parts:
            return None
        join = _link if len(parts) == 1 else _join_csv if self.path.suffix == ".csv" else _join_parquet
        join(parts, self._draft)
        insist_own(self.path, self._mark)  # it may have appeared in the meantime
        self._draft.replace(self.path)
        return self.path

    def clear(self) -> None:
        """Remove the parts."""
        for part in [*self._parts(), self._folder / ".mark"]:
            part.unlink()
        with contextlib.suppress(OSError):  # left where it holds other files
            self._folder.rmdir()


def forecasts_mark(path: Path) -> str:
    """Return the mark of a file of forecasts; that of a CSV is the start of its header."""
    if path.suffix not in FORECAST_SUFFIXES:
        raise InputError(f"{path} can't hold forecasts: its name must end in {' or '.join(FORECAST_SUFFIXES)}")
    return ",".join(LINE_FIELDS) + "," if path.suffix == ".csv" else FORECASTS_MARK


def fields_of(levels: tuple[float, ...]) -> tuple[str, ...]:
    """Return the fields of a printed line, with quantiles of these levels."""
    return LINE_FIELDS + quantile_names(levels)


def _link(parts: list[Path], draft: Path) -> None:
    try:
        draft.hardlink_to(parts[0])
    except OSError:  # a file system without links
        shutil.copyfile(parts[0], draft)


def _join_csv(parts: list[Path], draft: Path) -> None:
    with draft.open("wb") as file:
        for part in parts:
            with part.open("rb") as content:
                shutil.copyfileobj(content, file)


def _join_parquet(parts: list[Path], draft: Path) -> None:
    import pyarrow.parquet as parquet

    writer: Any = None
    for part in parts:
        file = parquet.ParquetFile(part, pre_buffer=False)
        for group in range(file.num_row_groups):
            table = file.read_row_group(group, use_threads=False)
            writer = writer or _parquet_writer(draft, table.schema)
            writer.write_table(table)
    writer.close()


def as_table(forecasts: Forecasts, times: Times, is_utc: bool) -> Any:
    """Return forecasts as an Arrow table, with nulls where a value is unknown."""
    import pyarrow as pa

    numbers = {name: pa.array(column, from_pandas=True) for name, column in forecasts.numbers().items()}
    names = pa.array([str(name) for name in forecasts.names])
    streams = pa.DictionaryArray.from_arrays(pa.array(forecasts.places.astype(np.int32)), names)
    stamps = pa.array(times)
    if is_utc and times.dtype.kind == "M":
        stamps = stamps.cast(pa.timestamp(stamps.type.unit, "UTC"))
    horizons = pa.array(forecasts.horizons.astype(np.int32))
    return pa.table({"stream": streams, "time": stamps, "horizon": horizons} | numbers)


def _csv_times(times: Times, is_utc: bool) -> Times:
    """Return times as Arrow writes them into a CSV; as text where their years do not have four digits."""
    times = to_seconds(times)
    if times.dtype.kind != "M" or not ((times < FOUR_DIGIT_YEARS[0]) | (times >= FOUR_DIGIT_YEARS[1])).any():
        return times
    return np.char.replace(_iso(times, is_utc), "T", " ")


def _iso(times: Times, is_utc: bool) -> Times:
    return np.datetime_as_string(times, timezone="UTC" if is_utc else "naive")


def lines_of(forecasts: Forecasts, is_utc: bool = False) -> Iterator[tuple[Any, ...]]:
    """Yield the `fields_of` each forecast; None where a value is unknown."""
    times = to_seconds(forecasts.times)
    shown = (_iso(times, is_utc) if times.dtype.kind == "M" else times).tolist()
    numbers = [column.tolist() for column in forecasts.numbers().values()][:-1]
    horizons = forecasts.horizons.tolist()
    for stream, time, horizon, *bounds in zip(forecasts.tasks, shown, horizons, *numbers, strict=True):
        yield stream, time, horizon, *(None if bound != bound else bound for bound in bounds)


def as_json(line: tuple[Any, ...], ascii_only: bool = False, fields: tuple[str, ...] = LINE_FIELDS) -> str:
    """Return a line as a JSON object; `ascii_only` escapes all other characters."""
    return json.dumps(dict(zip(fields, line, strict=True)), ensure_ascii=ascii_only)


def as_csv(line: tuple[Any, ...]) -> str:
    """Return a line as a record of a CSV."""
    text = io.StringIO()
    end = "\r\n"  # a name that holds either is quoted
    csv.writer(text, lineterminator=end).writerow(line)
    return text.getvalue().removesuffix(end)


def tail(path: Path, rows: int) -> dict[str, Any]:
    """Return the last rows of a file of forecasts as columns; a CSV with long lines may give fewer."""
    import pyarrow as pa
    import pyarrow.csv as arrow_csv
    import pyarrow.parquet as parquet

    if path.suffix == ".csv":
        size = path.stat().st_size
        with path.open("rb") as file:
            header = file.readline()
            file.seek(max(len(header), size - (200 + 20 * (header.count(b",") - len(LINE_FIELDS))) * rows))
            if file.tell() > len(header):
                file.readline()  # the rest of a line
            content = header + file.read()
        table = arrow_csv.read_csv(
            pa.BufferReader(content),
            arrow_csv.ReadOptions(use_threads=False),
            convert_options=arrow_csv.ConvertOptions(column_types={"stream": pa.string()}),  # "01" is a name
        )
    else:
        file = parquet.ParquetFile(path, pre_buffer=False)
        first, found = file.num_row_groups, 0
        while first and found < rows:
            first -= 1
            found += file.metadata.row_group(first).num_rows
        table = file.read_row_groups([*range(first, file.num_row_groups)], use_threads=False)
    table = table.slice(max(table.num_rows - rows, 0))
    columns = {name: table[name].to_numpy() for name in FORECAST_COLUMNS}
    if columns["time"].dtype.kind == "O":  # text, where Arrow could not parse the dates: see _csv_times
        columns["time"] = np.array([text.removesuffix("Z") for text in columns["time"]], "datetime64[us]")
    return columns


def _parquet_writer(path: Path, schema: Any) -> Any:
    import pyarrow.parquet as parquet

    writer = parquet.ParquetWriter(path, schema, compression="zstd", use_dictionary=["stream"], store_schema=False)
    writer.add_key_value_metadata({"file": FORECASTS_MARK})
    return writer
