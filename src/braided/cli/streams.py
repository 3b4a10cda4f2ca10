"""The commands for streams of one's own: run, tune, forecast, inspect."""

from __future__ import annotations

import sys
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from braided.cli.console import Debug, Jobs, console, print_forecasts, progress, show, split
from braided.cli.live import Options, columns_of, run_lines
from braided.errors import InputError
from braided.files import insist_apart, insist_own, is_there, remove_own, sole_writer
from braided.printable import printable

if TYPE_CHECKING:
    from braided.forecasting import Engine
    from braided.runs import Settings
    from braided.tables import Rounds

Files = Annotated[
    list[str],
    typer.Argument(
        help="CSV or Parquet files, long (time, task, value) or wide (time, a column per task), read as one table; "
        "or la-haute-borne, us-incomes, synthetic; or - for lines from standard input."
    ),
]
Time = Annotated[str | None, typer.Option("--time", help="Column of the times, if it is not guessed.")]
Task = Annotated[str | None, typer.Option("--task", help="Column of the tasks, if it is not guessed.")]
Value = Annotated[str | None, typer.Option("--value", help="Column of the values, if it is not guessed.")]
Features = Annotated[
    str, typer.Option(help="Columns of further features, with commas between; their last values are used.")
]
SortRows = Annotated[int, typer.Option(help="Rows that may be out of order, kept in memory.", min=0)]
Method = Annotated[
    str,
    typer.Option(
        help="Methods to choose among, with commas between; `braided methods` lists them. Default: the usual."
    ),
]
Tune = Annotated[float, typer.Option("--tune", help="Leading share of the rounds to tune on.")]
Lags = Annotated[int | None, typer.Option(help="Past changes as features; by default 9, or fewer.", min=1)]
Log = Annotated[bool, typer.Option("--log", help="Learn growth: changes of the values' logarithms.")]
KeepConstant = Annotated[
    bool, typer.Option("--keep-constant", help="Let tasks that never change in the part to tune on join later.")
]
AsIs = Annotated[bool, typer.Option("--as-is", help="Take every value as it is; otherwise wild ones count for little.")]
Without = Annotated[list[str] | None, typer.Option(help="A task to leave out; may be repeated.")]
SORT_ROWS = 2_000_000
FOR_FILES = {
    "out": "--out",
    "form": "--format",
    "jobs": "--jobs",
    "sort_rows": "--sort-rows",
    "tune": "--tune",
}
FOR_TUNING = {
    "method": "--method",
    "parameters": "--parameters",
    "tune": "--tune",
    "lags": "--lags",
    "log": "--log",
    "interval": "--interval",
    "as_is": "--as-is",
    "keep_constant": "--keep-constant",
    "warm_up": "--warm-up",
}
FOR_LINES = {"on_error": "--on-error", "warm_up": "--warm-up", "max_ahead": "--max-ahead"}


