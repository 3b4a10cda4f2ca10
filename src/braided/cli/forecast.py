"""`braided forecast`: the next values, from a saved model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from braided.cli import options as opt
from braided.cli.console import print_forecasts, progress
from braided.errors import InputError
from braided.files import insist_apart, insist_folder, sole_writer
from braided.printable import counted


def forecast(
    model: Annotated[Path, typer.Argument(help="A model that `run` or `live` saved.")],
    files: Annotated[
        list[str] | None,
        typer.Argument(
            help="Files with newer rows, which are learned first; older rows are skipped. Rows without a value "
            "are the plan for rounds to come (see --known of `run`)."
        ),
    ] = None,
    future: Annotated[
        list[str] | None,
        typer.Option(
            help="A file with the plan: what is known ahead of rounds to come, without values; may be repeated."
        ),
    ] = None,
    save: Annotated[Path | None, typer.Option(help="Where to save the model after it has learned them.")] = None,
    form: Annotated[Literal["table", "csv", "json"], typer.Option("--format", help="Output format.")] = "table",
    sort_rows: opt.SortRows = opt.SORT_ROWS,
    debug: opt.Debug = False,
) -> None:
    """Let a saved model learn newer rows, and print its forecasts of the next rounds."""
    from braided.forecasting.clock import time_in_words
    from braided.graph import listed
    from braided.runs import learn, learn_known_ahead, load_forecaster
    from braided.state import save as save_model

    insist_folder(save)
    insist_apart([Path(name) for name in (*(files or ()), *(future or ()))], [] if save is None else [save])
    with sole_writer(file=save):
        forecaster = load_forecaster(model)
        if files:
            before, columns = forecaster.rounds, opt.columns_of(forecaster)
            try:
                rounds = opt.open_table(files, sort_rows, **columns)
            except InputError:  # the files may name their columns otherwise
                further = {"features": columns["features"], "known": columns["known"]}
                try:
                    rounds = opt.open_table(files, sort_rows, **further)
                except InputError as error:
                    hint = "; if it has no values, but says what is known of rounds to come, give it with --future"
                    raise InputError(f"{error}{hint * bool(columns['known'])}") from error
            with progress() as advance:
                learn(forecaster, rounds, advance)
            until = time_in_words(forecaster.last_stamp, forecaster.is_dated)
            print(f"learned {counted(forecaster.rounds - before, 'round')}, up to {until}", file=sys.stderr)
        if future:
            learn_known_ahead(forecaster, opt.open_table(future, sort_rows, **opt.columns_known_ahead(forecaster)))
        if save is not None:
            save_model(forecaster, save)
    made = forecaster.ahead()
    silent = [name for name in forecaster.tasks if name not in set(made.tasks)]
    if silent:
        print(f"no forecast for {listed(silent)}: {forecaster.no_forecast}", file=sys.stderr)
    if said := forecaster.plan_in_words():
        print(said, file=sys.stderr)
    print_forecasts(made, form, bool(forecaster.origin.is_utc))
