"""Live: lines in as they come, forecasts of the next round out.

A round is complete when every task of the round before has come, or when a later time comes; then it is learned, and
the next one is forecast. Without a model to start from, the first rounds are gathered, and "no change" is forecast
meanwhile; on them a method is tuned, as in a run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np

from braided.errors import InputError
from braided.forecasting import Forecaster, Forecasts
from braided.forecasting.clock import time_in_words
from braided.runs.head import Head
from braided.runs.start import Settings, choose, start
from braided.runs.summary import chosen
from braided.streams import Chunk
from braided.streams.lines import Lines, Row

WARM_UP = 200  # rounds


@final
class Live:
    """Turns lines into forecasts; `columns` name those of the lines, as `streams.Lines` takes them.

    >>> live = Live(Settings(lags=2), warm_up=3)
    >>> for number, line in enumerate(["time,site,value", "1,a,5.0", "1,b,7.0", "2,a,6.0", "2,b,7.5"], 1):
    ...     for made in live.feed(line, number):
    ...         print(made.times.tolist(), made.tasks, made.forecast.tolist())
    [] [] []
    [3, 3] ['a', 'b'] [6.0, 7.5]
    """

    def __init__(
        self,
        settings: Settings,
        forecaster: Forecaster | None = None,
        *,
        warm_up: int = WARM_UP,
        note: Callable[[str], None] = lambda _: None,
        **columns: Any,
    ) -> None:
        self.settings, self.forecaster, self.note = settings, forecaster, note
        self.lines = Lines(**columns)
        self._warm_up = warm_up
        self._gathered: list[Row] = []  # the first rounds, while there is no forecaster
        self._round: Row | None = None  # the one that is coming in
        self._expected: set[str] = set()  # who makes it complete
        self._last: int | None = None if forecaster is None or not forecaster.rounds else forecaster.last_stamp

    def feed(self, line: str, number: int) -> list[Forecasts]:
        """Take up a line; return the forecasts that it makes possible. A bad one is refused, and nothing is learned."""
        row = self.lines.parse(line, number)
        if row is None or not (row := row.without(self._left_out())).values:
            return []
        self._insist(row, number)
        made = []
        if self._round is not None and row.time > self._round.time:
            made.append(self._complete(self._round))
        self._round = row if self._round is None else self._round.with_more(row)
        if self._expected and self._round.values.keys() >= self._expected:
            made.append(self._complete(self._round))
        return made

    def end(self) -> list[Forecasts]:
        """Complete the last round."""
        return [] if self._round is None else [self._complete(self._round)]

    @property
    def samples(self) -> int:
        """How many samples have been learned."""
        return 0 if self.forecaster is None else self.forecaster.learner.samples

    def _left_out(self) -> tuple[str, ...]:
        remembered = () if self.forecaster is None else self.forecaster.about.get("without", ())
        return (*self.settings.without, *remembered)

    def _insist(self, row: Row, number: int) -> None:
        """Refuse a row that does not belong here; a task that came too late is waited for in the next rounds."""
        known = self.forecaster
        if known is not None and known.rounds:
            kinds = [(row.is_dated, self.lines.is_utc), (known.is_dated, known.about.get("utc", self.lines.is_utc))]
            if kinds[0] != kinds[1]:
                raise InputError(f"line {number} has a time of another kind than the model has learned: use the same")
        if self._last is not None and row.time <= self._last:
            self._expected |= row.values.keys()
            shown, names = time_in_words(row.time, row.is_dated), ", ".join(row.values)
            raise InputError(
                f"line {number} ({names}, {shown}) belongs to a round that is complete already: send lines in order of "
                f"time; from now on rounds wait for {names}"
            )
        coming = self._round
        if coming is not None and row.time < coming.time:
            raise InputError(f"line {number} lies before the round that is coming in: send lines in order of time")
        if coming is not None and coming.time == row.time and (twice := row.values.keys() & coming.values.keys()):
            raise InputError(f"line {number} gives {min(twice)!r} for the second time in a round: send each once")
        logarithm = self.settings.logarithm if self.forecaster is None else self.forecaster.units.logarithm
        if logarithm and (bad := [value for value in row.values.values() if value <= 0.0]):
            raise InputError(f"line {number} gives {bad[0]:g}, which has no logarithm: use NA")

    def _complete(self, whole: Row) -> Forecasts:
        before, self._last = self._last, whole.time
        self._round, self._expected = None, set(whole.values)
        if self.forecaster is not None:
            times, tasks, values, extras = _chunk([whole])
            self.forecaster.advance(times, values, tasks, extras)
            return self.forecaster.ahead()
        self._gathered.append(whole)
        if len(self._gathered) >= self._warm_up:
            self._start()
        if self.forecaster is not None:
            return self.forecaster.ahead()
        return _no_change(whole, None if before is None else 2 * whole.time - before)

    def _start(self) -> None:
        times, tasks, values, extras = chunk = _chunk(self._gathered)
        try:
            head = Head.of(
                chunk, self.settings.lags, self.settings.logarithm, keep_constant=True, robust=self.settings.robust
            )
            choice = choose(head, self.settings)
        except InputError as error:
            self._warm_up *= 2
            self.note(f"still forecasting “no change”, up to round {self._warm_up}: {error}")
            return
        self.forecaster = start(head, choice, self.settings, "standard input", self.lines.columns, self.lines.is_utc)
        self.forecaster.advance(times, values, tasks, extras, record=False)
        self._gathered = []
        self.note(chosen(self.forecaster))


def _chunk(rounds: list[Row]) -> Chunk:
    """Rounds as a chunk."""
    tasks = tuple(sorted({task for one in rounds for task in one.values}))
    place = {task: position for position, task in enumerate(tasks)}
    values = np.full((len(rounds), len(tasks)), np.nan)
    extras = np.full((*values.shape, len(next(iter(rounds[0].extras.values())))), np.nan)
    for step, one in enumerate(rounds):
        for task, value in one.values.items():
            values[step, place[task]] = value
            extras[step, place[task]] = one.extras[task]
    times = np.array([one.time for one in rounds])
    return Chunk(times.view("datetime64[us]") if rounds[0].is_dated else times, tasks, values, extras)


def _no_change(whole: Row, time: int | None) -> Forecasts:
    """The last values, without intervals; nothing while it is not known for when."""
    times, tasks, (values,), _ = _chunk([whole])
    there = np.flatnonzero(~np.isnan(values) & (time is not None))
    nothing = np.full(len(there), np.nan)
    stamps = np.full(len(there), time or 0).view(times.dtype)
    return Forecasts(stamps, there, tasks, nothing, values[there], nothing, nothing)
