"""From columns of Arrow to times, names and numbers; the first cell that can't be read is named with its place."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, NoReturn

import numpy as np

from braided.errors import InputError
from braided.types import Floats, Ints, Times

MISSING = ("", "na", "n/a", "#n/a", "nan", "null", "none")  # in small or capital letters
NUMBER = r"^[+-]?(\d+[.,]?\d*|[.,]\d+)([eE][+-]?\d+)?$"
DIGITS = r"^(19|20|21)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])$"  # a date, if the month has such a day
MONTH = r"^(\d{4}-\d\d)$"
THOUSANDS = r"^[+-]?[1-9]\d{0,2},\d{3}$"
TIME_REMEDY = "write all as 2024-01-31 18:30:00 (ISO 8601), or all with a UTC offset, or all as integers such as years"
DIGITS_REMEDY = "the first times are dates such as 20240131: write all like that, or all as 2024-01-31"
SHOW_CHARACTERS = 80  # of a value
LIST_NAMES, LIST_CHARACTERS = 40, 400  # of a list of names

Where = Callable[[int], str]  # from a row of the column to the place where a reader of the file finds it


def numbers(column: Any, name: str, where: Where) -> Floats:
    """Return finite numbers, NaN where one is missing."""
    parsed = _cast(column, "double")
    if parsed is None:
        column = _plain(column, MISSING)
        parsed = _cast(column, "double")
    if parsed is None:
        row = _first_refused(column, "double")
        text = str(column[row].as_py())
        remedy = "write a number, or NA where it is missing"
        if re.match(NUMBER, text) and "," in text:
            point, plain = text.replace(",", "."), text.replace(",", "")
            remedy = f"this has a decimal comma; write a point, {point}"
            if re.match(THOUSANDS, text):
                remedy = (
                    f"this may be {plain} or, with a decimal comma, {point}: write it with a point or without a comma"
                )
        _refuse(column, row, name, where, remedy)
    found: Floats = parsed.to_numpy(zero_copy_only=False)
    for row in np.flatnonzero(np.isinf(found)).tolist():
        _refuse(column, row, name, where, "write a finite number, or NA")
    return found


def times(column: Any, kind: Any, name: str, where: Where) -> tuple[Ints, Any]:
    """Return times as integers (dates as microseconds in UTC) and their Arrow type, which must be `kind` if given.

    Dates of eight digits, such as 20240131, are of type date32; without a `kind` the first time decides.
    """
    import pyarrow as pa  # slow to import, here and below

    column = _decoded(column)
    kinds = [pa.int64(), pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.date32()]
    if not _is_text(column.type):
        has_zone = getattr(column.type, "tz", None) is not None
        kinds = [kinds[1 + has_zone]] if pa.types.is_temporal(column.type) else [kinds[0], kinds[3]]
    kind = first_kind(column[:1]) if kind is None else kind
    parsed = None if column.null_count or kind not in kinds else _cast(column, kind)
    if parsed is None:
        column = _filled(_plain(column), name, where)
        if kind is None:
            kind = next((kind for kind in kinds if _cast(column[:1], kind) is not None), kinds[0])
        parsed = _cast(column, kind) if kind in kinds else None
        if parsed is None:
            row = _first_refused(column, kind) if kind in kinds else 0
            _refuse(column, row, name, where, DIGITS_REMEDY if kind == pa.date32() else TIME_REMEDY)
    return parsed.view("int64").to_numpy(), kind


def first_kind(column: Any) -> Any:
    """Return the kind of times where the first ones could be integers or dates of eight digits; else None.

    They are dates if more than half could be: of numbers that count up, a third could, and a date that is wrong is
    refused later with its row.

    >>> import pyarrow as pa
    >>> [str(first_kind(pa.array(times))) for times in (["20240131"], [20240131, 20240132], ["2024-01-31"])]
    ['date32[day]', 'int64', 'None']
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    column = _decoded(column)
    if not (_is_text(column.type) or pa.types.is_integer(column.type)):
        return None
    could_be = pc.match_substring_regex(pc.utf8_trim_whitespace(column.cast("string")), DIGITS)
    n_digits = pc.sum(could_be).as_py() or 0
    if 2 * n_digits > len(column):
        return pa.date32()
    return pa.int64() if n_digits and could_be[0].as_py() else None


def is_utc(kind: Any) -> bool:
    """Return whether times of an Arrow type had UTC offsets."""
    return getattr(kind, "tz", None) is not None


