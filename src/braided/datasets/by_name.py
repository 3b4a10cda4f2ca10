"""Panels by name: embedded, synthetic, or your file."""

from __future__ import annotations

from difflib import get_close_matches

from braided.datasets.embedded import EMBEDDED, embedded
from braided.datasets.synthetic import wind_field
from braided.errors import InputError
from braided.files import is_there
from braided.tables.panel import Panel
from braided.tables.panel_io import read_table


def open_panel(name: str, seed: int = 0) -> Panel:
    """Return an embedded panel, the synthetic wind field of a seed, or the panel in a CSV or Parquet file.

    >>> open_panel("us-incomes").tasks[0]
    'Alabama'
    >>> open_panel("us-income")
    Traceback (most recent call last):
    braided.errors.InputError: no data and no file 'us-income': did you mean 'us-incomes'?
    """
    if name == "synthetic":
        return wind_field(seed)
    if name in EMBEDDED:
        return embedded(name)
    if not is_there(name):
        near = get_close_matches(name, [*EMBEDDED, "synthetic"], n=1)
        there = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(EMBEDDED)}, synthetic, or give a file"
        raise InputError(f"no data and no file {name!r}: {there}")
    return read_table(name)
