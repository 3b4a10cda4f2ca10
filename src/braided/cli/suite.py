"""`braided study --suite forecasting`: braided's forecasters beside rules and other packages."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

from braided.cli.console import LEAST_WIDTH, console, progress, show, width_of
from braided.files import insist_apart, insist_own, sole_writer
from braided.printable import printable
from braided.processes import workers

SUITE_OUT = Path("braided-suite")
SUITE_TABLE = "suite.csv"


def run_forecasting(
    data: list[str],
    methods: tuple[str, ...],
    out: Path,
    jobs: int,
    quick: bool,
    peers: bool,
    timezone: str | None,
    horizon: int,
) -> None:
    """Run the suite, print its tables, and write them into a folder."""
    from braided.report import insist_own_pages, write_suite_report
    from braided.report.suite.tables import findings, tables
    from braided.suite import SUITE_METHODS, find_suite_method, run_suite, suite_panels
    from braided.suite.table import MARK, write_scores

    began = perf_counter()
    fit = {name: one for name, one in SUITE_METHODS.items() if one.ahead or horizon == 1}
    names = methods or tuple(name for name, one in fit.items() if peers or one.kind != "peer")
    for name in names:
        find_suite_method(name)
    workers(jobs)  # refused before anything is written
    panels = suite_panels(data, timezone, quick)
    insist_apart([Path(name) for name in data if Path(name).exists()], [out / SUITE_TABLE])
    insist_own(out / SUITE_TABLE, MARK)
    insist_own_pages(out)
    with sole_writer(folder=out):
        with progress() as advance:
            outcomes = run_suite(panels, names, jobs, lambda what, share: advance(printable(what), share), horizon)
        write_scores(outcomes, out / SUITE_TABLE)
        again = ["--quick"] * quick + ([] if timezone is None else ["--timezone", timezone])
        again += ["--horizon", f"{horizon}"] * (horizon > 1)
        page = write_suite_report(outcomes, out, again)
    shown = [table for table in tables(outcomes) if table.group != "other"]
    screen = console(max(LEAST_WIDTH, *map(width_of, shown)))
    for table in shown:
        show(table, screen)
    for sentence in findings(outcomes):
        screen.print(f"• {sentence}", highlight=False, markup=False)
    print(f"\nThe suite took {perf_counter() - began:.0f} s. Report: {printable(page.resolve())}")
    print(f"Scores: {printable((out / SUITE_TABLE).resolve())}")
