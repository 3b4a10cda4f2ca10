"""Forecasts in a file: Parquet or CSV with `time, task, actual, forecast, low, high`.

While a run goes on, its forecasts stand in numbered parts beside the file; each appears whole or not at all, so that a
run that was killed goes on after the last part that its saved model knows of. At the end, parts become the file.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, final

import numpy as np

from braided.errors import FileError, InputError
from braided.forecasting import Forecasts

COLUMNS = ("time", "task", "actual", "forecast", "low", "high")
SUFFIXES = (".parquet", ".csv")


@final
class ForecastFile:
    """A file of forecasts in the making; `parts` of them are there already."""

    def __init__(self, path: Path, parts: int = 0) -> None:
        if path.suffix not in SUFFIXES:
            raise InputError(f"{path} can't hold forecasts: its name must end in {' or '.join(SUFFIXES)}")
        self.path, self.parts = path, parts
        self._folder = path.with_name(f".{path.name}.parts")
        self._writer: Any = None
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            for stale in self._folder.iterdir():
                if stale.name not in {self._part(number).name for number in range(parts)}:
                    stale.unlink()
        except OSError as error:
            raise FileError(
                f"can't write to {path.parent} ({error.strerror}): choose another folder (--out)"
            ) from error
        for number in range(parts):
            if not self._part(number).exists():
                raise FileError(f"{self._part(number)} is gone, so the run can't go on: start again (--fresh)")

    def _part(self, number: int) -> Path:
        return self._folder / f"{number:06d}{self.path.suffix}"

    @property
    def _draft(self) -> Path:
        return self._folder / f"draft{self.path.suffix}"

    def add(self, forecasts: Forecasts) -> None:
        """Append forecasts to the part that is being written."""
        import pyarrow.csv as arrow_csv

        if not len(forecasts.times):
            return
        table = as_table(forecasts)
        if self.path.suffix == ".csv":
            if self._writer is None:
                self._writer = self._draft.open("wb")
                self._writer.write(b"" if self.parts else f"{','.join(COLUMNS)}\n".encode())
            plain = not any(set('",\r\n') & set(str(name)) for name in forecasts.names)
            options = arrow_csv.WriteOptions(include_header=False, quoting_style="none" if plain else "needed")
            arrow_csv.write_csv(_to_seconds(table), self._writer, options)
        else:
            self._writer = self._writer or _parquet_writer(self._draft, table.schema)
            self._writer.write_table(table)

    def commit(self) -> int:
        """End the part that is being written; return how many there are."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
            self._draft.replace(self._part(self.parts))
            self.parts += 1
        return self.parts

    def finish(self) -> Path | None:
        """Make the file of all parts, which stay until they are cleared; None where there was nothing to forecast."""
        parts = [self._part(number) for number in range(self.commit())]
        if not parts:
            return None
        join = _link if len(parts) == 1 else _join_csv if self.path.suffix == ".csv" else _join_parquet
        join(parts, self._draft)
        self._draft.replace(self.path)
        return self.path

    def clear(self) -> None:
        """Remove the parts."""
        shutil.rmtree(self._folder)


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


def as_table(forecasts: Forecasts) -> Any:
    """Return forecasts as an Arrow table; what is not known is null."""
    import pyarrow as pa

    numbers = {name: pa.array(getattr(forecasts, name), from_pandas=True) for name in COLUMNS[2:]}
    names = pa.array([str(name) for name in forecasts.names])
    tasks = pa.DictionaryArray.from_arrays(pa.array(forecasts.places.astype(np.int32)), names)
    return pa.table({"time": pa.array(forecasts.times), "task": tasks} | numbers)


def as_lines(forecasts: Forecasts, form: str) -> Iterator[str]:
    """Yield a line per forecast, `csv` or `json`, without what came; what is not known is empty or null."""
    times = forecasts.times
    if times.dtype.kind == "M":
        seconds = times.astype("datetime64[s]")
        times = np.datetime_as_string(seconds if (seconds == times).all() else times)
    names = ("time", "task", "forecast", "low", "high")
    columns = (times.tolist(), forecasts.tasks, *(getattr(forecasts, name).tolist() for name in names[2:]))
    for row in zip(*columns, strict=True):
        known = [None if isinstance(field, float) and field != field else field for field in row]
        if form == "json":
            yield json.dumps(dict(zip(names, known, strict=True)), ensure_ascii=False)
        else:
            text = io.StringIO()
            csv.writer(text, lineterminator="").writerow(["" if field is None else field for field in known])
            yield text.getvalue()


def tail(path: Path, rows: int) -> dict[str, Any]:
    """Return the last rows of a file of forecasts, column by column, at least so many where there are."""
    import pyarrow as pa
    import pyarrow.csv as arrow_csv
    import pyarrow.parquet as parquet

    if path.suffix == ".csv":
        size = path.stat().st_size
        with path.open("rb") as file:
            header = file.readline()
            file.seek(max(len(header), size - 200 * rows))
            if file.tell() > len(header):
                file.readline()  # the rest of a line
            content = header + file.read()
        table = arrow_csv.read_csv(
            pa.BufferReader(content),
            arrow_csv.ReadOptions(use_threads=False),
            convert_options=arrow_csv.ConvertOptions(column_types={"task": pa.string()}),  # "01" is a name
        )
    else:
        file = parquet.ParquetFile(path, pre_buffer=False)
        groups: list[int] = []
        while len(groups) < file.num_row_groups and sum(map(_rows_of(file), groups)) < rows:
            groups.insert(0, file.num_row_groups - 1 - len(groups))
        table = file.read_row_groups(groups, use_threads=False)
    table = table.slice(max(table.num_rows - rows, 0))
    return {name: table[name].to_numpy() for name in COLUMNS}


def _rows_of(file: Any) -> Any:
    return lambda group: file.metadata.row_group(group).num_rows


def _parquet_writer(path: Path, schema: Any) -> Any:
    import pyarrow.parquet as parquet

    return parquet.ParquetWriter(path, schema, compression="zstd", use_dictionary=["task"], store_schema=False)


def _to_seconds(table: Any) -> Any:
    """Whole seconds are written as such."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_timestamp(table["time"].type):
        return table
    seconds = pc.floor_temporal(table["time"], unit="second")
    if not pc.all(pc.equal(seconds, table["time"])).as_py():
        return table
    return table.set_column(0, "time", table["time"].cast(pa.timestamp("s")))
