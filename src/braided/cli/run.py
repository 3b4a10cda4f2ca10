"""`braided run`: a table through a forecaster."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, Literal

import typer

from braided.cli import options as opt
from braided.cli.console import progress, show_record
from braided.files import insist_folder
from braided.printable import printable

TOOK = {"begun": "took", "continued": "continued and took", "finished": "was finished before; this took"}


@opt.grouped
def run(
    context: typer.Context,
    files: opt.Files,
    columns: opt.Columns,
    learning: opt.Learning,
    mixing: opt.Mixing,
    start: opt.Start,
    tune: opt.Tune = 0.2,
    keep_constant: opt.KeepConstant = False,
    out: Annotated[Path, typer.Option(help="Folder of the forecasts, the model and the report.")] = Path("braided-run"),
    form: Annotated[
        Literal["parquet", "csv"], typer.Option("--format", help="Format of the forecast file.")
    ] = "parquet",
    save: Annotated[Path | None, typer.Option(help="Where the model is saved; by default in the folder.")] = None,
    every: Annotated[int, typer.Option(help="Samples between saves.", min=1)] = 1_000_000,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Delete the model and forecasts of an earlier run, and start again.")
    ] = False,
    jobs: Annotated[
        int | None, typer.Option(help="Processes to tune in; -1 is one per core, the default where it is faster.")
    ] = None,
    sort_rows: opt.SortRows = opt.SORT_ROWS,
    debug: opt.Debug = False,
) -> None:
    """Forecast every value of a table before it is learned; say whether sharing helps; keep forecasts and model.

    If a run is interrupted, the same command resumes it from the model it saved last, and ends with the same forecasts.
    """
    from braided.report import PAGES, insist_own_pages, write_run_report
    from braided.runs import Run, chosen, claim
    from braided.runs import run as run_table

    settings = opt.settings_of(context, learning, mixing, start, tune=tune, keep_constant=keep_constant)
    if save is not None and save.parent != out:  # the folder of the run is made
        insist_folder(save)
    began = perf_counter()
    rounds = opt.open_table(files, sort_rows, **columns.names)
    print(f"{printable(rounds.name)}: {rounds.columns.describe()}")
    saved, forecasts = save or out / "model.braided", out / f"forecasts.{form}"
    insist_own_pages(out)
    others = [Path(name) for name in (start.parameters, start.model or "") if name and Path(name).exists()]
    claim(forecasts, saved, [*rounds.files, *others], [out / name for name in (*PAGES, "figures")])
    with progress() as advance:

        def report(done: Run) -> None:
            advance("writing the report", 0.99)
            write_run_report(done, out)

        how: dict[str, Any] = {"every": every, "jobs": jobs, "fresh": fresh, "progress": advance, "then": report}
        done = run_table(rounds, settings, forecasts, saved, **how)
    print(chosen(done.forecaster))
    show_record(done.forecaster)
    print(f"\nThe run {TOOK[done.how]} {perf_counter() - began:.0f} s. Report: {printable((out / PAGES[0]).resolve())}")
    for name, path in (("Forecasts", done.forecasts), ("Model", saved)):
        if path is not None:
            print(f"{name}: {printable(path.resolve())}")
