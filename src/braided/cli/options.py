"""Options that several commands share, in groups, and what is made of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from braided.cli.console import split
from braided.errors import InputError
from braided.files import is_there

if TYPE_CHECKING:
    from braided.forecasting import Engine
    from braided.forecasting.auto import Auto
    from braided.runs import Settings
    from braided.tables import Rounds

# Declared for --help and the parser; `main` looks into sys.argv, as parsing itself may be what fails.
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
Jobs = Annotated[int, typer.Option(help="Processes; -1 is one per core.")]
# Written out, as braided.datasets is slow to import.
BUILT_IN = "la-haute-borne, us-incomes, us-employment, melbourne-pedestrians or synthetic"
Files = Annotated[
    list[str],
    typer.Argument(
        help="CSV or Parquet files, long (time, stream, value) or wide (time, a column per stream), read as one table; "
        f"or {BUILT_IN}."
    ),
]
SortRows = Annotated[int, typer.Option(help="How many rows may be out of order; they are kept in memory.", min=0)]
SORT_ROWS = 2_000_000
WITH = "With --method: "
TUNE = "fraction of the rounds, from the start, to tune on: the tuning period."
KEEP_CONSTANT = "let streams that never change in the tuning period join later."
LAGS = "past changes used as features; 9 by default, fewer in a short table."
LOG = "learn growth: changes of the values' logarithms."
Tune = Annotated[float, typer.Option("--tune", help=WITH + TUNE)]
KeepConstant = Annotated[bool, typer.Option("--keep-constant", help=WITH + KEEP_CONSTANT)]
FOR_AUTO = ("season", "timezone", "holidays", "low", "high", "compare", "horizon", "quantiles")


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take groups of options: each field of a parameter that is a dataclass becomes an option."""
    given = inspect.signature(command, eval_str=True).parameters.values()
    groups: dict[str, Any] = {one.name: one.annotation for one in given if is_dataclass(one.annotation)}
    options: list[inspect.Parameter] = []
    for one in given:
        options += inspect.signature(one.annotation, eval_str=True).parameters.values() if one.name in groups else [one]

    @wraps(command)
    def flat(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        command(**values)

    vars(flat)["__signature__"] = inspect.Signature([one.replace(kind=one.KEYWORD_ONLY) for one in options])
    return flat


@dataclass(frozen=True)
class Columns:
    """The columns of a table; those not named are guessed."""

    time: Annotated[str | None, typer.Option(help="Column of the times; guessed by default.")] = None
    stream: Annotated[str | None, typer.Option(help="Column of the streams' names; guessed by default.")] = None
    value: Annotated[str | None, typer.Option(help="Column of the values; guessed by default.")] = None
    features: Annotated[
        str, typer.Option(help="Columns of further features, separated by commas; their last values are used.")
    ] = ""
    known: Annotated[
        str,
        typer.Option(
            help="Columns that are known ahead, such as price,promotion: each round is forecast with its own values. "
            "Rows without a value are the plan for rounds to come."
        ),
    ] = ""

    @property
    def names(self) -> dict[str, Any]:
        """The names, as `open_rounds` and `Live` take them."""
        further = {"features": split(self.features), "known": split(self.known)}
        return {"time": self.time, "task": self.stream, "value": self.value} | further


@dataclass(frozen=True)
class Learning:
    """What is learned, and with which methods."""

    method: Annotated[
        str,
        typer.Option(
            help="Methods to choose among, separated by commas; `braided methods` lists them. Default: auto, which "
            "needs no tuning (for `tune`: mt-wrls and wrls, each with and without the neighbours' changes)."
        ),
    ] = ""
    lags: Annotated[int | None, typer.Option(help=WITH + LAGS, min=1)] = None
    log: Annotated[bool, typer.Option("--log", help=WITH + LOG)] = False
    as_is: Annotated[
        bool, typer.Option("--as-is", help="Give every value full weight; by default wild values count for little.")
    ] = False
    without: Annotated[list[str] | None, typer.Option(help="A stream to leave out; may be repeated.")] = None

    @property
    def settings(self) -> dict[str, Any]:
        """These options as `Settings` takes them."""
        settings: dict[str, Any] = {"methods": split(self.method)} if self.method else {}
        settings |= {"lags": self.lags, "logarithm": self.log, "robust": not self.as_is}
        return settings | {"without": tuple(self.without or ())}


@dataclass(frozen=True)
class Tuning(Learning):
    """The same for `tune`, which needs no `--method` to tune."""

    lags: Annotated[int | None, typer.Option(help=LAGS.capitalize(), min=1)] = None
    log: Annotated[bool, typer.Option("--log", help=LOG.capitalize())] = False


@dataclass(frozen=True)
class Mixing:
    """Settings of Auto."""

    season: Annotated[
        str,
        typer.Option(
            help="Seasons in rounds, such as 7,365.25; or none. By default those of the clock: day and week, week and "
            "year, or year.",
        ),
    ] = ""
    timezone: Annotated[
        str | None,
        typer.Option(help="Clock that seasons follow, such as Australia/Melbourne; times in UTC are converted to it."),
    ] = None
    holidays: Annotated[
        str | None, typer.Option(help="Country, or country and region, whose holidays are days off: AU, AU-VIC.")
    ] = None
    low: Annotated[float | None, typer.Option("--min", help="No forecast or interval is below this.")] = None
    high: Annotated[float | None, typer.Option("--max", help="No forecast or interval is above this.")] = None
    horizon: Annotated[int, typer.Option(help="How many rounds ahead to forecast.", min=1)] = 1
    quantiles: Annotated[str, typer.Option(help="Levels of quantiles to forecast as well, such as 0.1,0.5,0.9.")] = ""
    compare: Annotated[
        bool, typer.Option("--compare", help="Also run Auto without sharing, to measure what sharing gains.")
    ] = False

    @property
    def auto(self) -> Auto:
        """These options as `Settings` takes them."""
        from braided.forecasting.auto import Auto
        from braided.validate import real

        seasons = None if not self.season else () if self.season == "none" else tuple(map(_length, split(self.season)))
        for option, bound in (("--min", self.low), ("--max", self.high)):
            real(0.0 if bound is None else bound, option)
        if self.low is not None and self.high is not None and self.low >= self.high:
            raise InputError(f"--min is {self.low:g} and --max is {self.high:g}: give a --min that is below --max")
        return Auto(
            seasons=seasons,
            timezone=self.timezone,
            holidays=self.holidays,
            low=self.low,
            high=self.high,
            compares=self.compare,
            horizon=self.horizon,
            quantiles=tuple(map(_level, split(self.quantiles))),
        )


def _length(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise InputError(f"--season {text!r}: write numbers of rounds, such as 7,365.25, or none") from error


def _level(text: str) -> float:
    try:
        level = float(text)
    except ValueError as error:
        raise InputError(f"--quantiles {text!r}: write levels between 0 and 1, such as 0.1,0.5,0.9") from error
    insist_share("--quantiles", level)
    return level


@dataclass(frozen=True)
class Start:
    """What a run starts from, instead of tuning; and its intervals."""

    parameters: Annotated[
        str, typer.Option(help="Parameters of one method, to skip tuning: penalty=10,… or a file written by `tune`.")
    ] = ""
    interval: Annotated[float, typer.Option(help="Share of the values that the intervals should hold.")] = 0.9
    model: Annotated[Path | None, typer.Option(help="Start from a saved model.")] = None


def settings_of(context: typer.Context, learning: Learning, mixing: Mixing, start: Start, **more: Any) -> Settings:
    """Return the settings of a run; with a saved model, options of tuning and of Auto are refused."""
    from braided.runs import Settings, read_choice
    from braided.runs.start import NOT_FOR_AUTO, not_for_auto

    if start.model is not None:
        tuning = ("method", "interval", "as_is", *NOT_FOR_AUTO)
        insist_not_given(context, (*tuning, *FOR_AUTO), "for a run from a saved model: leave it out")
    given: dict[str, Any] = {}
    if start.parameters and "=" in start.parameters and not is_there(start.parameters):
        given = {"parameters": _numbers(start.parameters)}
    elif start.parameters:
        if learning.method or learning.lags is not None:
            raise InputError(f"{start.parameters} says which method and lags to use: leave out --method and --lags")
        given = read_choice(Path(start.parameters))
    insist_share("--interval", start.interval)
    insist_share("--tune", more.get("tune", 0.5))
    methods = given.get("methods", split(learning.method))
    if methods and methods != ("auto",):
        insist_not_given(context, FOR_AUTO, "with --method, as it is for Auto: leave it out, or leave out --method")
    more |= {"auto": mixing.auto, "coverage": start.interval, "model": "" if start.model is None else str(start.model)}
    settings = Settings(**learning.settings | given | more)
    if settings.is_auto and start.model is None:
        for name in NOT_FOR_AUTO:
            if is_given(context, name):
                raise not_for_auto(name)
    return settings


def insist_share(option: str, share: float) -> None:
    """Refuse a share that is not between 0 and 1, such as one in per cent."""
    if not 0.0 < share < 1.0:
        example = share / 100.0 if 1.0 < share < 100.0 else 0.9
        raise InputError(f"{option} is {share:g}: give a share between 0 and 1, such as {example:g}")


def insist_not_given(context: typer.Context, names: Sequence[str], why: str) -> None:
    """Refuse options that would be ignored."""
    for name in names:
        if is_given(context, name):
            raise InputError(f"{_option(name)} has no meaning {why}")


def is_given(context: typer.Context, name: str) -> bool:
    """Whether an option is on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def given_options(context: typer.Context) -> list[str]:
    """Return the options of learning, of Auto and of intervals that are on the command line."""
    names = [field.name for group in (Learning, Mixing) for field in fields(group)]
    return [_option(name) for name in (*names, "parameters", "interval") if is_given(context, name)]


def _option(name: str) -> str:
    """The option that is called `name` in Python."""
    return "--" + {"low": "min", "high": "max"}.get(name, name.replace("_", "-"))


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
    is_known = len(files) == 1 and (files[0] in (*EMBEDDED, "synthetic") or not is_there(files[0]))
    return open_rounds(open_panel(files[0]) if is_known else files, sort_rows=sort_rows, **columns)


def columns_of(forecaster: Engine) -> dict[str, Any]:
    """Return the names of the columns that a model was learned from."""
    columns = forecaster.origin.columns
    if columns is None:
        return Columns().names
    named = {"time": columns.time or None, "task": columns.task, "value": columns.value or None}
    return named | {"features": columns.known_last, "known": columns.known}


def columns_known_ahead(forecaster: Engine) -> dict[str, Any]:
    """Return the names of the columns of a plan for a model; the first column that is known ahead stands for values."""
    columns = columns_of(forecaster)
    if not columns["known"]:
        raise InputError("the model has no columns that are known ahead (--known): leave out --future")
    first, *others = columns["known"]
    return columns | {"value": first, "features": (), "known": tuple(others)}
