"""Live: lines in as they come, forecasts of the next round out.

A round is complete when every task of the round before has come, or when a later time comes; then it is learned, and
the next one is forecast. Without a model to start from, the first rounds are gathered, and "no change" is forecast
meanwhile; on them a method is tuned, as in a run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import final

import numpy as np

from braided.errors import InputError
from braided.forecasting import Forecaster, Forecasts
from braided.runs.head import Head
from braided.runs.table import Settings, choose
from braided.streams.lines import Lines, Row
from braided.types import Floats

WARM_UP = 200  # rounds

Note = Callable[[str], None]


@final
class Live:
    """Turns lines into forecasts; a line that is refused leaves no trace.

    >>> live = Live(Lines(), Settings(lags=2), warm_up=3)
    >>> for number, line in enumerate(["time,site,value", "1,a,5.0", "1,b,7.0", "2,a,6.0", "2,b,7.5"], 1):
    ...     for made in live.feed(line, number):
    ...         print(made.times.tolist(), made.tasks, made.forecast.tolist())
    [] [] []
    [3, 3] ['a', 'b'] [6.0, 7.5]
    """

    def __init__(
        self,
        lines: Lines,
        settings: Settings,
        forecaster: Forecaster | None = None,
        warm_up: int = WARM_UP,
        note: Note = lambda _: None,
    ) -> None:
        self.lines, self.settings, self.forecaster, self.note = lines, settings, forecaster, note
        self._warm_up = warm_up
        self._gathered: list[dict[str, Row]] = []  # the first rounds, while there is no forecaster
        self._round: dict[str, Row] = {}  # by task, the one that is coming in
        self._expected: set[str] = set()
        self._last: int | None = None if forecaster is None or not forecaster.rounds else forecaster.last_stamp

    def feed(self, line: str, number: int) -> Iterator[Forecasts]:
        """Take up a line; yield the forecasts that it makes possible. A bad one is refused, and nothing learned."""
        row = self.lines.parse(line, number)
        if row is None:
            return
        time = next(iter(self._round.values())).time if self._round else None
        new = {
            task: Row(row.time, row.is_dated, {task: value}, {task: row.extras[task]})
            for task, value in row.values.items()
        }
        if self._last is not None and row.time <= self._last:
            self._expected |= new.keys()
            raise InputError(
                f"line {number} belongs to a round that is complete already: send lines in order of time; the next "
                "rounds wait for this task"
            )
        if time is not None and row.time < time:
            raise InputError(f"line {number} lies before the round that is coming in: send lines in order of time")
        if time == row.time and (twice := new.keys() & self._round.keys()):
            raise InputError(f"line {number} gives {min(twice)!r} for the second time in a round: send each once")
        if self.forecaster is not None and self.forecaster.rounds and row.is_dated != self.forecaster.is_dated:
            raise InputError(f"line {number} has a time of another kind than the model has learned: use the same")
        units = None if self.forecaster is None else self.forecaster.units
        logarithm = self.settings.logarithm if units is None else units.logarithm
        if logarithm and (bad := [task for task, value in row.values.items() if value <= 0.0]):
            raise InputError(f"line {number} gives {row.values[bad[0]]:g}, which has no logarithm: use NA")
        if time is not None and row.time > time:
            yield self._complete()
        self._round |= new
        if self._expected and self._round.keys() >= self._expected:
            yield self._complete()

    def end(self) -> Iterator[Forecasts]:
        """Complete the last round."""
        if self._round:
            yield self._complete()

    @property
    def samples(self) -> int:
        """How many samples have been learned."""
        return self.forecaster.learner.samples if self.forecaster is not None else 0

    def _complete(self) -> Forecasts:
        whole, self._round = self._round, {}
        self._expected = set(whole)
        first = next(iter(whole.values()))
        before, self._last = self._last, first.time
        if self.forecaster is None:
            self._gathered.append(whole)
            if len(self._gathered) >= self._warm_up:
                self._start()
            if self.forecaster is None:
                return _no_change(whole, None if before is None else 2 * first.time - before)
        else:
            self.forecaster.advance(*_columns([whole]))
        return self.forecaster.ahead()

    def _start(self) -> None:
        times, values, tasks, extras = _columns(self._gathered)
        try:
            head = Head.of(times, tasks, values, extras, self.settings.lags, self.settings.logarithm)
            choice = choose(head, self.settings)
        except InputError as error:
            self._warm_up *= 2
            self.note(f"still forecasting “no change”, up to round {self._warm_up}: {error}")
            return
        columns = self.lines.columns
        about = {
            "source": "standard input",
            "columns": {} if columns is None else columns._asdict(),
            "choice": choice.describe(),
        }
        self.forecaster = head.forecaster(
            choice.method, choice.best.parameters, choice.single.parameters, self.settings.coverage, about
        )
        self.forecaster.advance(times, values, tasks, extras, record=False)
        given = ", ".join(f"{name} {value:g}" for name, value in choice.best.parameters.items())
        self.note(f"tuned on the first {len(times)} rounds: {choice.method.title} ({given})")
        self._gathered = []


def _columns(rounds: list[dict[str, Row]]) -> tuple[np.ndarray, Floats, tuple[str, ...], Floats]:
    """Rounds as times, values, tasks and extras."""
    tasks = tuple(sorted({task for one in rounds for task in one}))
    firsts = [next(iter(one.values())) for one in rounds]
    n_extras = len(next(iter(firsts[0].extras.values())))
    values = np.full((len(rounds), len(tasks)), np.nan)
    extras = np.full((len(rounds), len(tasks), n_extras), np.nan)
    place = {task: position for position, task in enumerate(tasks)}
    for step, one in enumerate(rounds):
        for task, row in one.items():
            values[step, place[task]] = row.values[task]
            extras[step, place[task]] = row.extras[task]
    times = np.array([first.time for first in firsts])
    return times.view("datetime64[us]") if firsts[0].is_dated else times, values, tasks, extras


def _no_change(whole: dict[str, Row], time: int | None) -> Forecasts:
    """The last values, without intervals; nothing while it is not known for when."""
    times, values, tasks, _ = _columns([whole])
    there = np.flatnonzero(~np.isnan(values[0]) & (time is not None))
    nothing = np.full(len(there), np.nan)
    stamps = np.full(len(there), time or 0).view(times.dtype)
    return Forecasts(stamps, there, tasks, nothing, values[0][there], nothing, nothing)
