"""Lines: rows that come one at a time, as JSON objects or as CSV after a header; by the same rules as tables.

>>> lines = Lines()
>>> lines.parse('{"time": "2024-01-01T00:00", "site": "north", "wind": 5.5}', 1)
Row(time=1704067200000000, is_dated=True, values={'north': 5.5}, extras={'north': []})
>>> lines.parse('{"time": "2024-01-01T00:00", "site": "south", "wind": "calm"}', 2)
Traceback (most recent call last):
braided.errors.InputError: wind at line 2 is 'calm': write a number, or NA where it is missing
"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, final

from braided.errors import InputError
from braided.streams import cells
from braided.streams.columns import Columns, choose
from braided.streams.sources import DELIMITERS, Frame


class Row(NamedTuple):
    """What a line says: one value, or in a wide form one per task; NaN where it is missing."""

    time: int  # microseconds, or a whole number
    is_dated: bool
    values: dict[str, float]  # by task
    extras: dict[str, list[float]]

    def with_more(self, other: Row) -> Row:
        """Return this with the values of another at the same time."""
        return Row(self.time, self.is_dated, self.values | other.values, self.extras | other.extras)

    def without(self, tasks: Sequence[str]) -> Row:
        """Return this without some tasks."""
        kept = [task for task in self.values if task not in tasks]
        values, extras = {task: self.values[task] for task in kept}, {task: self.extras[task] for task in kept}
        return Row(self.time, self.is_dated, values, extras)


@final
class Lines:
    """Reads lines; columns are guessed from the first row where they are not named."""

    def __init__(
        self,
        time: str | None = None,
        task: str | None = None,
        value: str | None = None,
        features: Sequence[str] = (),
    ) -> None:
        self._named = (time, task, value, tuple(features))
        self.form: Literal["json", "csv"] | None = None
        self.columns: Columns | None = None
        self._kind: Any = None  # of the times
        self.is_utc = False
        self._header: list[str] = []
        self._delimiter = ","

    def parse(self, line: str, number: int) -> Row | None:
        """Return what a line says, or None for an empty one and for the header of a CSV; a bad line leaves no trace.

        The columns of a wide form, a field per task, are those of its first row.
        """
        text = line.strip("\r\n\ufeff")
        if not text.strip():
            return None
        form: Literal["json", "csv"] = self.form or ("json" if text.lstrip().startswith("{") else "csv")
        if form == "csv" and not self._header:
            self._delimiter = max(DELIMITERS, key=text.count)
            self._header = [name.strip() for name in next(csv.reader([text], delimiter=self._delimiter))]
            self.form = form
            return None
        fields = self._object(text, number) if form == "json" else self._record(text, number)
        row = self._row(fields, number)
        self.form = form
        return row

    @staticmethod
    def _object(text: str, number: int) -> dict[str, Any]:
        try:
            fields = json.loads(text)
        except ValueError as error:
            raise InputError(f"line {number} is no JSON ({error}): write one object per line") from error
        if not isinstance(fields, dict):
            raise InputError(f"line {number} is {text!r:.80}: write a JSON object, in braces")
        for name, value in fields.items():
            if isinstance(value, bool | list | dict):
                raise InputError(f"{name} at line {number} is {value!r:.80}: write a number, a text or null")
        return fields

    def _record(self, text: str, number: int) -> dict[str, Any]:
        try:
            record = next(csv.reader([text], delimiter=self._delimiter, strict=True))
        except csv.Error as error:
            raise InputError(f"line {number} is no CSV ({error}): close every quote") from error
        if len(record) != len(self._header):
            raise InputError(
                f"line {number} has {len(record)} field{'s' * (len(record) > 1)}, the header {len(self._header)}: "
                f"quote a field that holds a {DELIMITERS[self._delimiter]}"
            )
        return dict(zip(self._header, record, strict=True))

    def _row(self, fields: dict[str, Any], number: int) -> Row:
        import pyarrow as pa  # slow to import

        def where(_: int) -> str:
            return f"line {number}"

        def cell(name: str) -> Any:
            if name not in fields:
                raise InputError(
                    f"line {number} has no {name!r}, it has {', '.join(map(repr, fields))}: give every field"
                )
            return pa.array([fields[name]])

        columns = self.columns
        if columns is None:
            source = Frame(pa.table({name: [value] for name, value in fields.items()}))
            source.place = where(0)
            columns = choose(source, *self._named)
        times, kind = cells.times(cell(columns.time), self._kind, columns.time, where)
        if columns.task is None:
            names = [name for name in columns.tasks if name in fields]
            values = {name: float(cells.numbers(cell(name), name, where)[0]) for name in names}
            extras: dict[str, list[float]] = {name: [] for name in names}
        else:
            task = cells.labels(cell(columns.task), columns.task, where)[0][0]
            value, *more = (
                float(cells.numbers(cell(name), name, where)[0]) for name in (columns.value, *columns.features)
            )
            values, extras = {task: value}, {task: more}
        self.columns, self._kind, self.is_utc = columns, kind, cells.is_utc(kind)
        return Row(int(times[0]), str(kind) != "int64", values, extras)