def run(
    context: typer.Context,
    files: Files,
    time: Time = None,
    task: Task = None,
    value: Value = None,
    features: Features = "",
    method: Method = "",
    parameters: Annotated[
        str, typer.Option(help="Of one method, instead of tuning: penalty=10,ridge=1,… or a file that `tune` wrote.")
    ] = "",
    tune: Tune = 0.2,
    lags: Lags = None,
    log: Log = False,
    as_is: AsIs = False,
    interval: Annotated[float, typer.Option(help="Share of the values that intervals are to hold.")] = 0.9,
    without: Without = None,
    keep_constant: KeepConstant = False,
    model: Annotated[Path | None, typer.Option(help="Start from a saved model instead of tuning one.")] = None,
    out: Annotated[Path, typer.Option(help="Folder of the forecasts, the model and the report.")] = Path("braided-run"),
    form: Annotated[
        Literal["parquet", "csv"], typer.Option("--format", help="Of the forecasts: parquet or csv.")
    ] = "parquet",
    save: Annotated[
        Path | None,
        typer.Option(
            help="Where the model is saved; by default in the folder. A run of lines goes on from the model there."
        ),
    ] = None,
    every: Annotated[int, typer.Option(help="Samples between saves; of standard input, values.", min=1)] = 1_000_000,
    fresh: Annotated[
        bool,
        typer.Option(
            "--fresh",
            help="Start again instead of continuing an earlier run; of a table, its model and forecasts are deleted.",
        ),
    ] = False,
    jobs: Annotated[
        int | None, typer.Option(help="Processes to tune in; -1 is one per core, and the default where that pays.")
    ] = None,
    sort_rows: SortRows = SORT_ROWS,
    on_error: Annotated[
        Literal["skip", "stop"], typer.Option(help="What to do with a bad line of standard input: skip it, or stop.")
    ] = "skip",
    warm_up: Annotated[int, typer.Option(help="Rounds of standard input to tune on.", min=5)] = 200,
    max_ahead: Annotated[
        int,
        typer.Option(
            help="Steps of the clock by which a line of standard input may lie ahead; lines further ahead are set "
            "aside until three rounds in a row confirm them. 0 accepts every time.",
            min=0,
        ),
    ] = 100,
    debug: Debug = False,
) -> None:
    """Forecast every value of a table before it is learned; say whether sharing pays; keep forecasts and model.

    Stopped and started again, a run goes on from the model it saved last, and ends with the same forecasts.
    """
    from braided.report import PAGES, insist_own_pages, write_run_report
    from braided.runs import chosen, claim
    from braided.runs import run as run_table
    from braided.state import MODEL_MARK

    lines = files == ["-"]
    _refuse_unused(context, FOR_FILES if lines else FOR_LINES, "of lines" if lines else "of files")
    columns = {"time": time, "task": task, "value": value, "features": split(features)}
    if model is not None:
        _refuse_unused(context, FOR_TUNING, "from a saved model")
    settings = _settings(method, parameters, tune, lags, log, interval, as_is, without, keep_constant, model)
    if lines:
        if save is not None:
            insist_own(save, MODEL_MARK, "choose another path (--save)")
        with sole_writer(file=save):  # which also finds out whether the folder can be written to
            options = Options(save, every, on_error == "stop", warm_up, max_ahead, fresh)
            run_lines(settings, options, columns)
        return
    began = perf_counter()
    rounds = _open(files, sort_rows, **columns)
    print(f"{printable(rounds.name)}: {rounds.columns.describe()}")
    saved, forecasts = save or out / "model.braided", out / f"forecasts.{form}"
    insist_own_pages(out)
    inputs = [*rounds.files, *(Path(name) for name in (parameters, model or "") if name and Path(name).exists())]
    claim(forecasts, saved, inputs, [out / name for name in (*PAGES, "figures")])
    with sole_writer(folder=out, file=saved), progress() as tell:
        done = run_table(rounds, settings, forecasts, saved, every=every, jobs=jobs, fresh=fresh, progress=tell)
        tell("writing the report", 0.99)
        page = write_run_report(done, out)
    print(chosen(done.forecaster))
    _show(done.forecaster)
    what = {"begun": "took", "continued": "went on and took", "finished": "was finished before; this took"}[done.how]
    print(f"\nThe run {what} {perf_counter() - began:.0f} s. Report: {printable(page.resolve())}")
    for name, path in (("Forecasts", done.forecasts), ("Model", saved)):
        if path is not None:
            print(f"{name}: {printable(path.resolve())}")


def tune(
    files: Files,
    time: Time = None,
    task: Task = None,
    value: Value = None,
    features: Features = "",
    method: Method = "",
    share: Tune = 0.2,
    search: Annotated[
        Literal["halving", "grid"], typer.Option(help="Try the promising ones for long, or all of them.")
    ] = "halving",
    lags: Lags = None,
    log: Log = False,
    as_is: AsIs = False,
    without: Without = None,
    keep_constant: KeepConstant = False,
    out: Annotated[Path, typer.Option(help="File of the choice, for `run --parameters`.")] = Path("tuned.json"),
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget the trials of an earlier search.")] = False,
    jobs: Jobs = -1,
    sort_rows: SortRows = SORT_ROWS,
    debug: Debug = False,
) -> None:
    """Find the method and parameters that forecast the leading part of a table best.

    Trials are kept beside the file: stopped and started again, the search goes on.
    """
    from braided.report.run_tables import trials
    from braided.runs import Settings, choose, read_head, write_choice
    from braided.runs.start import CHOICE_MARK
    from braided.runs.tuning import TRIALS_MARK

    settings = Settings(
        methods=split(method),
        tune=share,
        how=search,
        lags=lags,
        logarithm=log,
        robust=not as_is,
        without=tuple(without or ()),
        keep_constant=keep_constant,
    )
    rounds = _open(files, sort_rows, time=time, task=task, value=value, features=split(features))
    print(f"{printable(rounds.name)}: {rounds.columns.describe()}")
    kept = out.with_name(out.name + ".trials")
    insist_apart(rounds.files, [out, kept])
    for path, mark in ((out, CHOICE_MARK), (kept, TRIALS_MARK)):
        insist_own(path, mark, "choose another file (--out)")
    with sole_writer(file=out), progress() as tell:
        if fresh:
            remove_own({kept: TRIALS_MARK})
        head = read_head(rounds, settings)
        choice = choose(head, settings, jobs, kept, tell)
        write_choice(out, choice, head)
    show(trials(choice.plain()), console())
    where = f" of {choice.streams:,} streams" if choice.streams else ""
    print(f"{choice.tried} trials on {len(head.times)} rounds{where}.", end=" ")
    print(f"To use it: braided run … --parameters {printable(out)}")


