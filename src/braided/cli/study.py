"""`braided study`: the paper's experiment, on the data that come with the package or on yours."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from braided.cli.console import console, progress, show, split
from braided.cli.options import BUILT_IN, Debug, Jobs, insist_not_given
from braided.cli.suite import SUITE_OUT, run_forecasting
from braided.errors import InputError
from braided.files import insist_apart, sole_writer
from braided.printable import counted, printable
from braided.processes import workers

if TYPE_CHECKING:
    from braided.study import Plan, Results
    from braided.tables import Panel

QUICK_LEARNERS = ("mt-wrls", "mt-oslssvr", "wrls", "mogd", "mt-wrls-neighbours", "wrls-neighbours")
QUICK = (*QUICK_LEARNERS, "no-change", "last-change", "mean-change")
QUICK_WINDOWS = 4
STUDIED = ("la-haute-borne", "us-incomes")
STUDY_OUT = Path("braided-study")
# Written out, as braided.suite is slow to import.
SUITE_NAMES = "best-rule, seasonal-naive, single, run, auto-alone, auto, lightgbm, ridge-var, auto-ets, auto-arima"
OF_THE_EXPERIMENT, OF_THE_SUITE = (
    ("windows", "seed", "fresh"),
    ("without_peers", "timezone", "horizon"),
)  # options of one only


def study(
    context: typer.Context,
    data: Annotated[
        list[str] | None,
        typer.Option(
            help=f"{BUILT_IN}, or a CSV or Parquet file as `run` takes it; may be repeated. "
            f"Default: {', '.join(STUDIED)}; with --suite, the four real panels."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the results and the report; braided-study, or braided-suite.")
    ] = None,
    methods: Annotated[
        str,
        typer.Option(
            help="Names, separated by commas; all by default, nine with --quick. See `braided methods`; with --suite: "
            f"{SUITE_NAMES}."
        ),
    ] = "",
    suite: Annotated[
        Literal["forecasting"] | None,
        typer.Option(help="Instead of the experiment: braided beside rules and other packages, on whole panels."),
    ] = None,
    windows: Annotated[int | None, typer.Option(help="Windows at most; 30 by default, 4 with --quick.", min=1)] = None,
    seed: Annotated[int, typer.Option(help="Of the windows drawn, and of the synthetic data.", min=0)] = 0,
    jobs: Jobs = -1,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="A first look: a few windows and methods; with --suite, the first 1,000 rounds."),
    ] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Delete the results of these data, and start again.")] = False,
    without_peers: Annotated[
        bool, typer.Option("--without-peers", help="Of the suite: leave other packages and methods out.")
    ] = False,
    timezone: Annotated[
        str | None,
        typer.Option(
            help="Of the suite: the clock of your files, such as Europe/Berlin. Unlike in `run`, times without an "
            "offset are taken as UTC."
        ),
    ] = None,
    horizon: Annotated[
        int, typer.Option(help="Of the suite: compare 1, 3, 6, 12, … rounds ahead, up to so many.", min=1)
    ] = 1,
    debug: Debug = False,
) -> None:
    """Run the paper's experiment and its contenders, and write a report.

    Finished windows are kept in the folder: stopped and started again, the study continues.
    """
    from braided.datasets import open_panel
    from braided.report import insist_own_pages, write_report
    from braided.study import plan_for
    from braided.study.plan import WINDOWS

    _insist_meaning(context, suite, methods)
    if suite is not None:
        named = split(methods)
        run_forecasting(data or [], named, out or SUITE_OUT, jobs, quick, not without_peers, timezone, horizon)
        return
    out = out or STUDY_OUT
    began = perf_counter()
    names = split(methods) or (QUICK if quick else None)
    panels = [open_panel(name, seed) for name in data or STUDIED]
    count = windows or (QUICK_WINDOWS if quick else WINDOWS)
    plans = [plan_for(panel, count, seed, names) for panel in panels]  # before anything is run
    called = [panel.name for panel in panels]
    if len(set(called)) < len(called):
        raise InputError(
            f"two data sets have the same name ({', '.join(called)}), which names their folder: rename one"
        )
    workers(jobs)  # refused before anything is written
    insist_apart([Path(name) for name in data or () if Path(name).exists()], [out / "store"])
    insist_own_pages(out)
    with sole_writer(folder=out):
        studies = [_run(plan, panel, jobs, fresh, out) for plan, panel in zip(plans, panels, strict=True)]
        for results in studies:
            _show(results)
        page = write_report(studies, out)
    print(f"\nThe study took {perf_counter() - began:.0f} s. Report: {printable(page.resolve())}")


def _insist_meaning(context: typer.Context, suite: str | None, methods: str) -> None:
    """Refuse options that the suite has no use for, or that are for the suite only."""
    if suite:
        insist_not_given(context, OF_THE_EXPERIMENT, "with --suite: leave it out")
        if methods:
            insist_not_given(context, ("without_peers",), "with --methods: leave it out")
    else:
        insist_not_given(context, OF_THE_SUITE, "without --suite: add --suite forecasting, or leave it out")


def _run(plan: Plan, panel: Panel, jobs: int, fresh: bool, out: Path) -> Results:
    from braided.study import Results, Store, run_study

    folder = out / "store" / panel.name
    if fresh:
        Store(folder).clear()
    with progress() as advance:

        def show_units(done: int, total: int, last: str) -> None:
            advance(f"{printable(panel.name)} {last}", done / max(total, 1), f"{done}/{total}")

        return Results(run_study(plan, panel, folder, jobs, show_units))


def _show(results: Results) -> None:
    from rich.markup import escape

    from braided.report.study.tables import findings, tables

    screen = console()
    what = "synthetic data, " if results.about["synthetic"] else ""
    size = f"{counted(results.windows, 'window')} of {results.about['length']} steps"
    name, source = (escape(printable(text)) for text in (results.name, results.about["source"]))
    screen.print(f"\n[bold]{name}[/], {counted(len(results.tasks), 'stream')}, {size} ({what}{source})")
    for table in tables(results):
        if table.group != "other":
            show(table, screen)
    for sentence in findings(results):
        screen.print(f"• {sentence}", highlight=False, markup=False)
