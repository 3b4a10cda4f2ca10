"""Lines: rows that arrive one at a time, as JSON objects or as CSV after a header, read by the rules of tables.

Lines come from outside and may hold anything. A line that can't be used raises an InputError that names it, and
changes nothing. The first line that gives a row decides whether the input is JSON or CSV, and which columns it has.

>>> lines = Lines()
>>> lines.parse('{"time": "2024-01-01T00:00", "site": "north", "wind": 5.5}', 1)
Row(time=1704067200000000, is_dated=True, is_utc=False, values={'north': 5.5}, extras={'north': []})
>>> lines.parse('{"time": "2024-01-01T00:00", "site": "south", "wind": "calm"}', 2)
Traceback (most recent call last):
braided.errors.InputError: wind at line 2 is 'calm': write a number, or NA where it is missing
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO, Literal, NamedTuple, final

from braided.errors import FileError, InputError
from braided.tables import cells
from braided.tables.columns import GUESSES, Columns, choose
from braided.tables.csv_file import DELIMITERS, wrong_width
from braided.tables.sources import Frame
from braided.validate import LARGEST_VALUE

LINE_BYTES = 1 << 20  # at most
NAME_CHARACTERS = 1000  # of a stream, at most
LARGEST_TIME = 1 << 60  # so that differences of times fit in 64 bits
MAX_CANDIDATES = 20  # lines that may turn out to be the header
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")  # control characters, and unpaired surrogates
DECIMAL = re.compile(r"-?\d{1,18}(\.\d+)?", re.ASCII)
LONG_INTEGER = re.compile(r"[+-]?\d{20,}", re.ASCII)  # more than 64 bits: the sender's mistake, as in JSON
NAME_REMEDY = f"write a name of at most {NAME_CHARACTERS:,} characters, without control characters"
NUMBER_REMEDY = f"write a finite number, of at most {LARGEST_VALUE:g} or 64 bits, or NA"
DATE = re.compile(r"\s*\d{4}-\d\d-\d\d", re.ASCII)


class OutOfOrderError(InputError):
    """A line arrives too late, or for the second time."""


class Row(NamedTuple):
    """The content of a line: one value, or one per stream if the input is wide; NaN where it is missing."""

    time: int  # microseconds, or a whole number
    is_dated: bool
    is_utc: bool
    values: dict[str, float]  # by stream
    extras: dict[str, list[float]]

    def insist_new(self, other: Row, number: int) -> None:
        """Refuse another line of the round that repeats a stream."""
        if twice := self.values.keys() & other.values.keys():
            names = cells.listed(sorted(twice))
            raise OutOfOrderError(f"line {number} gives {names} for the second time in a round: send each once")

    def with_more(self, other: Row) -> Row:
        """Return this with the values of another row of the same time."""
        return self._replace(values=self.values | other.values, extras=self.extras | other.extras)

    def without(self, tasks: Sequence[str]) -> Row:
        """Return this without some streams."""
        values = {task: value for task, value in self.values.items() if task not in tasks}
        return self._replace(values=values, extras={task: self.extras[task] for task in values})


Check = Callable[[Row], Row]  # returns the row to keep, or refuses it by an InputError


class Header(NamedTuple):
    """A line that is the header of a CSV, or may turn out to be."""

    number: int
    names: list[str]
    delimiter: str
    rank: int  # 0 if it names the time, 1 if it may, 2 if it looks more like a row
    fault: InputError  # what is wrong with the line if it is not the header


def read_lines(file: BinaryIO) -> Iterator[tuple[int, bytes | InputError]]:
    """Yield the lines of a file with their numbers, each as soon as its end has arrived, in bounded memory.

    A line that is longer than LINE_BYTES is dropped while it is read, and an InputError is yielded in its place.
    """
    number = 0
    try:
        while part := file.readline(LINE_BYTES):
            line, size, number = part, len(part), number + 1
            while len(part) == LINE_BYTES and not part.endswith(b"\n"):
                part = file.readline(LINE_BYTES)
                size += len(part)
            yield number, line if size == len(line) else _too_long(number, size)
    except OSError as error:
        raise FileError(f"standard input can't be read ({error.strerror or error}): check what is piped in") from error


def _too_long(number: int, size: int) -> InputError:
    return InputError(f"line {number} has {size:,} bytes: send at most {LINE_BYTES:,}, and a newline after each row")


@final
class Lines:
    """Parses lines; columns are those given, or named, or guessed from the first row.

    `rejected` collects an InputError for each line that might have been the header of a CSV, and was not.
    """

    def __init__(
        self,
        time: str | None = None,
        task: str | None = None,
        value: str | None = None,
        features: Sequence[str] = (),
        known: Sequence[str] = (),
        columns: Columns | None = None,
        kind: Any = None,  # Arrow type of the times; decided by the first row if not given
    ) -> None:
        self._named = (time, task, value, tuple(features), tuple(known))
        self.form: Literal["json", "csv"] | None = None
        self.columns = columns
        self.rejected: list[InputError] = []
        self._kind = kind
        self._header: Header | None = None
        self._candidates: list[Header] = []

    def unsettled(self) -> Lines:
        """Return a parser with the same form and header that has not seen a row yet."""
        fresh = Lines(*self._named)
        fresh.form, fresh._header, fresh.rejected = self.form, self._header, self.rejected
        return fresh

    def parse(self, line: str | bytes, number: int, check: Check = lambda row: row) -> Row | None:
        """Return the row in a line, or None for an empty line, a header, and a line that may be a header.

        A line that can't be used, or whose row `check` refuses, raises an InputError and changes nothing. The streams
        of a wide input are the columns of its first row.
        """
        if len(line) > LINE_BYTES:
            raise _too_long(number, len(line))
        try:
            text = (line if isinstance(line, str) else line.decode()).strip("\r\n\ufeff")
        except UnicodeDecodeError as error:
            raise InputError(f"line {number} is not UTF-8 text ({error.reason}): send it as UTF-8") from error
        if not text or text.isspace():
            return None
        if self._header is not None:
            fields = _record(text, self._header, number)
            return None if fields is None else self._accept(*self._parsed(fields, number), check)
        if self.form == "json" or text.lstrip().startswith("{"):
            row = self._accept(*self._parsed(_object(text, number), number), check)
            if self.form is None:
                self._settle("json", None)
            return row
        return self._before_the_header(text, number, check)

    def _before_the_header(self, text: str, number: int, check: Check) -> Row | None:
        """Try a line as a row below each candidate for the header, or keep it as one more candidate."""
        fault = None
        for header in sorted(self._candidates, key=lambda header: (header.rank, -header.number)):
            try:
                fields = _record(text, header, number)
                if fields is None:
                    return None
                parsed = self._parsed(fields, number, header.names)
            except InputError as error:
                fault = fault or error
                continue
            row = self._accept(*parsed, check)
            self._settle("csv", header)
            return row
        self._candidates.append(self._candidate(text, number, fault))
        if len(self._candidates) > MAX_CANDIDATES:  # the first and the last ones stay: a header is near its rows
            rank = max(header.rank for header in self._candidates)
            unlikely = [header for header in self._candidates if header.rank == rank]
            dropped = unlikely[len(unlikely) // 2]
            self._candidates.remove(dropped)
            self.rejected.append(dropped.fault)
        return None

    def _candidate(self, text: str, number: int, fault: InputError | None) -> Header:
        """Return a line as a header, or refuse it."""
        fault = fault or InputError(
            f"line {number} is {cells.shown(text)}: send JSON objects, or the header of a CSV and then its rows"
        )
        delimiter = max(DELIMITERS, key=text.count)
        try:
            names = [name.strip() for name in next(csv.reader([text], delimiter=delimiter, strict=True))]
        except csv.Error as error:
            raise fault from error
        if len(names) < 2 or any(map(_is_odd, names)) or any(map(DATE.match, names)):
            raise fault
        time = self._named[0] if self.columns is None else self.columns.time
        names_time = time in names if time else any(name.lower() in ("", *GUESSES["time"]) for name in names)
        looks_like_row = any(name.lower() in cells.MISSING or DECIMAL.fullmatch(name) for name in names)
        return Header(number, names, delimiter, 0 if names_time else 1 + looks_like_row, fault)

    def _settle(self, form: Literal["json", "csv"], header: Header | None) -> None:
        self.form, self._header = form, header
        self.rejected += [other.fault for other in self._candidates if other is not header]
        self._candidates = []

    def _parsed(self, fields: dict[str, Any], number: int, names: Sequence[str] = ()) -> tuple[Row, Columns, Any]:
        """Return the row that fields give, and the columns and the kind of time that it was read with."""
        place = f"line {number}"
        known = self._named[4] if self.columns is None else self.columns.known
        if known and not names:  # a plan has no value yet, and a value may come without what was planned before
            value = self._named[2] if self.columns is None else self.columns.value
            fields = dict.fromkeys((*known, *([value] if value else []))) | fields
        columns = self.columns or self._choose(fields, names or tuple(fields), place)
        time, kind = _time(fields, columns.time, self._kind, place)
        if columns.task is None:
            values = {name: _number(fields, name, place) for name in columns.tasks if name in fields}
            extras: dict[str, list[float]] = {name: [] for name in values}
            if not values:
                missing, there = cells.listed(columns.tasks), cells.listed(list(fields))
                raise InputError(f"{place} has none of the streams {missing}, it has {there}: give every field")
        else:
            task = _task(fields, columns.task, place)
            values = {task: _number(fields, columns.value, place)}
            extras = {task: [_number(fields, name, place) for name in columns.features]}
        return Row(time, str(kind) != "int64", cells.is_utc(kind), values, extras), columns, kind

    def _choose(self, fields: dict[str, Any], names: Sequence[str], place: str) -> Columns:
        import pyarrow as pa  # slow to import, here and below

        for name in filter(_is_odd, names):
            raise InputError(f"{place} has a field called {cells.shown(name)}: {NAME_REMEDY}")
        arrays = [_as_arrow(fields[name]) or _as_arrow(ascii(fields[name])) for name in names]
        source = Frame(pa.Table.from_arrays(arrays, list(names)))
        source.place = place
        return choose(source, *self._named)

    def _accept(self, row: Row, columns: Columns, kind: Any, check: Check) -> Row:
        row = check(row)
        self.columns, self._kind = columns, kind
        return row


# From a line to its fields -----------------------------------------------------------------------------------------


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = Counter(name for name, _ in pairs)
        raise InputError(f"{cells.shown(max(names, key=names.__getitem__))} appears twice")
    return fields


DECODER = json.JSONDecoder(object_pairs_hook=_unique)


def _object(text: str, number: int) -> dict[str, Any]:
    try:
        fields = DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        why = "an integer has thousands of digits"
        if isinstance(error, json.JSONDecodeError):
            why = f"{error.msg} at column {error.colno}"
        elif isinstance(error, InputError | RecursionError):
            why = str(error)
        raise InputError(f"line {number} is not JSON ({why}): write one object per line") from error
    if not isinstance(fields, dict):
        raise InputError(f"line {number} is {cells.shown(text)}: write a JSON object, in braces")
    for name, value in fields.items():
        if isinstance(value, bool | list | dict):
            what = str(value) if isinstance(value, bool) else "a list" if isinstance(value, list) else "an object"
            raise InputError(f"{cells.shown(name)} at line {number} is {what}: write a number, a text or null")
    return fields


def _record(text: str, header: Header, number: int) -> dict[str, Any] | None:
    """The fields of a CSV line, or None if it repeats the header."""
    try:
        record = next(csv.reader([text], delimiter=header.delimiter, strict=True))
    except csv.Error as error:
        raise InputError(f"line {number} is not valid CSV ({error}): close every quote") from error
    if len(record) != len(header.names):
        raise wrong_width(f"line {number}", len(record), len(header.names), header.delimiter)
    if record[0].strip() == header.names[0] and [field.strip() for field in record] == header.names:
        return None
    return dict(zip(header.names, record, strict=True))


# From a field to a time, a name or a number ------------------------------------------------------------------------


def _field(fields: dict[str, Any], name: str, place: str) -> Any:
    if name not in fields:
        raise InputError(f"{place} has no {cells.shown(name)}, it has {cells.listed(list(fields))}: give every field")
    return fields[name]


def _as_arrow(value: Any) -> Any:
    """A value as an Arrow array, or None if it is an integer of more than 64 bits, or has an unpaired surrogate."""
    import pyarrow as pa

    try:
        return pa.array([value])
    except (OverflowError, UnicodeError):
        return None


def _cell(value: Any, name: str, place: str, remedy: str) -> Any:
    """A value as an Arrow array, to be read by the rules of tables."""
    array = _as_arrow(value)
    if array is None:
        raise InputError(f"{name} at {place} is {cells.shown(value)}: {remedy}")
    return array


def _time(fields: dict[str, Any], name: str, kind: Any, place: str) -> tuple[int, Any]:
    value = _field(fields, name, place)
    times, kind = cells.times(_cell(value, name, place, cells.TIME_REMEDY), kind, name, lambda _: place)
    if abs(int(times[0])) > LARGEST_TIME:
        limits = f"{-LARGEST_TIME} and {LARGEST_TIME}"
        raise InputError(f"{name} at {place} is {cells.shown(value)}: it must lie between {limits}")
    return int(times[0]), kind


def _task(fields: dict[str, Any], name: str, place: str) -> str:
    value = _field(fields, name, place)
    task: str = value.strip() if isinstance(value, str) else ""
    if not task:
        task = cells.labels(_cell(value, name, place, "write a name"), name, lambda _: place)[0][0]
    if _is_odd(task):
        raise InputError(f"{name} at {place} is {cells.shown(task)}: {NAME_REMEDY}")
    return task


def _is_odd(name: str) -> bool:
    return len(name) > NAME_CHARACTERS or (not name.isprintable() and CONTROL.search(name) is not None)


def _number(fields: dict[str, Any], name: str, place: str) -> float:
    value = _field(fields, name, place)
    if isinstance(value, float) or (isinstance(value, str) and DECIMAL.fullmatch(value)):  # fast path
        number = float(value)
    elif isinstance(value, str) and LONG_INTEGER.fullmatch(value.strip()):
        number = math.inf
    else:
        number = float(cells.numbers(_cell(value, name, place, NUMBER_REMEDY), name, lambda _: place)[0])
    if abs(number) > LARGEST_VALUE:
        raise InputError(f"{name} at {place} is {cells.shown(value)}: {NUMBER_REMEDY}")
    return number
