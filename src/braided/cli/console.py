"""What the commands print on: a console, with tables, a progress bar and forecasts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING, TypeAlias

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text  # no markup: a stream may be called [b]

from braided.cli.encoding import shows_everything
from braided.printable import printable

if TYPE_CHECKING:
    from braided.forecasting import Engine, Forecasts
    from braided.report.common.table import Table

Advance: TypeAlias = Callable[..., None]  # shows what is done, which share of it is finished, perhaps how many parts

LEAST_WIDTH = 140  # letters
LEAST_NAME = 12  # letters of a stream that a narrow terminal shows
PROGRESS_EVERY = 10.0  # seconds between lines of progress where there is no terminal


def say(text: str) -> None:
    """Print a note on standard error."""
    print(f"braided: {printable(text)}", file=sys.stderr, flush=True)


def split(text: str) -> tuple[str, ...]:
    """Return the parts of a text between its commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def console(least: int = LEAST_WIDTH) -> Console:
    """Return a console wide enough for the tables: a narrow terminal may wrap lines, but no number is cut."""
    return Console(width=max(Console().width, least))


def prose() -> Console:
    """Return a console for sentences: on a terminal of its width, so that lines end between words."""
    screen = Console()
    return screen if screen.is_terminal else console()


def fitted(table: Table, width: int) -> Table:
    """Return a table of streams with long names cut, so that it fits this width if it can."""
    from braided.report.common.table import short

    columns = zip(table.above, table.columns, *table.rows, strict=True)
    widths = [max(map(len, column)) + 3 for column in columns]
    most = max(widths[0] - 3 - max(sum(widths) + 1 - width, 0), LEAST_NAME)
    return replace(table, rows=tuple((short(row[0], most), *row[1:]) for row in table.rows))


def width_of(table: Table) -> int:
    """Return how many letters wide a table is when printed."""
    columns = zip(table.heads, *table.rows, strict=True)
    return sum(max(map(len, column)) + 3 for column in columns)  # three letters between columns


@contextmanager
def progress() -> Iterator[Advance]:
    """Show a bar on a terminal; elsewhere, print a line on standard error now and then."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    terminal = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[parts]}"))
    times = (TimeElapsedColumn(), TimeRemainingColumn(), TextColumn("left"))
    last = monotonic()
    with Progress(*columns, *times, console=terminal, disable=not terminal.is_terminal, transient=True) as bar:
        task = bar.add_task("", total=1.0, parts="")

        def advance(what: str, share: float, parts: str = "") -> None:
            nonlocal last
            if bar.tasks[0].description != what and share < 0.01:
                bar.reset(task, total=1.0)
            bar.update(task, completed=share, description=what, parts=parts or f"{100 * share:.0f} %")
            if not terminal.is_terminal and monotonic() - last > PROGRESS_EVERY:
                last = monotonic()
                terminal.print(f"{what}: {parts or f'{100 * share:.0f} %'}", highlight=False)

        yield advance


def show(table: Table, on: Console) -> None:
    """Print a table."""
    shown = RichTable(
        title=Text(table.title), caption=Text(table.note), box=box.SIMPLE, title_justify="left", caption_justify="left"
    )
    for place, (group, column) in enumerate(zip(table.above, table.columns, strict=True)):
        first = place == 0 or table.above[place - 1] != group
        shown.add_column(f"{group if first else ''}\n{column}", justify="right" if place else "left", no_wrap=True)
    for place, row in enumerate(table.rows):
        shown.add_row(*map(Text, row), style="bold" if table.best_first and place == 0 else "")
    on.print(shown)


def show_names(texts: Mapping[str, str]) -> None:
    """Print names with a line of text each."""
    table = RichTable(box=None, show_header=False, pad_edge=False)
    for name, text in texts.items():
        table.add_row(f"[bold]{name}[/]", Text(text))
    console().print(table)


def show_record(forecaster: Engine) -> None:
    """Print how good the forecasts have been: a table and sentences."""
    from braided.report.run.kinds import report_of

    report, sentences = report_of(forecaster), prose()
    for table in (report.errors(most=30), report.by_horizon(), report.quantiles()):
        if table.rows:
            show(fitted(table, sentences.width), console())
    for sentence in report.in_words():
        sentences.print(f"• {sentence}", highlight=False, markup=False)


def print_forecasts(made: Forecasts, form: str, is_utc: bool, header: bool = True) -> None:
    """Print one forecast per line, as CSV or JSON, or a table."""
    from braided.runs.output import as_csv, as_json, fields_of, lines_of

    fields = fields_of(made.levels)
    if form == "table":
        shown = RichTable(box=None, pad_edge=False)
        for column in fields:
            shown.add_column(column, justify="left" if column in ("stream", "time") else "right")
        for row in lines_of(made, is_utc):
            cells = ("" if cell is None else f"{cell:g}" if isinstance(cell, float) else cell for cell in row)
            shown.add_row(*(Text(printable(cell)) for cell in cells))
        console().print(shown)
        return
    if form == "csv" and header:
        print(",".join(fields))
    for row in lines_of(made, is_utc):
        print(as_csv(row) if form == "csv" else as_json(row, not shows_everything(), fields))
    sys.stdout.flush()
