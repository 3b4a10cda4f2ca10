"""The page of a report: one self-contained HTML file, and the same in Markdown with its figures beside it.

Everything is made before anything is written, and files are replaced whole, the page last.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from braided.files import insist_own, write_whole
from braided.report.common.picture import REPORT_MARK, Picture, render
from braided.report.common.table import Table
from braided.version import __version__

PAGES = ("index.html", "report.md")  # beside a folder of figures


@final
@dataclass(frozen=True)
class Section:
    """What the page says about a study or a run."""

    slug: str
    name: str
    summary: str
    findings: list[str]
    tables: list[Table]
    figures: list[Picture]
    facts: dict[str, str]
    command: str
    synthetic: bool = False


def write_page(folder: Path, kind: str, sections: Sequence[Section], **values: Any) -> Path:
    """Write the figures of some sections, and a page and Markdown from the templates of a kind; return the page's path.

    In the page all values are escaped, in Markdown those that a template passes through `plain`.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    templates = Environment(
        loader=PackageLoader("braided.report", "."),
        autoescape=lambda name: name is not None and name.endswith(".html.j2"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.filters["plain"] = plain
    style = Path(__file__).with_name("page.css").read_text("utf-8")
    contents = {
        folder / "figures" / f"{section.slug}-{figure.name}.{suffix}": content
        for section in sections
        for figure in section.figures
        for suffix, content in (("png", render(figure.figure, "png")), ("svg", figure.svg))
    }
    for name in reversed(PAGES):
        template = templates.get_template(f"{kind}/{name}.j2")
        page = template.render(style=style, version=__version__, mark=REPORT_MARK, **values)
        contents[folder / name] = page.encode()
    write_whole(contents, REPORT_MARK)
    return folder / PAGES[0]


def insist_own_pages(folder: Path) -> None:
    """Refuse a folder with pages of the same names that braided did not write."""
    for name in PAGES:
        insist_own(folder / name, REPORT_MARK)


def plain(text: str) -> str:
    """Return text that Markdown shows as it is."""
    return re.sub(r"([\\`*_\[\]<>|#&$~])", r"\\\1", " ".join(text.split()))
