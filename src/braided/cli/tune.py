"""`braided tune`: choose a method and its parameters, and write them down."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from braided.cli import options as opt
from braided.cli.console import console, progress, show
from braided.files import insist_apart, insist_own, remove_own, sole_writer
from braided.printable import counted, printable


@opt.grouped
def tune(
    files: opt.Files,
    columns: opt.Columns,
    learning: opt.Tuning,
    share: Annotated[float, typer.Option("--tune", help=opt.TUNE.capitalize())] = 0.2,
    search: Annotated[
        Literal["halving", "grid"], typer.Option(help="Run only promising candidates to the end, or all of them.")
    ] = "halving",
    keep_constant: Annotated[bool, typer.Option("--keep-constant", help=opt.KEEP_CONSTANT.capitalize())] = False,
    out: Annotated[Path, typer.Option(help="File of the choice, for `run --parameters`.")] = Path("tuned.json"),
    fresh: Annotated[bool, typer.Option("--fresh", help="Delete the trials of an earlier search.")] = False,
    jobs: opt.Jobs = -1,
    sort_rows: opt.SortRows = opt.SORT_ROWS,
    debug: opt.Debug = False,
) -> None:
    """Find the method and parameters that forecast the tuning period of a table best.

    Trials are kept beside the file: stopped and started again, the search continues.
    """
    from braided.report.run.learner_report import trials
    from braided.runs import Settings, choose, read_tuning_period, write_choice
    from braided.runs.start import CHOICE_MARK
    from braided.runs.trials import TRIALS_MARK

    opt.insist_share("--tune", share)
    settings = Settings(**{"methods": ()} | learning.settings, tune=share, how=search, keep_constant=keep_constant)
    rounds = opt.open_table(files, sort_rows, **columns.names)
    print(f"{printable(rounds.name)}: {rounds.columns.describe()}")
    kept = out.with_name(out.name + ".trials")
    insist_apart(rounds.files, [out, kept])
    for path, mark in ((out, CHOICE_MARK), (kept, TRIALS_MARK)):
        insist_own(path, mark, "choose another file (--out)")
    period = read_tuning_period(rounds, settings)
    with sole_writer(file=out), progress() as advance:
        if fresh:
            remove_own({kept: TRIALS_MARK})
        choice = choose(period, settings, jobs, kept, advance)
        write_choice(out, choice, period)
    show(trials(choice, period.logarithm), console())
    where = f" of {counted(choice.streams, 'stream')}" if choice.streams else ""
    print(f"{counted(choice.tried, 'trial')} on {counted(len(period.times), 'round')}{where}.", end=" ")
    print(f"To use it: braided run … --parameters {printable(out)}")
