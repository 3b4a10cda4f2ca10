"""`braided live`: lines from standard input, forecasts to standard output."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Literal, final

import typer

from braided.cli import options as opt
from braided.cli.console import print_forecasts, say
from braided.cli.stopping import stoppable
from braided.errors import InputError
from braided.files import insist_folder, insist_own, sole_writer
from braided.printable import counted

if TYPE_CHECKING:
    from braided.forecasting import Forecasts
    from braided.runs import Live

NOTES_PER_MINUTE = 10
MINUTE = 60.0  # seconds


@opt.grouped
def live(
    context: typer.Context,
    columns: opt.Columns,
    learning: opt.Learning,
    mixing: opt.Mixing,
    start: opt.Start,
    keep_constant: Annotated[bool, typer.Option("--keep-constant", hidden=True)] = False,  # always on in live
    save: Annotated[
        Path | None, typer.Option(help="Where the model is saved; if the file exists, it is continued.")
    ] = None,
    every: Annotated[int, typer.Option(help="Values between saves.", min=1)] = 1_000_000,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start again instead of continuing from --save.")] = False,
    on_error: Annotated[
        Literal["skip", "stop"], typer.Option(help="What to do at a bad line: skip it, or stop.")
    ] = "skip",
    warm_up: Annotated[
        int, typer.Option(help=f"{opt.WITH}rounds to tune on; until then the forecast is no change.", min=5)
    ] = 200,
    max_ahead: Annotated[
        int,
        typer.Option(
            help="How many steps ahead of the clock a line may be; lines further ahead are set aside until three "
            "rounds in a row confirm them. 0 accepts every time.",
            min=0,
        ),
    ] = 100,
    debug: opt.Debug = False,
) -> None:
    """Read JSON lines, or CSV with a header, from standard input; print the next forecasts after each round.

    Stopped and started again with the lines that follow, it continues from the model at --save.
    """
    from braided.forecasting import Engine
    from braided.runs import Live, load_live
    from braided.runs.start import insist_made_with
    from braided.state import MODEL_MARK

    settings = opt.settings_of(context, learning, mixing, start)
    insist_folder(save)
    if save is not None:
        insist_own(save, MODEL_MARK, "choose another path (--save)")
    with sole_writer(file=save):  # which also finds out whether the folder can be written to
        if sys.stdin is None or sys.stdin.closed:
            raise InputError("standard input is closed: pipe lines into it, or run a file (`braided run`)")
        goes_on = save is not None and save.exists() and not fresh
        path = save if goes_on else start.model
        before = None if path is None else load_live(path)
        if save is not None and goes_on and isinstance(before, Engine):
            insist_made_with(before, save, settings, opt.given_options(context))
        named = opt.columns_of(before) if isinstance(before, Engine) else {}
        named |= {name: given for name, given in columns.names.items() if given}
        lines = Live(settings, before, warm_up=warm_up, max_ahead=max_ahead, note=say, **named)
        if goes_on:
            what = "" if isinstance(before, Engine) else " of the warm-up"
            instead = " instead of --model" if start.model not in (None, path) else ""
            rounds = f"{counted(lines.rounds, 'round')}{what} to {lines.last_time}"
            say(f"continuing from {path}{instead} (--fresh starts again): {rounds}")
        _run(lines, save, every, on_error == "stop")


@final
class Notes:
    """Prints notes of bad lines, at most ten a minute, and says how many it held back.

    >>> seconds = iter([0.0, 1.0, 2.0, 3.0, 60.0])
    >>> notes = Notes(print, lambda: next(seconds), per_minute=1)
    >>> for number in range(1, 4):
    ...     notes.add(f"line {number} is bad")
    line 1 is bad; further bad lines within this minute are only counted
    >>> notes.catch_up()
    2 more bad lines
    """

    def __init__(
        self, put: Callable[[str], None], clock: Callable[[], float] = monotonic, per_minute: int = NOTES_PER_MINUTE
    ) -> None:
        self._put, self._clock, self._per_minute = put, clock, per_minute
        self._began, self._shown, self._held_back = clock(), 0, 0

    def add(self, text: str) -> None:
        """Print a note, or only count it."""
        self.catch_up()
        if self._shown < self._per_minute:
            self._shown += 1
            self._put(
                text + "; further bad lines within this minute are only counted" * (self._shown == self._per_minute)
            )
        else:
            self._held_back += 1

    def catch_up(self) -> None:
        """Say how many notes were held back, if the minute is over."""
        now = self._clock()
        if now - self._began < MINUTE:
            return
        if self._held_back:
            self._put(counted(self._held_back, "more bad line"))
        self._began, self._shown, self._held_back = now, 0, 0


def _run(live: Live, save: Path | None, every: int, stop: bool) -> None:
    """Read lines until they end, or a signal stops the program; print forecasts as soon as they are known."""
    from braided.runs import SetAsideError
    from braided.tables.lines import read_lines

    notes = Notes(say)
    printed, bad, number, saved = False, 0, 0, 0

    def put(forecasts: list[Forecasts]) -> None:
        nonlocal printed
        for made in forecasts:
            print_forecasts(made, live.lines.form or "json", live.is_utc, header=not printed)
            printed = True

    def refuse(error: InputError) -> None:
        nonlocal bad
        if stop:
            raise error
        bad += not isinstance(error, SetAsideError)
        notes.add(str(error))

    def keep() -> None:
        if save is not None:
            live.save(save)

    def summary() -> str:
        aside = f", {live.set_aside:,} set aside (--max-ahead)" * (live.set_aside > 0)
        lines = f"{counted(number, 'line')}, {bad:,} bad{aside}"
        return f"after {lines}; {live.learned}"

    with stoppable() as busy:
        try:
            for number, line in read_lines(sys.stdin.buffer):
                with busy():
                    try:
                        if isinstance(line, InputError):
                            raise line
                        put(live.feed(line, number))
                    except InputError as error:
                        refuse(error)
                    while live.rejected:
                        refuse(live.rejected.pop(0))
                    notes.catch_up()
                    if live.values - saved >= every:
                        keep()
                        saved = live.values
            with busy():
                put(live.end())
        except KeyboardInterrupt:
            say(f"stopped {summary()}")
            raise
        finally:
            with busy():
                keep()
    if not printed and not live.rounds:
        raise InputError(
            f"none of {counted(number, 'line')} of standard input could be used: send JSON objects, or a CSV with a "
            "header"
        )
    say(f"standard input ended {summary()}")
