"""Where rows come from: CSV and Parquet files and data frames, a batch at a time, each row with its place.

Nothing is read with the threads of pyarrow: they abort a process that ends soon after.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import warnings
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np

from braided.errors import FileError, FileWarning, InputError, unreadable
from braided.graph import Indexed, Table
from braided.tables.panel import Panel
from braided.types import Ints

SUFFIXES = (".csv", ".csv.gz", ".parquet", ".pq", ".tsv", ".tsv.gz")
SAMPLE = 1000  # rows from which the columns are guessed
LONGEST = 1 << 24  # bytes of one record
BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # of byte order
DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab"}


class Batch(NamedTuple):
    """Some rows: Arrow arrays by name, the line or row of each, and the share of the source that is read with them."""

    columns: dict[str, Any]
    places: Ints
    share: float


class Source(ABC):
    """Rows of one file or data frame: its name for people, where it is, its columns, and how heavy it weighs."""

    unit = "row"

    def __init__(self, name: str, place: str, size: int) -> None:
        self.name = name
        self.place = place
        self.size = size
        self.changed = 0  # when, of a file
        self.file: Path | None = None
        self._notes: set[str] = set()
        self.names: list[str] = []

    def batches(self, names: Sequence[str], rows: int, labels: Sequence[str] = ()) -> Iterator[Batch]:
        """Yield columns, about `rows` at a time; text of the `labels` may come encoded as a dictionary."""
        empty = True
        for batch in self._batches(names, rows, labels):
            empty = empty and not len(batch.places)
            yield batch
        if empty:
            raise InputError(f"{self.place} has a header and no rows: give one row per sample")

    def sample(self, names: Sequence[str]) -> dict[str, Any]:
        """Return the first rows of some columns."""
        import pyarrow as pa  # slow to import, here and below

        parts: list[dict[str, Any]] = []
        read = 0
        try:
            for columns, places, _ in self.batches(names, SAMPLE):
                parts.append(columns)
                read += len(places)
                if read >= SAMPLE:
                    break
        except InputError:
            if not parts:
                raise  # else it is told when its rows are read
        return {name: pa.chunked_array([part[name] for part in parts]).slice(0, SAMPLE) for name in names}

    @abstractmethod
    def _batches(self, names: Sequence[str], rows: int, labels: Sequence[str]) -> Iterator[Batch]:
        """As `batches`, which checks that there is a row."""

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Faults of a file, told as such."""
        import pyarrow as pa

        try:
            yield
        except (OSError, EOFError, zlib.error, pa.ArrowException) as error:
            raise unreadable(self.place, error, "it may be cut short or damaged; copy it again") from error

    def _note(self, text: str) -> None:
        """Warn, once however often the file is read."""
        if text not in self._notes:
            self._notes.add(text)
            warnings.warn(text, FileWarning, stacklevel=2)

    def _note_change(self) -> None:
        """Note that the file has changed since it was opened."""
        if self.file is not None and self.file.stat().st_mtime_ns != self.changed:
            self._note(f"{self.place} changed while it was being read: read it again when it is complete")


def open_sources(data: Any, block_bytes: int) -> list[Source]:
    """Return what a path, a list of paths, or a data frame holds, all with the same columns."""
    if isinstance(data, str | PathLike):
        return [_open_file(data, block_bytes)]
    if not isinstance(data, list | tuple):
        return [Frame(data)]
    if not data:
        raise InputError("no file: give the path of one at least")
    sources = [_open_file(path, block_bytes) for path in data]
    first, *others = sources
    for other in others:
        differ = (set(other.names) ^ set(first.names)) - {""}
        if differ:
            raise InputError(
                f"{other.place} and {first.place} differ in the columns {', '.join(map(repr, sorted(differ)))}: "
                "files that are read as one table need the same ones"
            )
    return sources


def is_there(path: str | PathLike[str]) -> bool:
    """Tell whether a path exists; a folder that may not be entered is an error."""
    try:
        Path(path).stat()
    except PermissionError as error:
        raise unreadable(path, error) from error
    except (OSError, ValueError):  # also a name that no file can have
        return False
    return True


