"""Files of NREL's WIND Toolkit (CSV, SAM's .srw, HDF5): which sites they hold, and their rows."""

from __future__ import annotations

import csv
import gzip
import io
import math
import re
from collections.abc import Iterable
from itertools import chain, islice
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from braided.errors import FileError, InputError
from braided.files import insist_there, reading
from braided.types import Floats, Ints, Times

WIND_SUFFIXES = (".csv", ".csv.gz", ".srw", ".h5", ".hdf5")
VARIABLES = {"wind speed": "m/s", "wind direction": "degrees"}  # and their units, the same in all formats
PLACE = ("latitude", "longitude")  # in degrees
MAX_VALUES = 500_000_000  # 4 GB
DAMAGED = "it may be cut short; download it again"
Span = tuple[np.datetime64, np.datetime64]  # the first moment, and the first one after the end
WindFile: TypeAlias = "TextFile | HDF5File"  # the sites are known when it is opened; rows are read on demand


class Rows(NamedTuple):
    """The values of some sites of a file, within a span of time."""

    path: Path
    names: list[str]  # of the sites
    times: Times  # (rows,), rising
    values: Floats  # (rows, sites), NaN where one is missing
    step: np.timedelta64
    first: np.datetime64  # of the whole file, as is the last
    last: np.datetime64
    utc: bool  # False where the file doesn't name its time zone


def find(paths: Iterable[str | PathLike[str]]) -> list[WindFile]:
    """Return the files; of a folder, the files in it, sorted by name."""
    found: list[Path] = []
    for path in map(Path, paths):
        insist_there(path)
        with reading(path):
            inside = sorted(own for own in path.iterdir() if own.is_file()) if path.is_dir() else [path]
        known = [own for own in inside if own.name.lower().endswith(WIND_SUFFIXES) and not own.name.startswith("._")]
        if not known:
            what = "has no file" if path.is_dir() else "is not a file"
            raise FileError(f"{path} {what} of the WIND Toolkit: their names end in {', '.join(WIND_SUFFIXES)}")
        found += known
    if not found:
        raise InputError("paths is empty: give at least one file or folder")
    return [HDF5File(path) if path.name.lower().endswith((".h5", ".hdf5")) else TextFile(path) for path in found]


