"""`braided inspect`: what a saved model is, and how good it has been."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from braided.cli.console import console, prose, show, show_record
from braided.cli.options import Debug


def inspect(
    model: Annotated[Path, typer.Argument(help="A model that `run`, `live` or braided.save wrote.")],
    debug: Debug = False,
) -> None:
    """Say what a saved model is, what it has learned, how good it has been, and which streams are similar."""
    from rich.markup import escape

    import braided
    from braided.forecasting import Engine, LiveRounds
    from braided.report.run.engine_report import links
    from braided.report.run.kinds import report_of
    from braided.report.run.learner_report import facts_of_learner
    from braided.runs.live import AUTO_WARM_UP
    from braided.runs.start import insist_origin

    loaded, screen = braided.load(model), console()
    if isinstance(loaded, LiveRounds):
        when = f"`braided live` makes it after {AUTO_WARM_UP} rounds, with --method after those of --warm-up"
        screen.print(f"{loaded.describe()} from standard input; there is no model yet: {when}", highlight=False)
        return
    if isinstance(loaded, Engine):
        insist_origin(loaded, model)
        facts, tables = report_of(loaded).facts(), report_of(loaded).tables()
    else:
        facts, tables = facts_of_learner(loaded), [links(loaded.graph)]
    for name, text in facts.items():
        prose().print(f"[bold]{name}[/]: {escape(text)}", highlight=False)
    if isinstance(loaded, Engine):
        show_record(loaded)
    for table in tables:
        if table.rows:
            show(table, screen)
