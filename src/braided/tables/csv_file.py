"""CSV files, cut into blocks of whole records so that every record knows its line, and parsed by pyarrow."""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, final

import numpy as np

from braided.errors import InputError
from braided.files import reading
from braided.tables.batches import SAMPLE_ROWS, Batch, Source
from braided.types import Ints

RECORD_BYTES = 1 << 24  # at most
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab"}
WHAT_TO_WRITE = "write a header and one row per sample"


def wrong_width(place: str, found: int, expected: int, delimiter: str) -> InputError:
    """Return the error for a record with more or fewer fields than the header."""
    return InputError(
        f"{place} has {found} field{'s' * (found > 1)}, the header {expected}: quote a field that holds a "
        f"{DELIMITERS[delimiter]}, and close every quote"
    )


@final
class Csv(Source):
    """A CSV file, plain or gzipped: all columns as text, so that a site 007 keeps its zeros."""

    unit = "line"

    def __init__(self, file: Path, block_bytes: int) -> None:
        super().__init__(file)
        self._block_bytes = block_bytes
        with self._open() as (_, stream):
            texts = iter(lambda: stream.readline(RECORD_BYTES), b"")
            first = next((text for text in texts if not text.isspace()), b"")
        unquoted = re.sub(rb'"[^"]*"?', b"", first)
        self._delimiter = max(DELIMITERS, key=lambda mark: unquoted.count(mark.encode()))
        for text, starts, lines, _ in self._blocks(SAMPLE_ROWS) if first else ():
            record = (text[: starts[1]] if len(starts) > 1 else text).decode()
            try:
                header, *others = filter(None, csv.reader(io.StringIO(record, newline=""), delimiter=self._delimiter))
            except csv.Error as error:
                raise self._unclosed(int(lines[0]), str(error)) from error
            if others:
                raise self._odd_line_ends(text, lines)
            self.names = [name.strip() for name in header]
            return
        raise InputError(f"{file} is empty: {WHAT_TO_WRITE}")

    def batches(self, names: Sequence[str], rows: int, labels: Sequence[str] = ()) -> Iterator[Batch]:
        """Yield columns, about `rows` rows at a time."""
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
        """The raw file, which knows how much of it has been read, and its decompressed text."""
        with reading(self.place), Path(self.place).open("rb") as raw:
            yield raw, gzip.GzipFile(fileobj=raw) if self.name.lower().endswith(".gz") else raw

    def _blocks(self, size: int) -> Iterator[tuple[bytes, Ints, Ints, float]]:
        """Blocks of about `size` bytes: text, where its records start in it, their lines in the file, share read.

        No block is empty. No more is read than the file had when it was opened, so that every pass reads the same rows;
        a gzip file doesn't say how long its text is.
        """
        with self._open() as (raw, stream):
            line = 1
            rest = stream.read(len(BYTE_ORDER_MARK))
            rest = b"" if rest == BYTE_ORDER_MARK else rest
            is_last = is_unclosed = False
            while not is_last:
                room = max(size, len(rest))
                fresh = stream.read(min(room, self.size - raw.tell()) if stream is raw else room)
                is_last = not fresh
                text = self._ended(rest, raw) if is_last else rest + fresh
                newlines, ends, is_unclosed = _scan(text, self._delimiter)
                if is_last and is_unclosed:
                    ends = np.append(ends, len(text))
                if not len(ends):
                    if len(text) > RECORD_BYTES:
                        raise self._unclosed(line, f"{RECORD_BYTES >> 20} MB and no end")
                    rest = text
                    continue
                text, rest = text[: ends[-1]], text[ends[-1] :]
                self._check_text(text, line)
                starts = np.append(0, ends[:-1])
                lines = line + np.searchsorted(newlines, starts)
                codes = np.frombuffer(text, np.uint8)
                filled = (codes[starts] != ord("\n")) & ((codes[starts] != ord("\r")) | (ends - starts > 2))
                line += int(np.searchsorted(newlines, ends[-1]))
                if filled.any():
                    starts = starts[filled]
                    yield text[starts[0] :], starts - starts[0], lines[filled], raw.tell() / self.size
            if is_unclosed:
                raise self._unclosed(int(lines[-1]), "the file ends first")
        self._note_change()

    def _ended(self, text: bytes, raw: Any) -> bytes:
        """The rest of the file with a line break at its end, or without its last line if that is cut short."""
        if not text or text.endswith(b"\n"):
            return text
        _, ends, _ = _scan(text, self._delimiter)
        end = ends[-1] if len(ends) else 0
        last = text[end:]
        if self.names and last.strip() and b"\n" not in last:
            delimiter = self._delimiter.encode()
            unquoted = re.sub(rb'(?:^|(?<=%b))"[^"]*(?:"|$)' % re.escape(delimiter), b"", last)
            has_grown = raw.read(1) not in (b"", b"\n", b"\r")
            if has_grown or 1 + unquoted.count(delimiter) < len(self.names):
                shown = last.decode(errors="replace")
                self._note(f"the last line of {self.place} is incomplete and was skipped: {shown!r:.80}")
                return text[:end]
        self._note(f"{self.place} does not end in a line break: its last line was used, but may be incomplete")
        return text + b"\n"

    def _unclosed(self, line: int, why: str) -> InputError:
        return InputError(f"line {line} of {self.place} starts a record that never ends ({why}): close every quote")

    def _odd_line_ends(self, text: bytes, lines: Ints) -> InputError:
        line = lines[0] + len(re.split(rb"\r(?!\n)", text, maxsplit=1)[0].split(b"\n")) - 1
        return InputError(f"line {line} of {self.place} has a lone \\r: end all lines in \\n or in \\r\\n")

    def _check_text(self, text: bytes, line: int) -> None:
        try:
            text.decode()
        except UnicodeDecodeError as error:
            line += text.count(b"\n", 0, error.start)
            place = f"line {line} of {self.place}"
            raise InputError(f"{place} is not UTF-8 text ({error.reason}): save it as UTF-8") from error

    def _parse(self, text: bytes, lines: Ints, keys: list[str]) -> Any:
        """The columns with these numbers; without pyarrow's threads, which can abort a process that ends soon after."""
        import pyarrow as pa  # slow to import
        from pyarrow import csv as arrow_csv

        names = [str(place) for place in range(len(self.names))]
        types = dict.fromkeys(keys, pa.string())
        odd: list[Any] = []

        def keep(row: Any) -> str:
            odd.append(row)
            return "error"

        try:
            table = arrow_csv.read_csv(
                io.BytesIO(text),
                arrow_csv.ReadOptions(use_threads=False, block_size=len(text) + 1, column_names=names),
                arrow_csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=True, invalid_row_handler=keep),
                arrow_csv.ConvertOptions(include_columns=keys, column_types=types, check_utf8=False),
            )
        except pa.ArrowInvalid as error:
            for row in odd:
                place = f"line {lines[row.number - 1]} of {self.place}"
                raise wrong_width(place, row.actual_columns, len(names), self._delimiter) from error
            raise InputError(f"{self.place} is not a CSV table ({error}): {WHAT_TO_WRITE}") from error
        if len(table) != len(lines):
            raise self._odd_line_ends(text, lines)
        return table


def _scan(text: bytes, delimiter: str) -> tuple[Ints, Ints, bool]:
    r"""Where the line breaks are, where the records end (past the line break), and whether a quote is open at the end.

    >>> _scan(b'a,"b\nc"\n5" pipe,d\n', ",")
    (array([ 4,  7, 17]), array([ 8, 18]), False)
    """
    codes = np.frombuffer(text, np.uint8)
    newlines = np.flatnonzero(codes == ord("\n"))
    if b'"' not in text:
        return newlines, newlines + 1, False
    quotes = np.flatnonzero(codes == ord('"'))
    before = np.where(quotes == 0, ord("\n"), codes[quotes - 1])
    opens = np.isin(before, [ord(delimiter), ord("\n"), ord("\r")])
    if not (opens | (before == ord('"')))[::2].all():  # some quotes are plain text, in the middle of a field
        real: list[int] = []
        for quote, at_start in zip(quotes.tolist(), opens.tolist(), strict=True):
            if len(real) % 2 or at_start or real[-1:] == [quote - 1]:
                real.append(quote)
        quotes = np.array(real, np.intp)
    ends = newlines[np.searchsorted(quotes, newlines) % 2 == 0] + 1
    return newlines, ends, len(quotes) % 2 == 1