@final
class TextFile:
    """A CSV or .srw file: one site, one line per time."""

    def __init__(self, path: Path) -> None:
        """Read the head: the lines before the numbers."""
        self.path = path
        with reading(path), _open(path) as file:
            text = io.TextIOWrapper(file, "utf-8-sig", errors="replace")
            lines = [next(csv.reader([line.rstrip("\r\n")]), []) for line in islice(text, 20)]
        head = [[field.strip() for field in line] for line in lines]
        self.is_srw = path.name.lower().endswith(".srw")
        (self._srw if self.is_srw else self._csv)(head)
        self.width = next((len(line) for line in head[self.skipped :] if any(line)), 0)
        if not self.width:
            raise InputError(f"{path} has a head and no rows: {DAMAGED}")
        name = self.about.get("siteid") or self.about.get("locationid")
        self.names = np.array([path.name.split(".")[0] if name in (None, "", "loc_id") else name])
        self.positions = np.array([[_number(self.about.get(key, "")) for key in PLACE]])  # NaN where it doesn't say

    def _csv(self, head: list[list[str]]) -> None:
        """Names and values in one line, or a pair per line, or a line of names and one of values; then the columns."""
        starts = [[field.lower() for field in line[:4]] == ["year", "month", "day", "hour"] for line in head]
        if not any(starts):
            missing = "none of its first lines starts with Year,Month,Day,Hour"
            raise InputError(f"{self.path} is not a file of the WIND Toolkit: {missing}; use read_table for a table")
        self.skipped = starts.index(True) + 1
        *about, self.columns = head[: self.skipped]
        table = len(about) == 2 and len(about[0]) == len(about[1]) > 2
        pairs = zip(*about, strict=True) if table else chain(*(zip(a[::2], a[1::2], strict=False) for a in about))
        self.about = {re.sub("[^a-z]", "", name.lower()): value for name, value in pairs}

    def _srw(self, head: list[list[str]]) -> None:
        """Five lines: place and year, a description, columns, units, heights."""
        self.skipped = 5
        if len(head) < 5 or len(head[0]) < 7 or "speed" not in ",".join(head[2]).lower():
            raise InputError(f"{self.path} is not a SAM wind file: line 1 must give place and year, line 3 the columns")
        keys = ("locationid", "city", "state", "country", "year", "latitude", "longitude")
        self.about = dict(zip(keys, head[0], strict=False))
        columns = zip(head[2], head[4], strict=False)
        self.columns = [f"wind {name.split()[-1]} at {height}m" if name else "" for name, height in columns]

    def read(self, columns: Ints, variable: str, height: float, span: Span) -> Rows:
        """Return the rows of the one site, column 0, within a span of time."""
        place = at_height(self.path, variable, height, self.columns)
        if self.is_srw:
            (values,) = self._numbers([place])
            times, utc = self._times_of_year(len(values)), True  # SAM's manual says so of the WIND Toolkit
        else:
            has_minute = [name.lower() for name in self.columns[4:5]] == ["minute"]
            *parts, values = self._numbers([*range(4 + has_minute), place])
            times, utc = self._moments(*parts)
        order = np.argsort(times, kind="stable")
        times, values = times[order], values[order, None]
        step = clock(times, self.path)
        inside = slice(*np.searchsorted(times, span))
        return Rows(self.path, self.names.tolist(), times[inside], values[inside], step, times[0], times[-1], utc)

    def _numbers(self, places: list[int]) -> list[Floats]:
        """Some columns as numbers."""
        import pyarrow as pa  # slow to import, here and below
        from pyarrow import csv as arrow_csv

        if max(places) >= self.width:
            counts = f"{self.width} fields in its first row, {len(self.columns)} columns"
            raise InputError(f"{self.path} has {counts}: download it again")
        names = list(map(str, range(self.width)))
        types = {names[place]: pa.float64() for place in places}
        with reading(self.path), _open(self.path) as file:
            data = io.BytesIO(file.read())
        try:
            table = arrow_csv.read_csv(
                data,
                arrow_csv.ReadOptions(use_threads=False, skip_rows=self.skipped, column_names=names),
                convert_options=arrow_csv.ConvertOptions(include_columns=list(types), column_types=types),
            )
        except pa.ArrowInvalid as error:
            what = str(error).replace("Row #", "line ")
            raise InputError(f"{self.path} can't be read ({what}): {DAMAGED}") from error
        return [column.to_numpy() for column in table.columns]

    def _moments(self, *parts: Floats) -> tuple[Times, bool]:
        """Times from columns of year to minute, in UTC if the file names the time zone of its data."""
        given = np.array([*parts, np.zeros(len(parts[0]))][:5])
        whole = np.clip(np.nan_to_num(given), 0, 9999).astype(np.int64)
        year, month, day, hour, minute = whole
        months = (12 * (year - 1970) + month - 1).astype("datetime64[M]")
        days = months.astype("datetime64[D]") + (day - 1)
        fits = (whole == given).all(axis=0) & (month >= 1) & (month <= 12) & (hour < 24) & (minute < 60)
        fits &= days.astype("datetime64[M]") == months  # no 30th of February
        for row in np.flatnonzero(~fits):
            what = f"line {self.skipped + row + 1} of {self.path} has no time: year to minute are"
            raise InputError(f"{what} {', '.join(f'{part:g}' for part in given[:, row])}; download it again")
        zone = self.about.get("datatimezone", self.about.get("timezone", ""))
        hours = 0.0 if zone.upper() in ("", "UTC", "GMT") else _number(zone)
        if not -14 <= hours <= 14:
            raise InputError(f"{self.path} gives the time zone {zone!r}: write hours from UTC, such as -5")
        seconds = 3600 * hour + 60 * minute - round(3600 * hours)
        return days.astype("datetime64[s]") + seconds, zone != ""

    def _times_of_year(self, rows: int) -> Times:
        """Times of the rows of a year, without 29 February if there are rows for 365 days only."""
        year = self.about["year"]
        if not re.fullmatch("[0-9]{4}", year):
            raise InputError(f"{self.path} has the year {year!r} in line 1: write the year of its rows there")
        days = np.arange(np.datetime64(year, "D"), np.datetime64(year) + 1)
        if rows % 8784 and len(days) == 366:
            days = np.delete(days, 59)
        steps, rest = divmod(rows, 24 * len(days))
        if rest or not 1 <= steps <= 60 or 60 % steps:
            what = "every hour of it must have as many rows as any other, with or without 29 February"
            raise InputError(f"{self.path} has {rows} rows, and its year is {year}: {what}; {DAMAGED}")
        of_day = np.arange(24 * steps) * np.timedelta64(3600 // steps, "s")
        return (days.astype("datetime64[s]")[:, None] + of_day).ravel()


@final
class HDF5File:
    """An HDF5 file as NREL's rex reads it: arrays of times × sites."""

    def __init__(self, path: Path) -> None:
        """Read where the sites are."""
        self.path = path
        with reading(path), self._open() as file:
            lacks = [name for name in ("meta", "time_index") if name not in file]
            fields = () if lacks else file["meta"].dtype.names or ()
            lacks += [] if lacks else [f"meta/{name}" for name in PLACE if name not in fields]
            if lacks:
                what = f"{path} has no {' and no '.join(lacks)}"
                raise InputError(f"{what}: it is not a file of the WIND Toolkit as NREL's rex reads it")
            meta = file["meta"]
            self.positions = np.stack([meta[name].astype(np.float64) for name in PLACE], axis=1)  # (sites, 2)
            key = next((name for name in ("gid", "site_id") if name in fields), None)
            self.names = (meta[key] if key else np.arange(len(meta))).astype(np.str_)

    def _open(self) -> Any:
        try:
            import h5py  # not needed for the other formats
        except ImportError as error:
            raise InputError(f"{self.path} needs h5py to be read: pip install 'braided[hdf5]'") from error
        return h5py.File(self.path, "r")

    def read(self, columns: Ints, variable: str, height: float, span: Span) -> Rows:
        """Return the rows of the sites at the rising `columns` within a span of time, and read no others."""
        with reading(self.path), self._open() as file:
            names = list(file)
            dataset = file[names[at_height(self.path, variable, height, names)]]
            times = self._times(file["time_index"][...])
            expected = (len(times), len(self.names))
            if dataset.shape != expected:
                what = f"{dataset.name[1:]} of {self.path} has shape {dataset.shape}"
                raise InputError(f"{what}: time_index and meta say {expected}; download it again")
            step = clock(times, self.path)
            inside = slice(*np.searchsorted(times, span))
            check_size(len(times[inside]), len(columns))
            together = columns[-1] - columns[0] == len(columns) - 1  # a slice is faster than a list
            stored = dataset[inside, slice(columns[0], columns[-1] + 1) if together else columns]
            about = dataset.attrs
            scale, offset = (float(np.squeeze(about.get(*key))) for key in (("scale_factor", 1), ("add_offset", 0)))
            missing = [np.squeeze(about[key]) for key in ("_FillValue", "fill_value", "missing_value") if key in about]
            missing += [dataset.fillvalue] if dataset.fillvalue else []  # it is 0 if none was set, and 0 is a calm
        numbers = stored.astype(np.float64)
        values = numbers * scale + offset if offset else numbers / scale  # rex does so
        values[np.isin(stored, missing)] = np.nan
        return Rows(self.path, self.names[columns].tolist(), times[inside], values, step, times[0], times[-1], True)

    def _times(self, stored: NDArray[Any]) -> Times:
        """Texts as UTC, with or without an offset."""
        import pyarrow as pa

        texts = pa.array([text.decode() if isinstance(text, bytes) else str(text) for text in stored])
        for kind in (pa.timestamp("us", "UTC"), pa.timestamp("us")):
            try:
                return texts.cast(kind).to_numpy(zero_copy_only=False).astype("datetime64[s]")
            except pa.ArrowInvalid as error:
                fault = error
        what = f"time_index of {self.path} does not hold times ({fault})"
        raise InputError(f"{what}: write 2012-01-01 00:00:00+00:00") from fault


def at_height(path: Path, variable: str, height: float, names: list[str]) -> int:
    """Return the index of the name that is the variable at a height."""
    pattern = re.compile(rf"{variable.replace(' ', ' ?')}(?: at |_)([0-9]+(?:\.[0-9]+)?) ?m\b", re.IGNORECASE)
    heights = {float(match[1]): place for place, name in enumerate(names) if (match := pattern.match(name))}
    if height not in heights:
        there = f"there is {', '.join(f'{own:g}' for own in sorted(heights))} m; give one of them as height"
        remedy = there if heights else f"it has no {variable} at all; download it with that"
        raise InputError(f"{path} has no {variable} at {height:g} m: {remedy}")
    return heights[height]


def clock(times: Times, path: Path) -> np.timedelta64:
    """Return the time between rows, of which some may be missing."""
    gaps = np.diff(times)
    if not len(gaps):
        raise InputError(f"{path} has {len(times)} rows: a series needs at least two")
    for row in np.flatnonzero(gaps <= np.timedelta64(0)):
        what = "appears twice" if gaps[row] == np.timedelta64(0) else "comes after a later one"
        raise InputError(f"{times[row + 1]} {what} in {path}: keep one row per time, in order")
    step: np.timedelta64 = gaps.min()
    for row in np.flatnonzero(gaps % step):
        raise InputError(f"{path} has a gap of {gaps[row]} after {times[row]}, others of {step}: give it one step")
    return step


def check_size(steps: int, sites: int) -> None:
    """Refuse more values than fit in memory."""
    if steps * sites > MAX_VALUES:
        size = f"{sites} sites × {steps} steps take {8e-9 * steps * sites:.0f} GB of memory"
        raise InputError(f"{size}: choose fewer with near= and sites=, or with start= and end=")


def _open(path: Path) -> Any:
    return gzip.open(path) if path.name.lower().endswith(".gz") else path.open("rb")


def _number(text: str) -> float:
    """The number, or NaN."""
    try:
        return float(text)
    except ValueError:
        return math.nan
