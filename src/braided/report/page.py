"""The page: one self-contained HTML file for all studies, and the same in Markdown with its figures beside it.

That of a run is made of the same parts (`run_page`).

Everything is made before anything is written, and files are replaced whole, the page last.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, final

from braided.datasets import EMBEDDED
from braided.errors import InputError
from braided.files import insist_own, write_whole
from braided.printable import printable
from braided.report.pictures import Picture, pictures
from braided.report.style import COLOURS, REPORT_MARK
from braided.report.tables import Table, findings, tables
from braided.study import METHODS, Method, Results
from braided.version import __version__

PAGES = ("index.html", "report.md")  # beside a folder of figures
READING = {
    "Error": "Root mean square error over that of “no change”, the forecast that the next value equals the last. "
    "Below 1 is better than that, and lower is better.",
    "Synchronous": "A whole round is forecast before any of it is learned: what a forecaster can really do. "
    "All figures and findings are synchronous unless they say otherwise.",
    "Interleaved": "Each sample is learned before the next one of the same round is forecast, as the paper has it.",
    "Experiments": "Each window is cut in two: parameters are chosen on the first part, the second is forecast from "
    "scratch. Experiment II has a longer first part than I.",
}
INTERLEAVED = (
    "Within a round, tasks that come later are forecast by a model that has already learned the earlier ones, at the "
    "same moment. Where tasks are related, that gives part of the answer away, so these numbers are not a forecast. "
    "They are here because the paper's are of this kind."
)


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


def write_report(studies: Sequence[Results], folder: Path) -> Path:
    """Write `index.html`, `report.md` and `figures/` into a folder, and return the path of the first."""
    if not studies:
        raise InputError("no studies: a report needs one at least")
    slugs: list[str] = []
    shown = [_study(results, _slug(results.name, slugs)) for results in studies]
    methods = [method for method in METHODS.values() if any(method in results.methods for results in studies)]
    values = {"studies": shown, "reading": READING, "interleaved": INTERLEAVED, "methods": methods, "colours": COLOURS}
    return write_page(folder, shown, _markdown(shown, methods), "page.html.j2", **values)


def write_page(
    folder: Path, sections: Sequence[Section], markdown: Iterable[str], template: str, **values: Any
) -> Path:
    """Write the figures of some sections, their Markdown and a page from a template; return the path of the page."""
    drafts = {
        f"figures/{section.slug}-{figure.name}.{kind}": content
        for section in sections
        for figure in section.figures
        for kind, content in (("png", figure.png), ("svg", figure.svg))
    }
    page, text = PAGES
    drafts[text] = "\n".join([f"<!-- {REPORT_MARK} -->", *markdown]).encode()
    drafts[page] = _html(template, **values).encode()
    write_whole({folder / name: content for name, content in drafts.items()}, REPORT_MARK)
    return folder / page


def insist_own_pages(folder: Path) -> None:
    """Refuse a folder in which somebody else's pages stand where the report would."""
    for name in PAGES:
        insist_own(folder / name, REPORT_MARK)