def forecast(
    model: Annotated[Path, typer.Argument(help="A model that `run` saved.")],
    files: Annotated[
        list[str] | None, typer.Argument(help="Files with newer rows, which are learned first; older ones are skipped.")
    ] = None,
    save: Annotated[Path | None, typer.Option(help="Where to save the model with what it has learned.")] = None,
    form: Annotated[
        Literal["table", "csv", "json"], typer.Option("--format", help="What to print: table, csv or json lines.")
    ] = "table",
    sort_rows: SortRows = SORT_ROWS,
    debug: Debug = False,
) -> None:
    """Let a saved model learn newer rows, and print its forecasts of the next round."""
    from braided.forecasting.clock import time_in_words
    from braided.graph import listed
    from braided.runs import learn, load_forecaster
    from braided.state import save as save_model

    insist_apart([Path(name) for name in files or ()], [] if save is None else [save])
    with sole_writer(file=save):
        forecaster = load_forecaster(model)
        if files:
            before = forecaster.rounds
            with progress() as tell:
                learn(forecaster, _open_for(forecaster, files, sort_rows), tell)
            until = time_in_words(forecaster.last_stamp, forecaster.is_dated)
            print(f"learned {forecaster.rounds - before} rounds, up to {until}", file=sys.stderr)
        if save is not None:
            save_model(forecaster, save)
    made = forecaster.ahead()
    left = [task for task in forecaster.tasks if task not in set(made.tasks)]
    if left:
        print(f"no forecast for {listed(left)}: the last round has no value of theirs", file=sys.stderr)
    print_forecasts(made, form, bool(forecaster.about.get("utc")))


def inspect(
    model: Annotated[Path, typer.Argument(help="A model that `run` or braided.save wrote.")], debug: Debug = False
) -> None:
    """Say what a saved model is, what it has seen, how good it has been, and which tasks are alike."""
    from rich.markup import escape

    import braided
    from braided.forecasting import Engine, LiveRounds
    from braided.report.run_tables import facts, links
    from braided.runs.start import insist_origin

    loaded = braided.load(model)
    if isinstance(loaded, Engine):
        insist_origin(loaded, model)
    screen = console()
    if isinstance(loaded, LiveRounds):
        screen.print(f"{loaded.describe()} from standard input; there is no model yet", highlight=False)
        return
    for name, text in facts(loaded).items():
        screen.print(f"[bold]{name}[/]: {escape(text)}", highlight=False)
    if isinstance(loaded, Engine):
        _show(loaded)
    show(links(loaded.graph), screen)


def _refuse_unused(context: typer.Context, options: dict[str, str], what: str) -> None:
    """Refuse options that would be passed over in silence."""
    for name, option in options.items():
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise InputError(f"{option} has no meaning for a run {what}: leave it out")


def _settings(
    method: str,
    parameters: str,
    tune: float,
    lags: int | None,
    log: bool,
    interval: float,
    as_is: bool,
    without: list[str] | None,
    keep_constant: bool,
    model: Path | None,
) -> Settings:
    from braided.runs import Settings, read_choice

    given: dict[str, Any] = {"methods": split(method)}
    if parameters and "=" in parameters and not is_there(parameters):
        given["parameters"] = _numbers(parameters)
    elif parameters:
        given = read_choice(Path(parameters))
    fixed: dict[str, Any] = {"tune": tune, "logarithm": log, "coverage": interval, "keep_constant": keep_constant}
    fixed |= {"robust": not as_is, "without": tuple(without or ())}
    start = "" if model is None else str(model)
    return Settings(**{"lags": lags} | given | fixed, model=start)


def _numbers(text: str) -> dict[str, float]:
    numbers = {}
    for part in split(text):
        name, _, number = part.partition("=")
        try:
            numbers[name.strip()] = float(number)
        except ValueError as error:
            raise InputError(f"parameter {part!r}: write a name and a number, such as penalty=10") from error
    return numbers


def _open(files: list[str], sort_rows: int, **columns: Any) -> Rounds:
    from braided.datasets import EMBEDDED, open_panel
    from braided.tables import open_rounds

    if "-" in files:
        raise InputError("- (standard input) stands alone, and only in `braided run`: give files otherwise")
    known = (*EMBEDDED, "synthetic")
    if len(files) == 1 and (files[0] in known or not is_there(files[0])):
        return open_rounds(open_panel(files[0]), sort_rows=sort_rows)
    return open_rounds(files[0] if len(files) == 1 else files, sort_rows=sort_rows, **columns)


def _open_for(forecaster: Engine, files: list[str], sort_rows: int) -> Rounds:
    """Open files with the columns that the model knows, or with others if they have none of these names."""
    columns = columns_of(forecaster)
    try:
        return _open(files, sort_rows, **columns)
    except InputError:
        return _open(files, sort_rows, features=columns["features"])


def _show(forecaster: Engine) -> None:
    from braided.report.run_tables import errors
    from braided.runs.summary import in_words

    screen = console()
    table = errors(forecaster, most=30)
    if table.rows:
        show(table, screen)
    for sentence in in_words(forecaster):
        screen.print(f"• {sentence}", highlight=False, markup=False)
