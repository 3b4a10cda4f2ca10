"""Tables as text, the same for the terminal, for Markdown and for the page; and how names and numbers are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from typing import Literal, TypeAlias, final

from braided.printable import printable

# Of the parameters, in the order in which tables show them.
SYMBOLS = {"penalty": "λ", "forgetting": "σ", "ridge": "γ", "novelty": "ν", "hidden": "H", "step": "η₀", "rho": "ρ"}
SYMBOLS |= {"width": "width"}
Group: TypeAlias = Literal["synchronous", "interleaved", "other"]


@final
@dataclass(frozen=True)
class Table:
    """Cells as text, ready to be shown."""

    name: str  # for links, such as "errors-I-synchronous"
    title: str
    group: Group  # the part of the page it belongs to
    columns: tuple[str, ...]  # the first one holds titles, left-aligned; the others numbers
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    groups: tuple[tuple[str, int], ...] = ()  # headings above the columns, with the columns each spans
    best_first: bool = False  # the first row is set in bold

    @property
    def above(self) -> list[str]:
        """The heading above each column, or nothing."""
        return [title for title, span in self.groups for _ in range(span)] or [""] * len(self.columns)

    @property
    def heads(self) -> list[str]:
        """The columns with the heading above each, for tables with one row of heads."""
        return [f"{title} {column}".strip() for title, column in zip(self.above, self.columns, strict=True)]


def short(text: str, most: int) -> str:
    """Cut a name that is too long."""
    text = " ".join(printable(text).split())
    return text if len(text) <= most else f"{text[: most - 1]}…"


def several(names: Sequence[object], most: int) -> str:
    """Write the first names, and how many more there are."""
    more = len(names) - most
    return ", ".join(map(printable, names[:most])) + f" and {more:,} more" * (more > 0)


def number(value: float, form: str) -> str:
    """Write a number, or a dash for NaN."""
    return "–" if isnan(value) else format(value, form)


def brief(value: float) -> str:
    """Write a number with three decimals, or fewer if it is large."""
    return number(value, ".3f" if value < 10 else ".2g")


def value_of(value: float) -> str:
    """Write the value of a parameter."""
    if 1e-3 <= value <= 1e3:
        return f"{value:g}"
    return f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e").replace("e+", "e")
