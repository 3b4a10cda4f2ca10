"""Rows: tables with a row for each stream, the best first; of many streams the ends are shown."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from braided.printable import printable
from braided.report.common.table import Table, number
from braided.types import Floats, Ints


class Column(NamedTuple):
    """A column of a table of streams; its last cell is that of all streams together."""

    above: str
    title: str
    cells: Sequence[str]  # (T + 1,)


def errors_table(
    tasks: Sequence[object],
    columns: Sequence[Column],
    order_by: Floats,
    ends: tuple[str, str],
    most: int,
    note: str,
    last_row: str = "",
) -> Table:
    """Return a table of the errors of each stream, sorted by `order_by` (T,), whose smallest are the best.

    `ends` say what the first and the last streams are if not all are shown, such as "largest gain" and "smallest".
    `last_row` names the last one if it isn't of all streams.
    """
    order, more = best_first(order_by), len(tasks) - most
    places, said = np.append(order, np.setdiff1d(np.arange(len(tasks)), order))[:most], ""
    if more > 0 and len(order) > most:
        half, (first, last) = most // 2, ends
        places = np.append(order[:half], order[-half:])
        said = f"Of {len(tasks):,} streams, the {half} with the {first} and the {half} with the {last} are shown. "
    rows = [(printable(tasks[place]), *(column.cells[place] for column in columns)) for place in places]
    if said:
        rows.insert(most // 2, (f"… {len(tasks) - len(places):,} more", *("" for _ in columns)))
    rows.append((last_row or f"All {len(tasks):,}", *(column.cells[-1] for column in columns)))
    return Table(
        name="streams",
        title="Errors by stream",
        group="synchronous",
        columns=("Stream", *(column.title for column in columns)),
        rows=tuple(rows),
        groups=tuple((above, len([*own])) for above, own in groupby(["", *(column.above for column in columns)])),
        note=said + note,
    )


def best_first(errors: Floats) -> Ints:
    """Return the places of the known errors, the smallest first."""
    return np.argsort(errors, kind="stable")[: int((~np.isnan(errors)).sum())]


def signed(value: float) -> str:
    """Write a gain in per cent."""
    return number(round(value, 1) + 0.0, "+.1f").replace("-", "−")


def mean_of(values: Floats) -> float:
    """Return the mean of the known values; NaN without any."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else np.nan
