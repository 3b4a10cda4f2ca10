"""The command line: parse, call, print."""

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

QUICK = (
    "mt-wrls",
    "mt-oslssvr",
    "wrls",
    "mogd",
    "mt-wrls-neighbours",
    "wrls-neighbours",
    "no-change",
    "last-change",
    "mean-change",
)
QUICK_WINDOWS = 4

app = typer.Typer(
    name="braided",
    help="Online multi-task regression: many related streams learned together, one sample at a time.",
    epilog="Exit codes: 0 all is well, 1 something failed, 2 an option or the data can't be used, 130 stopped.",
    add_completion=False,
    pretty_exceptions_enable=False,
)
# Declared for --help and the parser; `_fail` looks into sys.argv, as parsing itself may be what fails.
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


class Exit(IntEnum):
    """How the program ends."""

    FAILED = 1
    MISUSED = 2
    INTERRUPTED = 130


@app.callback(invoke_without_command=True)
def _top(
    context: typer.Context, version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False
) -> None:
    if version:
        print(f"braided {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help(), end="")


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
    methods: Annotated[
        str,
        typer.Option(
            help="Names, with commas between; by default all, with --quick nine. `braided methods` lists them."
        ),
    ] = "",
    windows: Annotated[
        int | None, typer.Option(help="Windows to draw at most; by default 30, with --quick 4.", min=1)
    ] = None,
    seed: Annotated[int, typer.Option(help="Draws the windows, and the synthetic field.", min=0)] = 0,
    jobs: Annotated[int, typer.Option(help="Processes; -1 is one per core.")] = -1,
    quick: Annotated[bool, typer.Option("--quick", help="A few windows and methods: a first look.")] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Delete the stored results of these data, and start again.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Run the paper's experiment and its contenders, and write a report.

    What is finished stays in the folder: stopped and started again, the study goes on where it was.
    """
    from braided.report import write_report
    from braided.streams import EMBEDDED, open_panel
    from braided.study import METHODS, plan_for
    from braided.study.plan import WINDOWS

    began = perf_counter()
    names = tuple(name.strip() for name in methods.split(",") if name.strip()) or (QUICK if quick else tuple(METHODS))
    panels = [open_panel(name, seed) for name in data or EMBEDDED]
    count = windows or (QUICK_WINDOWS if quick else WINDOWS)
    plans = [plan_for(panel, count, seed, names) for panel in panels]  # all of them, before anything is run
    called = [panel.name for panel in panels]
    if len(set(called)) < len(called):
        raise InputError(f"two data of one name among {', '.join(called)}: each has a folder of its name; rename one")
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
        code = app(standalone_mode=False)
        if code == Exit.INTERRUPTED:  # what typer makes of Ctrl-C
            raise KeyboardInterrupt
        sys.exit(code)
    except TyperException as error:
        _fail(f"{error.format_message()} (--help says more)", Exit.MISUSED)
    except BraidedError as error:
        _fail(str(error), Exit.MISUSED if isinstance(error, InputError) else Exit.FAILED)
    except KeyboardInterrupt:
        _fail("stopped; the same command, without --fresh, goes on from here", Exit.INTERRUPTED)
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
        TimeRemainingColumn(),
        TextColumn("left"),
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
    size = f"{results.windows} window{'s' * (results.windows > 1)} of {results.about['length']} steps"
    console.print(f"\n[bold]{results.name}[/], {len(results.tasks)} tasks, {size} ({what}{results.about['source']})")
    for table in tables(results):
        if table.group != "other":
            _print(table, console)
    for sentence in findings(results):
        console.print(f"• {sentence}", highlight=False)


def _print(table: Table, console: Console) -> None:
    from rich import box
    from rich.table import Table as RichTable

    shown = RichTable(
        title=table.title, caption=table.note, box=box.SIMPLE, title_justify="left", caption_justify="left"
    )
    for place, (group, column) in enumerate(zip(table.above, table.columns, strict=True)):
        first = place == 0 or table.above[place - 1] != group
        shown.add_column(f"{group if first else ''}\n{column}", justify="right" if place else "left", no_wrap=True)
    for place, row in enumerate(table.rows):
        shown.add_row(*row, style="bold" if table.best_first and place == 0 else "")
    console.print(shown)


def _console() -> Console:
    """A console wide enough for the tables: a terminal that is not may break lines, but no number is cut."""
    return Console(width=max(Console().width, 140))