def _open_file(path: Any, block_bytes: int) -> Source:
    if not isinstance(path, str | PathLike):
        raise InputError(f"a {type(path).__name__} is no path: give the paths of files, or one data frame")
    file = Path(path)
    if not is_there(file):
        raise FileError(f"{file} does not exist: check the path")
    if file.is_dir():
        raise FileError(f"{file} is a folder: give the path of one file")
    suffix = next((end for end in SUFFIXES if file.name.lower().endswith(end)), None)
    if suffix is None:
        raise FileError(f"{file} is no table that can be read: its name must end in {', '.join(SUFFIXES)}")
    if not file.stat().st_size:
        raise _is_empty(file)
    source = Parquet(file) if suffix in (".parquet", ".pq") else Csv(file, block_bytes)
    source.file, source.changed = file, file.stat().st_mtime_ns
    return source


def _is_empty(file: Path) -> InputError:
    return InputError(f"{file} is empty: give a header and one row per sample")


@final
class Frame(Source):
    """A panel, a data frame of pandas or polars, or an Arrow table."""

    def __init__(self, data: Any) -> None:
        import pyarrow as pa

        super().__init__("data frame", "the data frame", 1)
        if isinstance(data, Panel):
            self.name = self.place = data.name
            data = pa.table({"time": data.times} | dict(zip(data.tasks, data.values.T, strict=True)))
        try:
            is_pandas = isinstance(data, Table) and isinstance(data, Indexed)
            table = pa.Table.from_pandas(data, preserve_index=True, nthreads=1) if is_pandas else pa.table(data)
        except (TypeError, ValueError, pa.ArrowException) as error:
            raise InputError(
                f"a {type(data).__name__} is no table that can be read ({error}): give a path, a list of paths, or a "
                "data frame of pandas, polars or Arrow with one type per column"
            ) from error
        self.names = ["" if name.startswith("__index_level_") else name for name in table.column_names]
        self._table = table.rename_columns(self.names)
        self.size = len(table)

    def _batches(self, names: Sequence[str], rows: int, labels: Sequence[str]) -> Iterator[Batch]:
        yield from _numbered(self._table.select(names).to_batches(max_chunksize=rows), names, len(self._table))


@final
class Parquet(Source):
    """A Parquet file."""

    def __init__(self, file: Path) -> None:
        super().__init__(file.name, str(file), file.stat().st_size)
        with self._reading(), self._open() as table:
            self.names = table.schema_arrow.names

    def _open(self, labels: Sequence[str] = ()) -> Any:
        from pyarrow.parquet import ParquetFile

        return ParquetFile(self.place, pre_buffer=False, read_dictionary=list(labels))

    def _batches(self, names: Sequence[str], rows: int, labels: Sequence[str]) -> Iterator[Batch]:
        with self._reading():
            table = self._open(labels)
        with table:
            batches = table.iter_batches(rows, columns=list(names), use_threads=False)
            yield from _numbered(self._each(batches), names, table.metadata.num_rows)
        self._note_change()

    def _each(self, batches: Iterator[Any]) -> Iterator[Any]:
        while True:
            with self._reading():
                batch = next(batches, None)
            if batch is None:
                return
            yield batch


def _numbered(batches: Any, names: Sequence[str], total: int) -> Iterator[Batch]:
    """Batches of Arrow with the numbers of their rows."""
    read = 0
    for batch in batches:
        places = np.arange(read + 1, read + 1 + len(batch))
        read += len(batch)
        yield Batch({name: batch.column(name) for name in names}, places, read / total)


