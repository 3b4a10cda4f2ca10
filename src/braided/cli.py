"""The command line: parse, call, print.

Exit codes: 0 all is well, 1 something failed on the way, 2 an option or the data can't be used.
"""

from __future__ import annotations

import shutil
import sys
from enum import IntEnum
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from typer.exceptions import TyperException

from braided import __version__
from braided.errors import BraidedError, InputError

if TYPE_CHECKING:
    from braided.report.tables import Table
    from braided.streams import Panel
    from braided.study import Plan, Results

DATA = ("la-haute-borne", "us-incomes")
QUICK = (
    "mt-wrls",
    "mt-oslssvr",
    "wrls",
    "mogd",
    "mt-wrls-graph",
    "wrls-graph",
    "no-change",
    "last-change",
    "mean-change",
)
QUICK_WINDOWS = 4

app = typer.Typer(
    name="braided",
    help="Online multi-task regression: many related streams learned together, one sample at a time.",
    epilog="Exit codes: 0 all is well, 1 something failed on the way, 2 an option or the data can't be used.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


class Exit(IntEnum):
    """How the program ends."""

    FAILED = 1
    MISUSED = 2
    INTERRUPTED = 130


@app.callback(invoke_without_command=True)
def _top(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        print(f"braided {__version__}")
        raise typer.Exit


@app.command()
def study(
    data: Annotated[
        list[str] | None,
        typer.Option(
            help="la-haute-borne, us-incomes, synthetic, or a CSV or Parquet file of timestamp, site, value; may be "
            "repeated. Default: the first two."
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of the results and the report.")] = Path("braided-study"),
    methods: Annotated[str, typer.Option(help="Names, with commas between; see `braided methods`.")] = "",
    windows: Annotated[int | None, typer.Option(help="Windows to draw (30).", min=1)] = None,
    seed: Annotated[int, typer.Option(help="Draws the windows, and the synthetic field.", min=0)] = 0,
    jobs: Annotated[int, typer.Option(help="Processes; -1 is one per core.")] = -1,
    quick: Annotated[bool, typer.Option("--quick", help="A few windows and methods: a first look.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget what is in the folder, and start again.")] = False,
    debug: Debug = False,
) -> None:
    """Run the paper's experiment and its contenders, and write a report.

    What is finished stays in the folder: stopped and started again, the study goes on where it was.
    """
    from braided.report import write_report
    from braided.streams import open_panel
    from braided.study import METHODS, find_method, plan_for

    began = perf_counter()
    names = tuple(name.strip() for name in methods.split(",") if name.strip()) or (QUICK if quick else tuple(METHODS))
    for name in names:
        find_method(name)
    panels = [open_panel(name, seed) for name in data or DATA]
    count = windows or (QUICK_WINDOWS if quick else 30)
    plans = [plan_for(panel, count, seed, names) for panel in panels]  # all of them, before anything is run
    studies = [_run(plan, panel, jobs, fresh, out) for plan, panel in zip(plans, panels, strict=True)]
    for results in studies:
        _show(results)
    page = write_report(studies, out)
    print(f"\nThe study took {perf_counter() - began:.0f} s. Report: {page.resolve()}")


@app.command("methods")
def list_methods(debug: Debug = False) -> None:
    """List the methods of the study."""
    from rich.table import Table as RichTable

    from braided.study import METHODS

    table = RichTable(box=None, show_header=False, pad_edge=False)
    for method in METHODS.values():
        table.add_row(f"[bold]{method.name}[/]", method.about)
    _console().print(table)


def main() -> None:
    """Run the command line; an error is one line on standard error."""
    try:
        sys.exit(app(standalone_mode=False))
    except TyperException as error:
        _fail(f"{error.format_message()} (--help says more)", Exit.MISUSED)
    except BraidedError as error:
        _fail(str(error), Exit.MISUSED if isinstance(error, InputError) else Exit.FAILED)
    except KeyboardInterrupt:
        _fail("stopped; the same command again goes on from here", Exit.INTERRUPTED)
    except Exception as error:
        _fail(f"{type(error).__name__}: {error}; --debug shows where", Exit.FAILED)


def _fail(message: str, code: Exit) -> None:
    if "--debug" in sys.argv:
        raise  # the error being handled
    print(f"braided: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(code)


def _run(plan: Plan, panel: Panel, jobs: int, fresh: bool, out: Path) -> Results:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from braided.study import Results, run_study

    folder = out / "store" / panel.name
    if fresh and (folder / "plan.json").exists():
        shutil.rmtree(folder)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("yet"),
        TimeRemainingColumn(),
    )
    terminal = Console(stderr=True)
    with Progress(*columns, console=terminal, disable=not terminal.is_terminal) as bar:
        task = bar.add_task(panel.name, total=None)

        def progress(done: int, total: int, last: str) -> None:
            bar.update(task, completed=done, total=total, description=f"{panel.name} {last}")

        return Results(run_study(plan, panel, folder, jobs, progress))


def _show(results: Results) -> None:
    from braided.report.tables import findings, tables

    console = _console()
    what = "synthetic data, " if results.about["synthetic"] else ""
    console.print(f"\n[bold]{results.name}[/] ({what}{results.about['source']})")
    for table in tables(results):
        if table.name.startswith(("errors", "ranks")):
            _print(table, console)
    for sentence in findings(results):
        console.print(f"• {sentence}", highlight=False)


def _print(table: Table, console: Console) -> None:
    from rich import box
    from rich.table import Table as RichTable

    shown = RichTable(
        title=table.title, caption=table.note, box=box.SIMPLE, title_justify="left", caption_justify="left"
    )
    above = [group for group, span in table.groups for _ in range(span)] or [""] * len(table.columns)
    for place, (group, column) in enumerate(zip(above, table.columns, strict=True)):
        first = place == 0 or above[place - 1] != group
        shown.add_column(f"{group if first else ''}\n{column}", justify="right" if place else "left", no_wrap=True)
    for place, row in enumerate(table.rows):
        shown.add_row(*row, style="bold" if place in table.strong else "")
    console.print(shown)


def _console() -> Console:
    """A console that keeps its lines whole where it is no terminal."""
    console = Console()
    return console if console.is_terminal else Console(width=130)
