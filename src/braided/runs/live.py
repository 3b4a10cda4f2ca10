"""Live: lines in as they arrive, forecasts of the next round out.

A round is complete when every stream of the round before has arrived, or when a later time arrives; then it is learned,
and the next one is forecast. Without a model to start from, the first rounds are gathered, five of them for Auto or a
tuning period for other methods, and "no change" is forecast meanwhile.

A line that can't be used raises an InputError and is not learned; if it was late, the next round also waits for its
stream. A line whose time lies too far ahead is set aside (`braided.runs.ahead`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, final

import numpy as np

from braided.errors import InputError, NumericalError
from braided.forecasting import Clock, Engine, Forecasts, LiveRounds, Plan
from braided.forecasting.auto import AutoEngine
from braided.forecasting.auto.schedule import HEADS, SCORED_FROM
from braided.forecasting.clock import as_stamps, step_in_words, time_in_words
from braided.forecasting.live_rounds import MAX_FAILED_STARTS
from braided.printable import counted
from braided.runs.ahead import Ahead, SetAsideError
from braided.runs.rows import chunk_of, no_change, rows_of
from braided.runs.start import Settings, choose, chosen, fresh_auto, only_auto_knows, start
from braided.runs.tuning_period import TuningPeriod
from braided.state import save
from braided.tables import Chunk
from braided.tables.cells import listed
from braided.tables.lines import Lines, OutOfOrderError, Row

WARM_UP = 200  # rounds
AUTO_WARM_UP = HEADS[0]  # rounds, for which Auto forecasts "no change", too
MAX_AHEAD = 100  # steps of the clock
LINES_ON_TRIAL = 5  # the first lines, which a longer run of lines of another kind may still replace
ROUNDS_FOR_CLOCK = 1000  # the last of the warm-up


@final
class Live:
    """Turns lines into forecasts; `columns` names theirs, as `tables.Lines` takes them.

    `before` is what to resume from: a model, or the rounds of a warm-up. `rejected` collects an InputError for each
    line that turns out later to be unusable.

    >>> live = Live(Settings())
    >>> for number, line in enumerate(["time,site,value", "1,a,5.0", "1,b,7.0", "2,a,6.0", "2,b,7.5"], 1):
    ...     for made in live.feed(line, number):
    ...         print(made.times.tolist(), made.tasks, made.forecast.tolist())
    [] [] []
    [3, 3] ['a', 'b'] [6.0, 7.5]
    """

    def __init__(
        self,
        settings: Settings,
        before: Engine | LiveRounds | None = None,
        *,
        warm_up: int = WARM_UP,
        max_ahead: int = MAX_AHEAD,
        note: Callable[[str], None] = lambda _: None,
        **columns: Any,
    ) -> None:
        if columns.get("known") and not settings.is_auto:
            raise only_auto_knows(columns["known"])
        self.settings, self.note = settings, note
        self._warm_up, self._max_ahead = AUTO_WARM_UP if settings.is_auto else warm_up, max_ahead
        self._gathered: list[Row] = []  # the first rounds, while there is no forecaster
        self._round: Row | None = None  # the open one
        self._latest_lines: list[int] = []  # numbers of the lines of the latest round, open or complete
        self._expected: set[str] = set()  # streams that make it complete
        self._last: int | None = None  # time of the last complete round
        self._ahead = Ahead([])
        self._kind: tuple[bool, bool | None] | None = None  # whether times are dates, and in UTC
        self._n_extras: int | None = None
        self._failed_starts = 0
        self._is_fresh = before is None
        self._used: list[int] = []  # numbers of the first lines that were used
        self._doubted: list[tuple[str | bytes, int]] = []  # the lines in a row that did not fit them
        self._said, self._was_planned = "", True  # of the model; whether all was known ahead
        self.values = 0  # received and used
        self.set_aside = 0  # lines
        self.forecaster = before if isinstance(before, Engine) else None
        held = before.origin.live if isinstance(before, Engine) else before
        if self.forecaster is not None:
            self.forecaster.origin = replace(self.forecaster.origin, live=None)
            self._said = chosen(self.forecaster)
        self._plan = None if held is None else held.plan  # what is known ahead, while there is no forecaster
        self._resume(held)
        saved = None if held is None else held.columns
        if saved is not None and all(not given or given == getattr(saved, name) for name, given in columns.items()):
            columns = {"columns": saved}
        are_numbers = self._kind is not None and not self._kind[0]
        self.lines = Lines(**columns, kind="int64" if are_numbers else None)
        self.rejected = self.lines.rejected

    def _resume(self, held: LiveRounds | None) -> None:
        """Resume after the last round learned, with the rounds that an earlier run received and did not learn."""
        known = self.forecaster
        if held is not None:
            self._kind, self._n_extras = (held.is_dated, held.is_utc), held.extras.shape[2]
            self._expected, self._failed_starts = set(held.expected), held.failed_starts
            self._latest_lines = [0] * held.latest_lines
        if known is not None:
            self._n_extras = known.n_extras
            if known.rounds:
                self._kind, self._last = (known.is_dated, known.origin.is_utc), known.last_stamp
        rows, n = ([], 0) if held is None else (rows_of(held), held.n_complete)
        if known is None and n:
            self._gathered, self._last = rows[:n], rows[n - 1].time
        later = [row for row in rows[n:] if self._last is None or row.time > self._last]
        if held is not None and held.is_open and len(later) == len(rows) - n:  # else a table has been learned since
            self._round, *later = later
        self._ahead = Ahead(later)
        self._clock = self._measured()

    @property
    def is_utc(self) -> bool:
        """Whether times are in UTC."""
        return self._kind is not None and bool(self._kind[1])

    @property
    def samples(self) -> int:
        """The number of samples learned."""
        return 0 if self.forecaster is None else self.forecaster.samples

    @property
    def rounds(self) -> int:
        """The number of rounds learned, or gathered in the warm-up."""
        return len(self._gathered) if self.forecaster is None else self.forecaster.rounds

    @property
    def learned(self) -> str:
        """How much was learned, or what a model is waiting for, in words."""
        if self.forecaster is not None:
            return f"{counted(self.samples, 'sample')} learned in all"
        return f"no model yet: it is made after {self._needed} rounds, {self.rounds} are complete"

    @property
    def _needed(self) -> int:
        """The rounds after which a model is made."""
        return self._warm_up << self._failed_starts

    @property
    def last_time(self) -> str:
        """The time of the last complete round, as text."""
        return "the start" if self._last is None else self._words(self._last)

    # Lines in, forecasts out ---------------------------------------------------------------------------------------

    def feed(self, line: str | bytes, number: int) -> list[Forecasts]:
        """Learn from a line, and return the forecasts that it makes possible. A bad line raises an InputError."""
        try:
            made = self._feed(line, number)
        except (OutOfOrderError, SetAsideError):
            raise
        except InputError as error:
            return self._doubt(line, number, error)
        self._doubted = []
        return made

    def _feed(self, line: str | bytes, number: int) -> list[Forecasts]:
        row = self.lines.parse(line, number, lambda row: self._checked(row, number))
        if row is None or not row.values:
            return []
        if len(self._used) <= LINES_ON_TRIAL:
            self._used.append(number)
        self._kind = row.is_dated, row.is_utc
        latest, limit = self._latest, self._limit()
        if self._is_known_ahead(row):
            return self._learn_known_ahead(row, number, limit)
        if latest is not None and limit is not None and row.time - latest > limit:
            return self._keep_or_believe(row, number, limit)
        self._ahead.rounds = []
        return self._add(row, number)

    @property
    def _n_known(self) -> int:
        """The number of columns that are known ahead."""
        return 0 if self.lines.columns is None else len(self.lines.columns.known)

    def _is_known_ahead(self, row: Row) -> bool:
        """Whether a row is only what is known of a round to come: one after the latest, without a value."""
        is_later = self._latest is None or row.time > self._latest
        return is_later and self._is_without_values(row)

    def _is_without_values(self, row: Row) -> bool:
        """Whether a row says only what is known ahead."""
        return self._n_known > 0 and all(value != value for value in row.values.values())

    def _learn_known_ahead(self, row: Row, number: int, limit: int | None) -> list[Forecasts]:
        """Learn what a row says of a round to come; it brings no forecasts."""
        if limit is not None and self._latest is not None and row.time - self._latest > limit:
            raise InputError(
                f"line {number} says what is known of {self._words(row.time)}, more than {self._max_ahead} steps after "
                "the last round: send it later, or raise --max-ahead"
            )
        times, tasks, _, extras = chunk_of([row])
        self._n_extras, known = extras.shape[2], extras[:, :, -self._n_known :]
        if self.forecaster is not None:
            self.forecaster.learn_known_ahead(times, known, tasks)
        else:
            self._plan = (self._plan or Plan.none(self._n_known)).with_rows(tasks, as_stamps(times), known)
        return []

    def _doubt(self, line: str | bytes, number: int, error: InputError) -> list[Forecasts]:
        """Raise the error; but if most of the first lines are like this one, use those instead of the others."""
        if not self._is_fresh or len(self._used) > LINES_ON_TRIAL:
            raise error
        self._doubted = [*self._doubted, (line, number)][-LINES_ON_TRIAL - 1 :]
        if len(self._doubted) <= len(self._used):
            raise error
        other = Live(self.settings, warm_up=self._warm_up, max_ahead=self._max_ahead, note=self.note)
        other.lines = self.lines.unsettled()
        other.rejected = other.lines.rejected
        try:
            made = [made for doubted in self._doubted for made in other._feed(*doubted)]
        except InputError:
            raise error from None
        if len(other._used) < len(self._doubted):
            raise error
        numbers = ", ".join(map(str, self._used))
        subject = f"line {numbers} does" if len(self._used) == 1 else f"lines {numbers} do"
        other.rejected.append(InputError(f"{subject} not fit the lines that follow, which are used: check the times"))
        vars(self).update(vars(other))
        return made

    def end(self) -> list[Forecasts]:
        """Complete the open round."""
        return [] if self._round is None else [self._complete(self._round)]

    def _checked(self, row: Row, number: int) -> Row:
        """Return a row without the streams to leave out; refuse a row that can't be used.

        After a late row, the next round also waits for its streams.
        """
        remembered = () if self.forecaster is None else self.forecaster.origin.without
        if self.settings.without or remembered:
            row = row.without((*self.settings.without, *remembered))
        if not row.values:
            return row
        if self._kind is not None:
            is_dated, is_utc = self._kind
            if row.is_dated != is_dated or (is_utc is not None and row.is_utc != is_utc):
                raise InputError(
                    f"line {number} has another kind of time (date, UTC or integer) than before: use one kind"
                )
        n_extras = len(next(iter(row.extras.values())))
        if self._n_extras is not None and n_extras != self._n_extras:
            raise InputError(
                f"line {number} has {counted(n_extras, 'feature')}, the rounds before have {self._n_extras}: name the "
                "same ones"
            )
        needs_positive = self.settings.logarithm if self.forecaster is None else self.forecaster.needs_positive
        if needs_positive and (bad := [value for value in row.values.values() if value <= 0.0]):
            raise InputError(f"line {number}: {bad[0]:g} has no logarithm; write NA for a missing value")
        if self._last is not None and row.time <= self._last and not self._shows_wrong_time(row):
            if not self._is_without_values(row):
                self._expected |= row.values.keys()
            names = listed(list(row.values))
            raise OutOfOrderError(
                f"line {number} ({names}, {self._words(row.time)}) belongs to a round that is complete already: send "
                f"lines in order of time; the next round waits for {names}"
            )
        coming = self._round
        if coming is not None and row.time < coming.time and not self._shows_wrong_time(row):
            raise OutOfOrderError(f"line {number} is earlier than the open round: send lines in order of time")
        if coming is not None and coming.time == row.time:
            coming.insist_new(row, number)
        return row

    def _add(self, row: Row, number: int) -> list[Forecasts]:
        """Add a row to the open round, or begin the next one with it."""
        made = []
        if self._latest is not None and row.time < self._latest:
            self._drop_latest_round(number, row)
        elif self._round is not None and row.time > self._round.time:
            made.append(self._complete(self._round))
        if self._round is None:
            self._latest_lines = []
        self._latest_lines.append(number)
        self._round = row if self._round is None else self._round.with_more(row)
        self._n_extras = len(next(iter(row.extras.values())))
        self.values += len(row.values)
        if self._expected and self._round.values.keys() >= self._expected:
            made.append(self._complete(self._round))
        return made

    def _complete(self, whole: Row) -> Forecasts:
        before, self._last = self._last, whole.time
        self._round, self._expected = None, set(whole.values)
        if self.forecaster is not None:
            times, tasks, values, extras = chunk_of([whole])
            self.forecaster.advance(times, values, tasks, extras)
            if isinstance(self.forecaster, AutoEngine) and self.forecaster.measured_on == self.forecaster.rounds:
                self._describe(self.forecaster)  # learners join, and seasons are found
            if self.forecaster.rounds >= SCORED_FROM:
                self._say_unknown(self.forecaster.plan_in_words())
            return self.forecaster.ahead()
        self._gathered.append(whole)
        if len(self._gathered) >= self._needed:
            self._start()
        self._clock = self._measured()
        if self.forecaster is not None:
            return self.forecaster.ahead()
        following = None if before is None else 2 * whole.time - before
        return no_change(self._gathered[-ROUNDS_FOR_CLOCK:], following, self.settings.auto.quantiles)

    def _say_unknown(self, said: str) -> None:
        """Say what is not known ahead, if all was in the round before."""
        if said and self._was_planned:
            self.note(said)
        self._was_planned = not said

    def _start(self) -> None:
        times, tasks, values, extras = chunk = chunk_of(self._gathered)
        try:
            forecaster = self._fresh(chunk)
            if self._plan is not None:
                stamps = self._plan.stamps
                forecaster.learn_known_ahead(stamps.view(times.dtype), self._plan.values, self._plan.tasks)
            forecaster.advance(times, values, tasks, extras, record=False)
        except (InputError, NumericalError) as error:
            self._failed_starts = min(self._failed_starts + 1, MAX_FAILED_STARTS)
            self.note(f"still forecasting “no change”, up to round {self._needed}: {error}")
            return
        self.forecaster, self._gathered, self._plan = forecaster, [], None
        self._describe(forecaster)

    def _describe(self, forecaster: Engine) -> None:
        """Describe a model, if that has changed."""
        if (said := chosen(forecaster)) != self._said:
            self._said = said
            self.note(said)

    def _fresh(self, chunk: Chunk) -> Engine:
        """Return a forecaster that has learned nothing yet."""
        settings, columns = self.settings, self.lines.columns
        if settings.is_auto:
            fresh = fresh_auto(settings, "standard input", columns, None)
            fresh.origin = replace(fresh.origin, is_utc=self.is_utc)
            return fresh
        period = TuningPeriod.of(chunk, settings.lags, settings.logarithm, keep_constant=True, robust=settings.robust)
        return start(period, choose(period, settings), settings, "standard input", columns, self.is_utc)

    # Times too far ahead -------------------------------------------------------------------------------------------

    @property
    def _latest(self) -> int | None:
        """The latest time, not counting rounds that were set aside."""
        return self._last if self._round is None else self._round.time

    def _measured(self) -> Clock | None:
        """The clock of the model, or of the rounds of the warm-up; None if it is not known."""
        if self.forecaster is not None:
            clock, is_by_hand = self.forecaster.clock, self.forecaster.origin.position is None
            return None if is_by_hand and clock == Clock() else clock
        times = np.array([one.time for one in self._gathered[-ROUNDS_FOR_CLOCK:]])
        return Clock.measure(times) if len(times) > 1 else None

    def _limit(self) -> int | None:
        """How far after the latest time a row may lie; None while there is no limit."""
        if self._max_ahead and self._clock is not None:
            return self._max_ahead * max(self._clock.step, self._clock.longest)
        if self._max_ahead and self._gathered and self._round is not None and self._last is not None:
            return self._max_ahead * (self._round.time - self._last)
        return None

    def _keep_or_believe(self, row: Row, number: int, limit: int) -> list[Forecasts]:
        """Set a row aside; or, once enough of them have arrived, accept the jump and learn them all."""
        believed = self._ahead.keep(row, number, limit)
        if not believed:
            self.set_aside += 1
            latest, step = self._latest or 0, limit // self._max_ahead
            expected = self._words(latest + step if self._clock is None else self._clock.after(latest))
            raise SetAsideError(
                f"line {number} ({listed(list(row.values))}, {self._words(row.time)}) is set aside: its time is more "
                f"than {counted(self._max_ahead, 'step')} of {step_in_words(step, row.is_dated)} after the last one "
                f"({expected} was expected); correct the time, or raise --max-ahead"
            )
        lines = sum(kept.lines for kept in believed)
        self.set_aside -= lines - 1
        self.note(
            f"{len(believed)} rounds in a row from {self._words(believed[0].row.time)} on: the jump is accepted, and "
            f"their {lines} lines are learned"
        )
        return [made for kept in believed for made in self._add(kept.row, number)]

    def _shows_wrong_time(self, row: Row) -> bool:
        """Whether an earlier row shows that the time of the latest round is wrong; only until three times are known."""
        n_rounds = len(self._gathered) + (self._round is not None)
        is_alone = self._max_ahead > 0 and len(self._latest_lines) <= 1  # several lines of a time confirm each other
        if self.forecaster is not None or not is_alone or row.time >= (self._latest or 0):
            return False
        if n_rounds != 2:
            return n_rounds == 1
        first = self._gathered[0]
        return row.time > first.time or (row.time == first.time and not row.values.keys() & first.values.keys())

    def _drop_latest_round(self, number: int, row: Row) -> None:
        """Set the latest round aside, and reopen the one before it if the row belongs to that."""
        dropped = self._gathered.pop() if self._round is None else self._round
        begun_by = f"line {self._latest_lines[0]}" if any(self._latest_lines[:1]) else "an earlier run"
        self.set_aside += len(self._latest_lines)
        self.rejected.append(
            SetAsideError(
                f"the round of {self._words(dropped.time)}, begun by {begun_by}, is set aside: line {number} has the "
                f"earlier time {self._words(row.time)}; correct the time, or send lines in order of time"
            )
        )
        before = self._gathered[0] if self._gathered else None
        if before is not None and before.time == row.time:
            self._round, self._gathered, before = before, [], None
        else:
            self._round = None
        self._last = None if before is None else before.time
        self._expected = set() if before is None else set(before.values)
        self._clock = None

    def _words(self, stamp: int) -> str:
        return time_in_words(stamp, self._kind is not None and self._kind[0])

    # Saving --------------------------------------------------------------------------------------------------------

    def save(self, path: Path) -> None:
        """Save the model with the rounds that it has not learned yet, or these alone in the warm-up."""
        if self.forecaster is None:
            if self._gathered or self._round is not None or self._plan is not None:
                save(self._unlearned(), path)
            return
        origin = self.forecaster.origin
        self.forecaster.origin = replace(origin, live=self._unlearned())
        try:
            save(self.forecaster, path)
        finally:
            self.forecaster.origin = origin

    def _unlearned(self) -> LiveRounds:
        ahead = [kept.row for kept in self._ahead.rounds]
        rows = [*self._gathered, *([] if self._round is None else [self._round]), *ahead]
        times, tasks, values, extras = chunk_of(rows, self._n_extras or 0)
        came = [[task in one.values for task in tasks] for one in rows]
        return LiveRounds(
            as_stamps(times),
            tasks,
            values,
            extras,
            np.array(came, np.bool_).reshape(values.shape),
            n_complete=len(self._gathered),
            is_open=self._round is not None,
            expected=tuple(sorted(self._expected)),
            is_dated=self._kind is not None and self._kind[0],
            is_utc=self.is_utc,
            columns=self.lines.columns,
            failed_starts=self._failed_starts,
            latest_lines=min(len(self._latest_lines), len(tasks)),
            plan=self._plan,
        )