@final
class Csv(Source):
    """A CSV file, plain or through gzip: all columns as text, so that a site 007 keeps its zeros.

    It is cut into blocks of whole records, so that every record knows its line.
    """

    unit = "line"

    def __init__(self, file: Path, block_bytes: int) -> None:
        super().__init__(file.name, str(file), file.stat().st_size)
        self._block_bytes = block_bytes
        self._delimiter = ","
        with self._open() as (_, stream), self._reading():
            texts = iter(lambda: stream.readline(LONGEST), b"")
            first = next((text for text in texts if not text.isspace()), None)
        if first is None:
            raise _is_empty(file)
        unquoted = re.sub(rb'"[^"]*"?', b"", first)
        self._delimiter = max(DELIMITERS, key=lambda mark: unquoted.count(mark.encode()))
        for text, starts, lines, _ in self._blocks(SAMPLE):
            (_, header), *others = self._records(text[: starts[1]] if len(starts) > 1 else text, int(lines[0]))
            if others:
                raise self._odd_line_ends(text, lines)
            self.names = [name.strip() for name in header]
            return
        raise InputError(f"{file} is no CSV table (it has no header): write a header and one row per sample")

    def _batches(self, names: Sequence[str], rows: int, labels: Sequence[str]) -> Iterator[Batch]:
        keys = {name: str(place) for place, name in enumerate(self.names)}
        columns = {name: keys[name] for name in names}
        size = min(self._block_bytes, 32 * rows * len(self.names))
        is_first = True
        for text, starts, lines, share in self._blocks(size):
            if is_first:  # the header
                text, lines = (text[starts[1] :] if len(starts) > 1 else b""), lines[1:]
                is_first = False
            if len(lines):
                table = self._parse(text, lines, list(columns.values()))
                yield Batch({name: table.column(key).combine_chunks() for name, key in columns.items()}, lines, share)

    @contextmanager
    def _open(self) -> Iterator[tuple[Any, Any]]:
        """The file, to see how far it is read, and its text."""
        with self._reading():
            raw = Path(self.place).open("rb")  # noqa: SIM115
        with raw:
            yield raw, gzip.GzipFile(fileobj=raw) if self.name.lower().endswith(".gz") else raw

    def _blocks(self, size: int) -> Iterator[tuple[bytes, Ints, Ints, float]]:
        """Blocks of about `size` bytes: text, where its records start in it and in the file, share read; none empty."""
        with self._open() as (raw, stream):
            line = 1
            is_unclosed = False
            with self._reading():
                rest = stream.read(len(BYTE_ORDER_MARK))
            rest = b"" if rest == BYTE_ORDER_MARK else rest
            is_last = False
            while not is_last:
                with self._reading():
                    fresh = stream.read(self._room(stream, max(size, len(rest))))
                is_last = not fresh
                text = rest + fresh
                if is_last:
                    text = self._ended(text, raw)
                newlines, ends, is_unclosed = _scan(text, self._delimiter)
                if is_last and is_unclosed:
                    ends = np.append(ends, len(text))
                if not len(ends):
                    if len(text) > LONGEST:
                        raise self._unclosed(line, f"{LONGEST >> 20} MB and no end")
                    rest = text
                    continue
                text, rest = text[: ends[-1]], text[ends[-1] :]
                self._check_text(text, line)
                starts = np.append(0, ends[:-1])
                lines = line + np.searchsorted(newlines, starts)
                bare = np.frombuffer(text, np.uint8)
                filled = (bare[starts] != ord("\n")) & ((bare[starts] != ord("\r")) | (ends - starts > 2))
                line += int(np.searchsorted(newlines, ends[-1]))
                if filled.any():
                    starts = starts[filled]
                    yield text[starts[0] :], starts - starts[0], lines[filled], raw.tell() / self.size
            if is_unclosed:
                raise self._unclosed(int(lines[-1]), "the file ends first")
        self._note_change()

    def _room(self, stream: Any, wanted: int) -> int:
        """How many bytes to read: no more than the file had when it was opened, so that every pass reads the same rows.

        A gzip file does not tell its uncompressed length.
        """
        return wanted if isinstance(stream, gzip.GzipFile) else min(wanted, self.size - stream.tell())

    def _ended(self, text: bytes, raw: Any) -> bytes:
        """Return what is left at the end of the file with a line break, or nothing if its last line is cut short."""
        if not text or text.endswith(b"\n"):
            return text
        _, ends, _ = _scan(text, self._delimiter)
        whole, last = text[: ends[-1]] if len(ends) else b"", text[ends[-1] :] if len(ends) else text
        is_short = False
        if self.names and last.strip() and b"\n" not in last:
            delimiter = re.escape(self._delimiter).encode()
            unquoted = re.sub(rb'(?:^|(?<=%b))"[^"]*(?:"|$)' % delimiter, b"", last)
            goes_on = raw.read(1) not in (b"", b"\n", b"\r")  # the file has grown since
            is_short = goes_on or 1 + unquoted.count(self._delimiter.encode()) < len(self.names)
        if is_short:
            shown = last.decode(errors="replace")
            self._note(f"the last line of {self.place} is incomplete and was skipped: {shown!r:.80}")
            return whole
        self._note(f"{self.place} does not end in a line break: its last line was used, but may be incomplete")
        return text + b"\n"

    def _unclosed(self, line: int, why: str) -> InputError:
        return InputError(f"line {line} of {self.place} starts a record without end ({why}): close every quote")

    def _odd_line_ends(self, text: bytes, lines: Ints) -> InputError:
        line = lines[0] + len(re.split(rb"\r(?!\n)", text, maxsplit=1)[0].split(b"\n")) - 1
        return InputError(f"line {line} of {self.place} has a lone \\r: end all lines in \\n or in \\r\\n")

    def _check_text(self, text: bytes, line: int) -> None:
        if not text.isascii():
            try:
                text.decode()
            except UnicodeDecodeError as error:
                line += text.count(b"\n", 0, error.start)
                raise InputError(
                    f"line {line} of {self.place} is no UTF-8 text ({error.reason}): save it as UTF-8"
                ) from error

    def _parse(self, text: bytes, lines: Ints, keys: list[str]) -> Any:
        """The columns with these numbers."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        try:
            table = arrow_csv.read_csv(
                io.BytesIO(text),
                read_options=arrow_csv.ReadOptions(
                    use_threads=False, block_size=len(text) + 1, column_names=[str(i) for i in range(len(self.names))]
                ),
                parse_options=arrow_csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=True),
                convert_options=arrow_csv.ConvertOptions(
                    include_columns=keys, column_types=dict.fromkeys(keys, pa.string()), check_utf8=False
                ),
            )
        except pa.ArrowInvalid as error:
            for line, fields in self._records(text, int(lines[0])):
                if len(fields) != len(self.names):
                    raise InputError(
                        f"line {line} of {self.place} has {len(fields)} field{'s' * (len(fields) > 1)}, the header "
                        f"{len(self.names)}: quote a field that holds a {DELIMITERS[self._delimiter]}, and close every "
                        "quote"
                    ) from error
            raise InputError(
                f"{self.place} is no CSV table ({error}): write a header and one row per sample"
            ) from error
        if len(table) != len(lines):
            raise self._odd_line_ends(text, lines)
        return table

    def _records(self, text: bytes, line: int) -> Iterator[tuple[int, list[str]]]:
        """Records, and the line on which each starts; too slow for more than headers and faults."""
        reader = csv.reader(io.StringIO(text.decode(), newline=""), delimiter=self._delimiter)
        before = line
        try:
            for fields in reader:
                if fields:  # pyarrow, too, passes over empty lines
                    yield line, fields
                line = before + reader.line_num
        except csv.Error as error:
            raise self._unclosed(line, str(error)) from error


def _scan(text: bytes, delimiter: str) -> tuple[Ints, Ints, bool]:
    r"""Where the line ends are, where the records end (past the line end), and whether a quote is open at the end.

    >>> _scan(b'a,"b\nc"\n5" pipe,d\n', ",")
    (array([ 4,  7, 17]), array([ 8, 18]), False)
    """
    codes = np.frombuffer(text, np.uint8)
    newlines = np.flatnonzero(codes == ord("\n"))
    if b'"' not in text:
        return newlines, newlines + 1, False
    quotes = np.flatnonzero(codes == ord('"'))
    before = np.where(quotes == 0, ord("\n"), codes[quotes - 1])
    opens = (before == ord(delimiter)) | (before == ord("\n")) | (before == ord("\r"))
    if not (opens | (before == ord('"')))[::2].all():  # some are no more than text, in the middle of a field
        real: list[int] = []
        for quote, at_start in zip(quotes.tolist(), opens.tolist(), strict=True):
            if len(real) % 2 or at_start or real[-1:] == [quote - 1]:
                real.append(quote)
        quotes = np.array(real, np.intp)
    ends = newlines[np.searchsorted(quotes, newlines) % 2 == 0] + 1
    return newlines, ends, len(quotes) % 2 == 1