def _slug(name: str, taken: list[str]) -> str:
    """Return a name for links and files that no other study has."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "study"
    slug = plain if plain not in taken else f"{plain}-{len(taken) + 1}"
    taken.append(slug)
    return slug


def _study(results: Results, slug: str) -> Section:
    about = results.about
    windows = f"{results.windows} window{'s' * (results.windows != 1)} of {about['length']} steps"
    count = f"{len(results.tasks)} task{'s' * (len(results.tasks) != 1)}"
    return Section(
        slug,
        printable(results.name),
        f"{count}, {windows}, {len(results.methods)} method{'s' * (len(results.methods) != 1)}",
        findings(results),
        tables(results),
        list(pictures(results)),
        _facts(results, windows),
        _command(results),
        bool(about["synthetic"]),
    )


def _facts(results: Results, windows: str) -> dict[str, str]:
    about = results.about
    splits = "; ".join(f"{name} the first {steps} steps" for name, steps in about["splits"].items())
    changes = "differences of logarithms, so growth rates" if about["logarithm"] else "differences from step to step"
    return {
        "Source and licence": printable(about["source"]),
        "Kind of data": "synthetic, made by a program" if about["synthetic"] else "as given",
        "Tasks": ", ".join(map(printable, results.tasks)),
        "Forecast": f"{changes}, one step ahead, from the last {about['lags']}",
        "Windows": f"{windows}, drawn with seed {about['seed']}",
        "Tuned on": splits,
        "Forgetting": f"σ among {', '.join(f'{value:g}' for value in about['forgetting'])}, per {about['per']}",
        "Version": f"braided {about['version']}",
        "Checksum of the data": f"SHA-256 {about['values'][:16]}…",
    }


def _command(results: Results) -> str:
    """Return the command that runs the same study again."""
    known = results.name in (*EMBEDDED, "synthetic")
    words = ["braided", "study", "--data", shlex.quote(results.name) if known else "FILE"]
    words += ["--windows", str(results.windows), "--seed", str(results.about["seed"])]
    if len(results.methods) < len(METHODS):
        words += ["--methods", ",".join(method.name for method in results.methods)]
    return " ".join(words)


def _html(template: str, **values: Any) -> str:
    """Fill a template; every value is shown as it is."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("braided.report", ".")
    pages = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    style = files("braided.report").joinpath("page.css").read_text("utf-8")
    return pages.get_template(template).render(style=style, version=__version__, mark=REPORT_MARK, **values)


def _markdown(studies: Sequence[Section], methods: Sequence[Method]) -> Iterator[str]:
    yield "# braided: study report\n"
    yield from definitions(READING)
    for study in studies:
        yield f"\n## {plain(study.name)}{' (synthetic data)' * study.synthetic}\n\n{plain(study.summary)}.\n"
        yield from (f"- {plain(finding)}" for finding in study.findings)
        yield "\n### Results, synchronous\n"
        yield from parts(study, "synchronous", headline=True)
        if any(table.group == "interleaved" for table in study.tables):
            yield f"\n### Interleaved\n\n{INTERLEAVED}\n"
            yield from parts(study, "interleaved")
        yield "\n### Data, parameters and times\n"
        yield from parts(study, "other", headline=False)
        yield "\n### What was run, and how to repeat it\n"
        yield from definitions(study.facts)
        yield f"\n```sh\n{study.command}\n```"
    yield "\n## Methods\n"
    yield from (f"- **{plain(method.title)}** ({method.family}): {plain(method.about)}" for method in methods)
    yield ""


def definitions(texts: Mapping[str, str]) -> Iterator[str]:
    """Return terms and what is said about them, as lines of Markdown."""
    yield from (f"- **{term}.** {plain(text)}" for term, text in texts.items())


def parts(section: Section, group: str, headline: bool | None = None) -> Iterator[str]:
    """Return figures and tables of a section as lines of Markdown."""
    for figure in section.figures:
        if figure.headline is headline:
            yield f"![{plain(figure.alt)}](figures/{section.slug}-{figure.name}.png)\n"
            yield f"**{plain(figure.title)}.** {plain(figure.caption)}\n"
    for table in (table for table in section.tables if table.group == group):
        heads = [f"{title} {column}".strip() for title, column in zip(table.above, table.columns, strict=True)]
        yield f"**{plain(table.title)}**\n"
        yield _line(heads)
        yield _line(["---", *("---:" for _ in heads[1:])], escape=False)
        yield from (_line(row, bold=table.best_first and place == 0) for place, row in enumerate(table.rows))
        yield f"\n{plain(table.note)}\n" if table.note else ""


def _line(cells: Sequence[str], bold: bool = False, escape: bool = True) -> str:
    texts = [plain(cell) if escape else cell for cell in cells]
    return f"| {' | '.join(f'**{text}**' if bold and text else text for text in texts)} |"


def plain(text: str) -> str:
    """Return text that Markdown shows as it is."""
    return re.sub(r"([\\`*_\[\]<>|#&$~])", r"\\\1", " ".join(text.split()))
