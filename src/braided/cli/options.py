"""Options and steps that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from braided.cli.console import split
from braided.errors import InputError
from braided.files import is_there

if TYPE_CHECKING:
    from braided.forecasting import Engine
    from braided.runs import Settings
    from braided.tables import Rounds

# Declared for --help and the parser; `main` looks into sys.argv, as parsing itself may be what fails.
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
Jobs = Annotated[int, typer.Option(help="Processes; -1 is one per core.")]

Files = Annotated[
    list[str],
    typer.Argument(
        help="CSV or Parquet files, long (time, stream, value) or wide (time, a column per stream), read as one table; "
        "or la-haute-borne, us-incomes, synthetic."
    ),
]
Time = Annotated[str | None, typer.Option("--time", help="Column of the times; guessed by default.")]
Stream = Annotated[str | None, typer.Option("--stream", help="Column of the streams' names; guessed by default.")]
Value = Annotated[str | None, typer.Option("--value", help="Column of the values; guessed by default.")]
Features = Annotated[
    str, typer.Option(help="Columns of further features, separated by commas; their last values are used.")
]
SortRows = Annotated[int, typer.Option(help="How many rows may be out of order; they are kept in memory.", min=0)]
Method = Annotated[
    str,
    typer.Option(
        help="Methods to choose among, separated by commas; `braided methods` lists them. Default: mt-wrls and wrls, "
        "each with and without the neighbours' changes."
    ),
]
Parameters = Annotated[
    str, typer.Option(help="Of one method, instead of tuning: penalty=10,ridge=1,… or a file that `tune` wrote.")
]
Tune = Annotated[float, typer.Option("--tune", help="Leading share of the rounds: the tuning period.")]
Lags = Annotated[
    int | None, typer.Option(help="Past changes used as features; 9 by default, fewer in a short table.", min=1)
]
Log = Annotated[bool, typer.Option("--log", help="Learn growth: changes of the values' logarithms.")]
KeepConstant = Annotated[
    bool, typer.Option("--keep-constant", help="Let streams that never change in the tuning period join later.")
]
AsIs = Annotated[
    bool, typer.Option("--as-is", help="Give every value full weight; by default wild values count for little.")
]
Interval = Annotated[float, typer.Option(help="Share of the values that the intervals should hold.")]
Without = Annotated[list[str] | None, typer.Option(help="A stream to leave out; may be repeated.")]
Model = Annotated[Path | None, typer.Option(help="Start from a saved model instead of tuning one.")]
SORT_ROWS = 2_000_000
FOR_TUNING = ("method", "parameters", "tune", "lags", "log", "interval", "as_is", "keep_constant", "warm_up")


def settings_of(context: typer.Context, method: str, parameters: str, model: Path | None, **rest: Any) -> Settings:
    """Return the settings of a run; beside a saved model, options of tuning are refused."""
    from braided.runs import Settings, read_choice

    for name in FOR_TUNING if model is not None else ():
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise InputError(f"--{name.replace('_', '-')} has no meaning for a run from a saved model: leave it out")
    given: dict[str, Any] = {"methods": split(method)}
    if parameters and "=" in parameters and not is_there(parameters):
        given["parameters"] = _numbers(parameters)
    elif parameters:
        given = read_choice(Path(parameters))
    return Settings(**rest | given, model="" if model is None else str(model))


def _numbers(text: str) -> dict[str, float]:
    numbers = {}
    for part in split(text):
        name, _, number = part.partition("=")
        try:
            numbers[name.strip()] = float(number)
        except ValueError as error:
            raise InputError(f"parameter {part!r}: write a name and a number, such as penalty=10") from error
    return numbers


def open_table(files: list[str], sort_rows: int, **columns: Any) -> Rounds:
    """Open files, or data that come with the package, as rounds."""
    from braided.datasets import EMBEDDED, open_panel
    from braided.tables import open_rounds

    if "-" in files:
        raise InputError("- is standard input, which `braided live` reads: give files")
    known = (*EMBEDDED, "synthetic")
    if len(files) == 1 and (files[0] in known or not is_there(files[0])):
        return open_rounds(open_panel(files[0]), sort_rows=sort_rows)
    return open_rounds(files[0] if len(files) == 1 else files, sort_rows=sort_rows, **columns)


def columns_of(forecaster: Engine) -> dict[str, Any]:
    """Return the names of the columns that a model was learned from."""
    known = forecaster.origin.columns
    if known is None:
        return {"time": None, "task": None, "value": None, "features": ()}
    return {"time": known.time or None, "task": known.task, "value": known.value or None, "features": known.features}
