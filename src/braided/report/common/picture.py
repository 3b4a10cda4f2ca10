"""Picture: a figure with its words, and how it becomes a file."""

from __future__ import annotations

import io
import warnings
from base64 import b64encode
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, final

from braided.files import mark_of
from braided.report.common.style import styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REPORT_MARK = mark_of("report")  # also of the pages
FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Liberation Sans', Arial, sans-serif"


@final
@dataclass(frozen=True)
class Picture:
    """A figure with its words."""

    name: str  # for files
    title: str
    caption: str
    alt: str  # what a reader who can't see it should know
    figure: Figure
    headline: bool = True  # shown with the results, not among the details

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels of a page."""
        width, height = self.figure.get_size_inches()
        return round(96 * width), round(96 * height)

    @cached_property
    def svg(self) -> bytes:
        """As a file for the page."""
        return render(self.figure, "svg")

    @property
    def uri(self) -> str:
        """The whole figure as an address, so that the page needs no other file and ids can't clash."""
        return f"data:image/svg+xml;base64,{b64encode(self.svg).decode()}"


@styled
def render(figure: Figure, kind: Literal["png", "svg"]) -> bytes:
    """Return a figure as a file, without a date."""
    buffer = io.BytesIO()
    said = {"png": {"Software": REPORT_MARK}, "svg": {"Date": None, "Creator": REPORT_MARK}}[kind]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # a letter that the font lacks is a box
        figure.savefig(buffer, format=kind, dpi=200, metadata=said)
    return buffer.getvalue().replace(b"'DejaVu Sans'", FONTS.encode())
