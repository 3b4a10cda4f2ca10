"""Rounds of a table that may be larger than memory: read in batches, sorted within a window, a chunk at a time.

>>> import pyarrow as pa
>>> rounds = open_rounds(pa.table({"year": [2001, 2003, 2002], "north": [5.5, None, 7.0], "south": [4.0, 6.0, 4.5]}))
>>> rounds
Rounds('data frame': wide table: time 'year', a column for each of 2 streams (guessed))
>>> next(rounds.chunks()).values
array([[5.5, 4. ],
       [7. , 4.5],
       [nan, 6. ]])
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, final

import numpy as np

from braided.errors import InputError
from braided.tables import cells
from braided.tables.batches import Source
from braided.tables.columns import BY_NAME, Columns, choose
from braided.tables.sources import open_sources
from braided.types import Flags, Floats, Ints, Times
from braided.validate import count

READ_ROWS = 1 << 17  # at a time, at most
PLACES_PER_FILE = 1 << 40  # a place is the number of a file times this, plus the line or row


class Chunk(NamedTuple):
    """Some rounds, in order of time."""

    times: Times  # (n,), rising, and after those of the chunk before
    tasks: tuple[str, ...]  # the streams seen so far; a later chunk only appends
    values: Floats  # (n, tasks), NaN where a stream has no value
    extras: Floats  # (n, tasks, features), NaN where one is missing

    def rows(self, which: slice) -> Chunk:
        """Return some of the rounds."""
        return Chunk(self.times[which], self.tasks, self.values[which], self.extras[which])

    def without(self, tasks: Sequence[str]) -> Chunk:
        """Return the rounds without some streams."""
        kept = [place for place, task in enumerate(self.tasks) if task not in tasks]
        names = tuple(self.tasks[place] for place in kept)
        return Chunk(self.times, names, self.values[:, kept], self.extras[:, kept]) if tasks else self


def stacked(chunks: Sequence[Chunk]) -> Chunk:
    """Return chunks that follow each other as one; a stream is missing before it is first seen."""
    tasks = chunks[-1].tasks

    def column(arrays: list[Floats]) -> Floats:
        whole = np.full((sum(map(len, arrays)), len(tasks), *arrays[0].shape[2:]), np.nan)
        for array, end in zip(arrays, np.cumsum([len(array) for array in arrays]), strict=True):
            whole[end - len(array) : end, : array.shape[1]] = array
        return whole

    times = np.concatenate([chunk.times for chunk in chunks])
    return Chunk(times, tasks, column([chunk.values for chunk in chunks]), column([chunk.extras for chunk in chunks]))


def open_rounds(
    source: Any,
    *,
    time: str | None = None,
    task: str | None = None,
    value: str | None = None,
    features: Sequence[str] = (),
    known: Sequence[str] = (),
    batch_rows: int = 500_000,
    sort_rows: int = 2_000_000,
    block_bytes: int = 1 << 22,
) -> Rounds:
    """Return the rounds of a CSV or Parquet file, of a list of files read as one, or of a data frame.

    A table is long, with a column of times, one of streams, one of values, and perhaps features of each sample, those
    `known` ahead last; or wide, with a column of times and one of values per stream. Columns that are not named are
    guessed. A chunk has about `batch_rows` samples. Rows may be out of order by up to `sort_rows` samples, which are
    kept in memory.
    """
    features, known = ((one,) if isinstance(one, str) else tuple(one) for one in (features, known))
    sources = open_sources(source, count(block_bytes, "block_bytes"))
    columns = choose(sources[0], time, task, value, features, known)
    kind = cells.first_kind(sources[0].sample([columns.time])[columns.time])
    return Rounds(sources, columns, count(batch_rows, "batch_rows"), count(sort_rows, "sort_rows", least=0), kind)


@final
class Rounds:
    """A table, or several one after the other, as rounds in order of time; made by `open_rounds`.

    `name` and `columns` say what is read, `files` from where, `size` how much (bytes, or rows of a data frame),
    `changed` when it was last changed, and `progress` about which share of it is in the chunks that the current
    iteration has yielded. `is_utc` says, once a row is read, whether times had UTC offsets; then they are UTC.
    `timezone` names the clock that seasons follow, where the source says it (a panel with a timezone does), or is None.
    """

    def __init__(
        self, sources: list[Source], columns: Columns, batch_rows: int, sort_rows: int, kind: Any = None
    ) -> None:
        more = f" and {len(sources) - 1} more" * (len(sources) > 1)
        self.name = sources[0].name + more
        self.place = sources[0].place + more  # for messages
        self.columns = columns
        self.size = sum(source.size for source in sources)
        self.changed = max(source.changed for source in sources)
        self.files = [source.file for source in sources if source.file is not None]
        self.timezone = sources[0].timezone
        self.is_utc = self.timezone is not None
        self.progress = 0.0
        self._sources, self._batch_rows, self._sort_rows = sources, batch_rows, sort_rows
        self._kind = kind  # of the times, where the first rows leave it open (`cells.first_kind`)

    def chunks(self) -> Iterator[Chunk]:
        """Yield the rounds from the start; a row that comes too late to be sorted is refused."""
        self.progress = 0.0
        return _Run(self).chunks()

    def one_stream_only(self, name: str) -> str:
        """Return the error message for a table with a single stream."""
        needed = "sharing needs at least two; add"
        if self.columns.task is None:
            return f"only one stream: {name!r:.80} is the only column of values in {self.place}; {needed} another"
        found = f"column {self.columns.task!r} of {self.place} says {name!r:.80} in every row"
        return f"only one stream: {found}; {needed} the rows of another, or {BY_NAME}"

    def __repr__(self) -> str:
        return f"Rounds({self.name!r}: {self.columns.describe()})"


class _Rows(NamedTuple):
    """Rows of a table as arrays; those of a wide one are all of one task, and hold a number per column."""

    times: Ints
    codes: Ints
    numbers: Floats  # (n, columns)
    places: Ints

    def part(self, which: Any) -> _Rows:
        return _Rows(*(array[which] for array in self))


class _Run:
    """One iteration: rows are read, held back until they are sorted, and laid out as chunks."""

    def __init__(self, rounds: Rounds) -> None:
        self.rounds = rounds
        samples = max(len(rounds.columns.tasks), 1)  # in a row
        self.batch = max(rounds._batch_rows // samples, 1)
        self.window = rounds._sort_rows // samples
        self.share = 0.0  # of the input that is read
        self.rows_read, self.rows_given = 0, 0
        self.kind: Any = rounds._kind  # of the times
        self.codes: dict[str, int] = {}  # of the streams, in the order in which they are read
        self.tasks: list[str] = []  # in the order of the chunks
        self.positions: Ints = np.empty(0, np.int64)  # in it, of each code, or -1

    def chunks(self) -> Iterator[Chunk]:
        """All chunks. What is ready depends on the number of rows alone, not on how they were read.

        Held back are the newest `window` rows, and the rest of their oldest round: it may go on.
        """
        held: list[_Rows] = []
        done: int | None = None
        for rows, is_full in self.steps():
            if done is not None:
                self.refuse_late(rows, done)
            held.append(rows)
            n_ready = sum(len(rows.times) for rows in held) - self.window
            if is_full and n_ready > 0:
                whole = _sorted(held)
                cut = int(np.searchsorted(whole.times, whole.times[n_ready - 1]))
                held = [whole.part(slice(cut, None))]
                if cut:
                    done = int(whole.times[cut - 1])
                    yield from self.lay_out(whole.part(slice(cut)))
        yield from self.lay_out(_sorted(held))

    def steps(self) -> Iterator[tuple[_Rows, bool]]:
        """The rows, cut where a batch is full."""
        room = self.batch
        for number, source in enumerate(self.rounds._sources):
            for rows in self.read(number, source):
                first = 0
                while len(rows.times) - first >= room:
                    yield rows.part(slice(first, first + room)), True
                    first, room = first + room, self.batch
                if first < len(rows.times):
                    yield rows.part(slice(first, None)), False
                    room -= len(rows.times) - first

    def read(self, number: int, source: Source) -> Iterator[_Rows]:
        """The rows of one file, as arrays."""
        columns = self.rounds.columns
        labels = [] if columns.task is None else [columns.task]
        numeric = columns.tasks or (columns.value, *columns.features)
        before = sum(source.size for source in self.rounds._sources[:number])
        names = list(dict.fromkeys([columns.time, *labels, *numeric]))
        rows_before = self.rows_read
        for batch, lines, share in source.batches(names, min(READ_ROWS, self.batch), labels):
            places = lines + number * PLACES_PER_FILE

            def where(row: int, places: Ints = places) -> str:
                return self.where(places[row])

            times, self.kind = cells.times(batch[columns.time], self.kind, columns.time, where)
            self.rounds.is_utc = cells.is_utc(self.kind)
            tasks, rows = ([""], np.zeros(len(times), np.int64))
            if columns.task is not None:
                tasks, rows = cells.labels(batch[columns.task], columns.task, where)
            codes = np.array([self.codes.setdefault(task, len(self.codes)) for task in tasks])[rows]
            self.positions = np.append(self.positions, np.full(len(self.codes) - len(self.positions), -1))
            numbers = [cells.numbers(batch[name], name, where) for name in numeric]
            self.share = (before + share * source.size) / self.rounds.size
            self.rows_read += len(times)
            yield _Rows(times, codes, np.stack(numbers, axis=1), places)
        if self.rows_read == rows_before:
            raise source.no_rows()

    def refuse_late(self, rows: _Rows, done: int) -> None:
        """Refuse a row of a round that has been yielded."""
        for row in np.flatnonzero(rows.times <= done)[:1]:
            time, place = self.shown(rows.times[row]), self.where(rows.places[row])
            raise InputError(
                f"{self.rounds.columns.time} {time} at {place} comes after the rounds up to {self.shown(done)} were "
                "complete: sort the table by time, or raise the number of rows that are sorted, now "
                f"{self.rounds._sort_rows} (--sort-rows, or sort_rows= in Python)"
            )

    def lay_out(self, rows: _Rows) -> Iterator[Chunk]:
        """Sorted rows as chunks of whole rounds, each of about a batch of rows, and not many more cells."""
        first = 0
        while first < len(rows.times):
            newest = rows.times[min(first + self.batch, len(rows.times)) - 1]
            end = int(np.searchsorted(rows.times, newest, "right"))
            starts = first + np.flatnonzero(_starts(rows.times[first:end]))
            n_tasks = np.count_nonzero(self.present(rows.codes[first:end]) | (self.positions >= 0))
            borders = starts[:: max(2 * self.batch // n_tasks, 1)].tolist()
            for low, high in pairwise([*borders, end]):
                self.rows_given += high - low
                self.rounds.progress = max(self.rounds.progress, self.share * self.rows_given / self.rows_read)
                yield self.chunk(rows.part(slice(low, high)))
            first = end

    def present(self, codes: Ints) -> Flags:
        """Which streams have a row, by code."""
        return np.bincount(codes, minlength=len(self.codes)) > 0

    def chunk(self, rows: _Rows) -> Chunk:
        """Rows of whole rounds as a chunk."""
        names = list(self.codes)
        for code in sorted(np.flatnonzero(self.present(rows.codes) & (self.positions < 0)), key=names.__getitem__):
            self.positions[code] = len(self.tasks)
            self.tasks.append(names[code])
        starts = _starts(rows.times)
        slots = (np.cumsum(starts) - 1) * len(self.tasks) + self.positions[rows.codes]
        times = rows.times[starts]
        order = np.arange(len(slots))
        last = np.empty(len(times) * len(self.tasks), np.int64)
        last[slots] = order  # of several rows in one cell, the last one stays
        for row in np.flatnonzero(last[slots] != order)[:1]:
            self.refuse_twice(rows.part([row, last[slots[row]]]))
        grid = np.full((len(last), rows.numbers.shape[1]), np.nan)
        grid[slots] = rows.numbers
        stamps = times if self.kind == "int64" else times.view("datetime64[us]")
        columns = self.rounds.columns
        if columns.form == "wide":
            return Chunk(stamps, columns.tasks, grid, np.empty((*grid.shape, 0)))
        cube = grid.reshape(len(times), len(self.tasks), -1)
        values, extras = np.ascontiguousarray(cube[:, :, 0]), np.ascontiguousarray(cube[:, :, 1:])
        return Chunk(stamps, tuple(self.tasks), values, extras)

    def refuse_twice(self, rows: _Rows) -> None:
        """Refuse two rows of one cell."""
        columns = self.rounds.columns
        name = list(self.codes)[rows.codes[0]]
        whose = f" of {columns.task} {name!r:.80}" * (columns.task is not None)
        what = f"{columns.time} {self.shown(rows.times[0])}{whose} appears twice, at {self.where(*rows.places)}"
        is_one = columns.task is not None and len(self.codes) == 1
        remedy = f", and there is {self.rounds.one_stream_only(name)}" if is_one else f": keep one, or {BY_NAME}"
        raise InputError(what + remedy)

    def shown(self, time: int) -> str:
        """A time as text."""
        return str(time if self.kind == "int64" else cells.to_seconds(np.int64(time).view("datetime64[us]")))

    def where(self, *places: int) -> str:
        """The lines or rows of some places, for messages."""
        files = [self.rounds._sources[place // PLACES_PER_FILE] for place in places]
        numbers = [str(place % PLACES_PER_FILE) for place in places]
        if len(set(files)) == 1:
            return f"{files[0].unit}{'s' * (len(files) > 1)} {' and '.join(numbers)} of {files[0].place}"
        return " and ".join(f"{f.unit} {number} of {f.place}" for f, number in zip(files, numbers, strict=True))


def _starts(times: Ints) -> Flags:
    """Where rounds start."""
    return np.append(True, times[1:] != times[:-1])


def _sorted(pieces: list[_Rows]) -> _Rows:
    """The rows in order of time, and of the file where times are the same; without a copy if they are already."""
    rows = pieces[0] if len(pieces) == 1 else _Rows(*map(np.concatenate, zip(*pieces, strict=True)))
    is_sorted = (rows.times[1:] >= rows.times[:-1]).all()
    return rows if is_sorted else rows.part(np.argsort(rows.times, kind="stable"))