def labels(column: Any, name: str, where: Where) -> tuple[list[str], Ints]:
    """Return names, perhaps with repeats, and the index of each row's name among them."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        text = _cast(column, "string")
        if text is None:
            _refuse(column, 0, name, where, "write a name")
        column = text.dictionary_encode()
    found = [text.strip() if text else "" for text in column.dictionary.cast("string").to_pylist()]
    if column.null_count or "" in found:
        _filled(_plain(column), name, where)
    return found, column.indices.to_numpy()


def is_number(column: Any) -> bool:
    """Return whether a column holds numbers, perhaps with text among them, or nothing at all."""
    import pyarrow.compute as pc

    column = _plain(column, MISSING)
    if not _is_text(column.type):
        return str(column.type) != "bool" and _cast(column, "double") is not None
    return column.null_count == len(column) or bool(pc.any(pc.match_substring_regex(column, NUMBER)).as_py())


def is_date(column: Any) -> bool:
    """Return whether a column holds dates: whether its first value is one, or most are dates of eight digits."""
    import pyarrow as pa

    known = _plain(column, MISSING).drop_null()
    first = known[:1]
    if not len(first) or pa.types.is_temporal(first.type):
        return len(first) > 0
    if first_kind(known) == pa.date32():
        return True
    zones = None, "UTC"
    return _is_text(first.type) and any(_cast(first, pa.timestamp("us", zone)) is not None for zone in zones)


def shown(value: Any) -> str:
    """Return a value for a message: control characters escaped, and at most about 80 characters.

    >>> shown("calm\\n"), shown(90 * "=")[-5:]
    ("'calm\\\\n'", '====…')
    """
    text = repr(value[: SHOW_CHARACTERS + 1] if isinstance(value, str) else value)
    return text if len(text) <= SHOW_CHARACTERS + 2 else f"{text[: SHOW_CHARACTERS - 1]}…"


def listed(names: Sequence[str]) -> str:
    """Return names for a message, and how many more there are than it has room for."""
    texts = list(map(shown, names[:LIST_NAMES]))
    lengths = accumulate(map(len, texts), initial=0)
    texts = [text for text, before in zip(texts, lengths, strict=False) if before <= LIST_CHARACTERS]
    return ", ".join(texts) + f" and {len(names) - len(texts)} more" * (len(names) > len(texts))


def to_seconds(stamps: Times) -> Times:
    """Return dates to the second where that is exact, else to the microsecond; integers as they are."""
    if stamps.dtype.kind != "M":
        return stamps
    seconds = stamps.astype("datetime64[s]")
    return seconds if (seconds == stamps).all() else stamps.astype("datetime64[us]")


def utc_column(stamps: Times) -> Any:
    """Return dates in UTC as a column of Arrow that says so."""
    import pyarrow as pa

    column = pa.array(to_seconds(stamps))
    return column.cast(pa.timestamp(column.type.unit, "UTC"))


def _is_text(kind: Any) -> bool:
    return str(kind) in ("string", "large_string", "string_view")


def _decoded(column: Any) -> Any:
    import pyarrow as pa

    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _plain(column: Any, missing: tuple[str, ...] = ("",)) -> Any:
    """A column; text without spaces around it, and null where it is one of `missing`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = _decoded(column)
    if _is_text(column.type):
        column = pc.utf8_trim_whitespace(column.cast("string"))
        column = pc.if_else(pc.is_in(pc.utf8_lower(column), pa.array(missing)), None, column)
    return column


def _filled(column: Any, name: str, where: Where) -> Any:
    """The column, in which nothing may be missing."""
    for row in np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False)):
        raise InputError(f"{name} at {where(int(row))} is empty: every row needs one")
    return column


def _cast(column: Any, kind: Any) -> Any:
    """The column as another type, or None if an entry can't be cast."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if kind == pa.date32():
        return _from_digits(column)
    try:
        return column.cast(kind, safe=kind == pa.int64())  # 2000.5 is not a year; but digits past the 16th may go
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        if kind != pa.timestamp("us") or not _is_text(column.type):
            return None
    days = pc.replace_substring_regex(column, MONTH, r"\1-01")  # Arrow reads no months
    return None if days.equals(column) else _cast(days, kind)


def _from_digits(column: Any) -> Any:
    """Dates of eight digits as times, or None if there is anything else."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.null_count or not (_is_text(column.type) or pa.types.is_integer(column.type)):
        return None
    texts = pc.utf8_trim_whitespace(column.cast("string"))
    if not pc.all(pc.match_substring_regex(texts, DIGITS)).as_py():
        return None
    return _cast(pc.replace_substring_regex(texts, r"^(\d{4})(\d\d)(\d\d)$", r"\1-\2-\3"), pa.timestamp("us"))


def _first_refused(column: Any, kind: Any) -> int:
    return bisect_left(range(len(column)), True, key=lambda row: _cast(column[: row + 1], kind) is None)


def _refuse(column: Any, row: int, name: str, where: Where, remedy: str) -> NoReturn:
    raise InputError(f"{name} at {where(row)} is {shown(column[row].as_py())}: {remedy}")
