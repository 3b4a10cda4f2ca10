"""AutoEngine: a mixture of rules and learners as an engine, from the first round on and for every stream.

| round    | what happens                                                                                        |
|----------|-----------------------------------------------------------------------------------------------------|
| 1        | "no change" is forecast, from each stream's second value on                                         |
| 5        | units are measured; from here on rules are mixed                                                    |
| 20       | units and similar streams are measured; learners start, and learn the first rounds; scores begin    |
| 100, 200 | the same again, on more rounds; then units, similar streams and seasons stay                        |

If no stream has enough values by then, this is repeated every 200 rounds until one has, on the last 2,000. A stream
that comes after that, or has too few values then, is forecast "no change" until it has 20.

So a forecast depends on the rounds before it and on nothing else: neither on how long the table is, nor on how its
rounds are cut.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self, final

import numpy as np

from braided.errors import InputError
from braided.forecasting.auto.auto import Auto
from braided.forecasting.auto.copies import find_copies
from braided.forecasting.auto.ensemble import MANY_STREAMS, Ensemble, Made
from braided.forecasting.auto.first_rounds import FirstRounds, Part
from braided.forecasting.auto.local_clock import LocalClock
from braided.forecasting.auto.newcomers import LONGEST_WAIT, Newcomers
from braided.forecasting.auto.pending import Given, Pending
from braided.forecasting.auto.schedule import ALONE, HEADS, HEADS_OF_MANY, LATER, SCORED_FROM
from braided.forecasting.auto.seasons import Seasons
from braided.forecasting.auto.sound import insist_sound
from braided.forecasting.auto.surroundings import Stretch, Surroundings
from braided.forecasting.clock import Clock
from braided.forecasting.curve import Curve
from braided.forecasting.detection import detect_seasons
from braided.forecasting.engine import MADE_BY_HAND, Engine
from braided.forecasting.forecasts import Forecasts
from braided.forecasting.origin import Origin
from braided.forecasting.plan import Plan
from braided.forecasting.record import MODEL, NO_CHANGE, Record
from braided.forecasting.units import LARGEST_FLOAT, LARGEST_LEVEL, Units, without_too_large
from braided.graph import TaskGraph, TaskKey, listed, task_keys
from braided.printable import counted
from braided.types import Flags, Floats, Ints
from braided.validate import LARGEST_COUNT, count, insist_kinds, numbers

LEAST_VALUES = 2  # at a head, or a tenth of its rounds if that is more
SILENT_AFTER = 11  # rounds without a value


@final
class AutoEngine(Engine):
    """The mixture at work on streams, all of which are forecast.

    >>> import braided as bd
    >>> panel = bd.datasets.wind_field(seed=0, steps=300, sites=3)     # synthetic
    >>> engine = AutoEngine(Auto())
    >>> made = engine.advance(panel.times, panel.values, panel.tasks)
    >>> len(made.forecast), engine.ahead().tasks
    (897, ['site 1', 'site 2', 'site 3'])
    """

    no_forecast: ClassVar[str] = "too few values so far"
    saved: ClassVar[dict[str, str]] = Engine.saved | {
        "samples": "_samples",
        "quiet": "_quiet",
        "last": "_last",
        "has_changed": "_has_changed",
        **{name: name for name in ("later_records", "weights", "copies", "measured_on", "n_measured", "unplanned")},
    }

    def __init__(
        self,
        auto: Auto,
        *,
        n_extras: int = 0,  # further columns
        n_known: int = 0,  # of these, the last ones: known ahead
        coverage: float = 0.9,  # share of the values that intervals should hold
        origin: Origin = MADE_BY_HAND,
    ) -> None:
        if not isinstance(auto, Auto):
            raise InputError(f"auto is a {type(auto).__name__}: give bd.Auto()")
        self.auto, self._n_extras = auto, count(n_extras, "n_extras", least=0)
        self.plan = Plan.none(count(n_known, "n_known", least=0, most=n_extras))
        # Forecasts by horizon: those made without knowing everything ahead, and each column; and all
        self.unplanned: Ints = np.zeros((2 + n_known, auto.horizon), np.int64)
        super().__init__((), np.empty(0), coverage, origin, (MODEL, NO_CHANGE))
        self.ensemble: Ensemble | None = None
        self.alone: Ensemble | None = None  # shares nothing, to compare
        self.places: Ints = np.empty(0, np.int64)  # the columns that are in the ensemble
        self.measured_on = 0  # the rounds on which everything was measured the last time
        self.n_measured = 0  # of these, those that were there when everything was measured; others joined late
        self.copies: tuple[tuple[int, ...], ...] = ()  # groups of columns that are copies of each other
        self.weights: Curve | None = None  # of members and rules, mean over the streams, since scores began
        self._clock = Clock()
        self._head = FirstRounds()  # of all columns, until everything is measured
        self._newcomers = Newcomers()
        self._surroundings = Surroundings(auto.holidays, n_extras, n_known)
        self._last: Floats = np.empty(0)  # last known value of each column
        self._has_changed: Flags = np.empty(0, np.bool_)  # whether it ever had another; till then it stays as it is
        self._quiet: Ints = np.empty(0, np.int64)  # rounds since
        self._last_extras: Floats = np.empty((0, n_extras))
        self._samples = 0
        self.later_records = [self._blank(np.empty(0), LATER) for _ in range(auto.horizon - 1)]  # of h = 2 … H
        self._pending = Pending(auto.horizon, coverage, auto.quantiles)
        self._told = self.nothing(), -1  # the last forecasts made by `ahead`, and after how many rounds

    def _stamps(self, times: Any) -> tuple[Ints, bool]:
        stamps, dated = super()._stamps(times)
        for name in ("timezone", "holidays") if len(stamps) and not dated else ():
            if getattr(self.auto, name) is not None:
                raise InputError(
                    f"{name} has no meaning where times are whole numbers, such as {stamps[0]}: leave it out"
                )
        return stamps, dated

    @property
    def tasks(self) -> tuple[TaskKey, ...]:
        """All streams seen."""
        return tuple(self.columns)

    @property
    def clock(self) -> Clock:
        """When rounds are expected, measured on the first rounds."""
        return self._clock

    @property
    def samples(self) -> int:
        """The number of values learned."""
        return self._samples

    @property
    def n_extras(self) -> int:
        """The number of further columns."""
        return self._n_extras

    @property
    def shares(self) -> bool:
        """Whether streams learn from each other."""
        return self.auto.sharing and len(self.places) > 1

    @property
    def graph(self) -> TaskGraph | None:
        """The graph of the streams in the ensemble; None before there is one."""
        if self.ensemble is None:
            return None
        graph = self.ensemble.graph
        return TaskGraph(graph.similarity, [self.columns[place] for place in self.places], ridge=graph.ridge)

    @property
    def latecomers(self) -> list[TaskKey]:
        """The streams that joined after everything was measured for the last time."""
        return [self.columns[place] for place in self.places[self.n_measured :]]

    @property
    def constant(self) -> list[TaskKey]:
        """The streams that have joined and have never changed, for which "no change" is forecast."""
        return [self.columns[place] for place in self.places if not self._has_changed[place]]

    @property
    def waiting(self) -> list[TaskKey]:
        """The streams that have too few values to join, for which "no change" is forecast."""
        return [self.columns[place] for place in sorted(self._newcomers.values)]

    def forget_record(self) -> None:
        """Begin a new record of errors, and of the members' weights; what was learned stays."""
        super().forget_record()
        self.later_records = [self._blank(one.scale, one.contenders) for one in self.later_records]
        if self.ensemble is not None:
            self.ensemble.used[:] = 0.0
            self.weights = None if self.weights is None else Curve.blank(len(self.ensemble.names))
        self.unplanned[:] = 0

    def _meet(self, new: list[TaskKey]) -> None:
        n = len(new)
        for record in self.records:
            record.join(np.ones(n))
        self._pending.meet(n)
        self._last = np.append(self._last, np.full(n, np.nan))
        self._has_changed = np.append(self._has_changed, np.zeros(n, np.bool_))
        self._quiet = np.append(self._quiet, np.zeros(n, np.int64))
        self._last_extras = np.vstack([self._last_extras, np.full((n, self._n_extras), np.nan)])
        self._newcomers.meet(range(len(self.columns) - n, len(self.columns)))

    def ahead(self) -> Forecasts:
        """Forecast the rounds after the last, for every stream that had a value; nothing after one round only."""
        made = self.nothing() if self.rounds == 1 else super().ahead()
        self._told = made, self.rounds
        return made

    def _insist_measured(self, keys: tuple[TaskKey, ...], table: Floats) -> None:
        made, rounds = self._told
        given, bounds = dict(zip(keys, table[0].tolist(), strict=True)), (self.auto.low, self.auto.high)
        told = dict(zip(made.tasks[::-1], made.forecast.tolist()[::-1], strict=True))  # the next round comes first
        if rounds != self.rounds or any(given.get(task) != forecast for task, forecast in told.items()):
            return
        last = dict(zip(self.columns, self._last.tolist(), strict=True))
        if any(forecast not in (last[task], *bounds) for task, forecast in told.items()):  # else it may well come true
            raise InputError(
                "the first round of values equals the last forecasts of all streams: learning forecasts as if they "
                "were measured makes intervals too narrow; for later rounds, set horizon (--horizon)"
            )

    @property
    def horizon(self) -> int:
        """How many rounds ahead it forecasts."""
        return self.auto.horizon

    @property
    def levels(self) -> tuple[float, ...]:
        """The levels of the quantiles that it forecasts."""
        return self.auto.quantiles

    @property
    def records(self) -> list[Record]:
        """The records of all horizons."""
        return [self.record, *self.later_records]

    def _is_silent(self) -> Flags:
        return self._quiet >= SILENT_AFTER

    def _outward(self, levels: Floats, places: Ints) -> Floats:
        low = -LARGEST_FLOAT if self.auto.low is None else self.auto.low
        high = LARGEST_FLOAT if self.auto.high is None else self.auto.high
        return np.clip(levels, low, high)

    # What is known ahead -------------------------------------------------------------------------------------------

    def learn_known_ahead(self, times: Any, known: Any, tasks: Sequence[TaskKey]) -> None:
        """Add to the plan what is known of later rounds, as `Engine.learn_known_ahead` says."""
        if not self.n_known:
            super().learn_known_ahead(times, known, tasks)
        self._insist_whole()
        (stamps, _), keys, given = self._stamps(times), task_keys(tasks), numbers(known, "known")
        shape = len(stamps), len(keys), self.n_known
        if given.shape != shape:
            raise InputError(f"known has shape {given.shape}: times, tasks and columns known ahead say {shape}")
        if np.isinf(given).any():
            place = tuple(map(int, np.argwhere(np.isinf(given))[0]))
            raise InputError(f"known{list(place)} is {given[place]:g}: use NaN for a missing value")
        self._take_plan(stamps, keys, given, np.zeros(len(stamps), np.bool_))

    def _take_plan(self, stamps: Ints, keys: tuple[TaskKey, ...], extras: Floats, came: Flags) -> None:
        if self.n_known and len(stamps):
            known = without_too_large(extras[:, :, -self.n_known :])[0]
            self.plan = self.plan.with_rows(keys, stamps, known)
            if not came.any():  # else once they are learned
                self._forget_plan()

    def _forget_plan(self) -> None:
        """Forget rows that are no longer needed, and rows too far ahead."""
        if len(self.plan.stamps):
            first = int(self._head.stamps[0]) if self._head.parts else self.last_stamp + 1
            self.plan = self.plan.between(first, self.last_stamp)

    @property
    def known_columns(self) -> tuple[str, ...]:
        """The names of the columns that are known ahead."""
        columns = self.origin.columns
        return tuple(f"column {k + 1}" for k in range(self.n_known)) if columns is None else columns.known

    def plan_in_words(self) -> str:
        """Say how many of the next forecasts are made without knowing everything."""
        if not self.n_known or self.ensemble is None:
            return ""
        unknown, *of_columns = self._next().planned.unknown
        if not unknown.any():
            return ""
        names = [name for name, missing in zip(self.known_columns, of_columns, strict=True) if missing.any()]
        first, total = int(np.argmax(unknown > 0)) + 1, self.horizon * len(self.places)
        instead = "anything known ahead" if self.n_known > 1 else "it"
        return (
            f"{listed(names)}: not known for {unknown.sum()} of {counted(total, 'forecast')}, the first of them "
            f"{counted(first, 'round')} ahead; these are made without {instead}, and their intervals may be too narrow"
        )

    # Learning ------------------------------------------------------------------------------------------------------

    def _advance(
        self, stamps: Ints, keys: tuple[TaskKey, ...], table: Floats, extras: Floats, record: bool
    ) -> list[Forecasts]:
        values, more = self._arranged(keys, table, extras)
        if self.n_known:  # what was known ahead of a round need not come with its values
            last = more[:, :, : self._n_extras - self.n_known]
            more = np.concatenate([last, self.plan.at(stamps, self.columns)], axis=2)
        made: list[Forecasts] = []
        first = 0
        while first < len(stamps):
            most = LARGEST_COUNT if self.ensemble is None else self.ensemble.rounds_at_once
            end = min(len(stamps), first + self._rounds_to_head(), first + most)
            if self._is_measured:
                end = first + self._newcomers.next_join(values[first:end])
            part = np.s_[first:end]
            made.append(self._learn(stamps[part], values[part], more[part], record))
            if self._is_head():
                self._measure()  # now, so that `ahead` forecasts as the next call will
            if self._is_measured:
                self._head = FirstRounds()
                self._let_join()
            first = end
        self._forget_plan()
        return made

    def _rounds_to_head(self) -> int:
        """Return the number of rounds until the next measurement."""
        if self.rounds < HEADS[-1]:
            return min(head - self.rounds for head in HEADS if head > self.rounds)
        return LARGEST_COUNT if self.ensemble is not None else HEADS[-1] - self.rounds % HEADS[-1]

    def _is_head(self) -> bool:
        """Whether to measure now: at a head, or every 200 rounds while the ensemble has no stream."""
        if self.ensemble is None and self.rounds % HEADS[-1] == 0:
            return True
        n_seen = np.count_nonzero(~np.isnan(self._last))
        return self.rounds in (HEADS if n_seen < MANY_STREAMS else HEADS_OF_MANY)

    def _measure(self) -> None:
        """Measure units, similar streams and seasons on the first rounds, and let all members learn these again."""
        head = self._head.whole(len(self.columns))
        self._clock = self._local_clock.measured(self._times(head.stamps))
        if self.rounds <= HEADS[-1]:  # the clock knows better now which steps are too long
            self.gaps = self.irregular = 0
            self._count_steps(head.stamps, int(head.stamps[0]))
        there = np.count_nonzero(~np.isnan(head.values), axis=0)
        enough = np.flatnonzero(there >= max(LEAST_VALUES, min(self.rounds, HEADS[-1]) // 10))
        new = self._by_name(np.setdiff1d(enough, self.places))
        if not self.places.size + new.size:
            self._head.keep_last(LONGEST_WAIT, len(self.columns))
            return
        self._add_to_places(new)
        self._surroundings.measure(head.extras)
        seasons, auto, places = self._seasons(head), self.auto, self.places
        before = int(head.stamps[0]) - self._clock.step
        stretch = self._stretch(head.stamps, head.values[:, places], head.extras[:, places], before)
        self.ensemble = Ensemble.start(stretch, seasons, auto, auto.sharing, self.ensemble, auto.horizon)
        if auto.compares:
            self.alone = Ensemble.start(stretch, seasons, auto, False, self.alone)
        for record in self.records:
            record.scale[new] = self.ensemble.views[0].units.scale[len(self.places) - len(new) :]
        self.measured_on, self.n_measured = self.rounds, len(self.places)
        groups = find_copies(stretch.values, self.ensemble.graph)
        self.copies = tuple(sorted(tuple(sorted(self.places[list(group)].tolist())) for group in groups))
        self._begin_scores()

    def _by_name(self, places: Ints) -> Ints:
        """Order columns by name: the order in which they came depends on how rounds are cut."""
        return np.array(sorted(places.tolist(), key=lambda place: repr(self.columns[place])), np.int64)

    def _add_to_places(self, new: Ints) -> None:
        """Add columns to those in the ensemble."""
        self.places = np.append(self.places, new)
        for place in new.tolist():
            del self._newcomers.values[place]

    def _seasons(self, head: Part) -> Seasons:
        lengths = self.auto.seasons
        if lengths is None and not self.is_dated:
            lengths = tuple(map(float, detect_seasons(Units.measure(head.values).inward(head.values))))
        return Seasons.of_clock(self._clock, self.is_dated, lengths)

    def _begin_scores(self) -> None:
        """Start a record, or a new one if the members have changed, as all must be scored on the same rounds."""
        assert self.ensemble is not None
        contenders = (MODEL, *([ALONE] if self.alone else []), *self.ensemble.names)
        if self.rounds < SCORED_FROM or self.record.contenders == contenders:
            return
        self.record = self._blank(self.record.scale, contenders)
        self.later_records = [self._blank(one.scale, one.contenders) for one in self.later_records]
        for record in self.records:
            record.scale[self.places] = self.ensemble.views[0].units.scale
        self.weights = Curve.blank(len(self.ensemble.names))

    @property
    def _is_measured(self) -> bool:
        """Whether everything has been measured for the last time; from then on, streams join one by one."""
        return self.rounds >= HEADS[-1] and self.ensemble is not None

    def _let_join(self) -> None:
        """Let streams join that have enough values."""
        ready = dict(self._newcomers.ready())
        for place in self._by_name(np.array([*ready], np.int64)).tolist():
            values = ready[place]
            for ensemble in filter(None, (self.ensemble, self.alone)):
                ensemble.join(values)
            self._add_to_places(np.array([place]))
            assert self.ensemble is not None
            for record in self.records:
                record.scale[place] = self.ensemble.views[0].units.scale[-1]

    def _learn(self, stamps: Ints, values: Floats, extras: Floats, record: bool) -> Forecasts:
        """Forecast and learn rounds between which nothing is measured and no stream joins."""
        n, places, before = len(stamps), self.places, self.last_stamp
        last, self._last = last_known(values, self._last)
        known, self._last_extras = last_known(extras, self._last_extras)
        if not self._is_measured:
            self._head.parts.append(Part(stamps, values.copy(), known))  # the caller may reuse the array
        forecast = np.tile(last, (self.horizon, 1, 1))
        naive, made, alone = forecast.copy(), None, None
        if self.ensemble is not None:
            stretch = self._stretch(stamps, values[:, places], known[:, places], before)
            made = self.ensemble.advance(stretch)
            self.unplanned += np.vstack([stretch.planned.unknown, np.full(self.horizon, n * len(places))])
            alone = None if self.alone is None else self.alone.advance(stretch)
            forecast[:, :, places], naive[1:, :, places] = made.forecasts, made.later.naive
            self.breakdowns = self.ensemble.breakdowns
        there = ~np.isnan(values)
        moves = there & ~np.isnan(last) & (values != last)
        has_changed = np.logical_or.accumulate(np.vstack([self._has_changed, moves]), axis=0)
        self._has_changed = has_changed[-1]
        forecast = self._outward(np.where(has_changed[:-1], forecast, last), places)
        given = self._pending.advance(forecast, last, naive, self._unit, values, places)
        rows, k, columns = np.nonzero((there & ~np.isnan(given.forecast)).transpose(1, 0, 2))
        middle, widths, zero = given.forecast[k, rows, columns], given.width[k, rows, columns], np.zeros(len(rows))
        offsets = given.offsets[k, :, rows, columns]
        found = self._forecasts(stamps[rows], columns, values[rows, columns], middle, zero, widths, k + 1, offsets)
        if made is not None and record and self.rounds >= SCORED_FROM:
            self._add_scores(values, rows, found, given, made, alone)
        self._count(stamps)
        if 1 < self.rounds < HEADS[0]:
            self._clock = self._local_clock.measured(self._times(self._head.stamps))
        self._samples += int(there.sum())
        self._quiet = np.where(there.any(axis=0), np.argmax(there[::-1], axis=0), self._quiet + n)
        self._newcomers.take_up(values)
        return found

    def _count_steps(self, stamps: Ints, before: int) -> None:
        """Count steps that were too long, the first of them once the clock has been measured."""
        if self.rounds >= HEADS[0]:
            super()._count_steps(stamps, before)

    @property
    def _unit(self) -> Floats:
        """The typical change of each stream in the ensemble; NaN for others, which get no intervals."""
        unit = np.full(len(self.columns), np.nan)
        unit[self.places] = self.record.scale[self.places]
        return unit

    def _add_scores(
        self, values: Floats, rows: Ints, found: Forecasts, given: Given, made: Made, alone: Made | None
    ) -> None:
        """Record the errors of the model, of all its members and rules, and of the mixture that shares nothing."""
        assert self.ensemble is not None
        assert self.weights is not None
        inside_of = np.full(len(self.columns), -1)
        inside_of[self.places] = np.arange(len(self.places))
        unit = self.ensemble.views[0].units.scale
        order = np.argsort(found.horizons, kind="stable")
        order = order[inside_of[found.places[order]] >= 0]
        ends = np.searchsorted(found.horizons[order], np.arange(self.horizon + 1), side="right")
        for k, record in enumerate(self.records):
            kept = order[ends[k] : ends[k + 1]]
            at, columns = rows[kept], found.places[kept]
            places, scale = inside_of[columns], record.scale[columns, None]
            actual, low, high = found.actual[kept], found.low[kept], found.high[kept]
            if k:
                others = [self._outward(array[k, at, columns], columns)[:, None] for array in (given.last, given.naive)]
            else:
                changes = np.nan_to_num(made.members[at, places]) * unit[places, None]
                others = [] if alone is None else [self._outward(alone.forecast, places)[at, places][:, None]]
                others.append(self._outward(made.last[at, places, None] + changes, places))
            errors = (actual[:, None] - np.column_stack([found.forecast[kept], *others])) / scale
            inside = np.where(np.isnan(low), np.nan, (low <= actual) & (actual <= high))
            record.add(np.clip(errors, -LARGEST_LEVEL, LARGEST_LEVEL), inside, columns, at, len(values))
            record.add_losses(np.column_stack([low, high, found.quantiles[kept]]), actual, columns)
        self.weights.add(made.weights, np.arange(len(values)), len(values))
        there = ~np.isnan(values)
        self.absent += int(np.count_nonzero(~there))
        self.unforecast += int(np.count_nonzero(there)) - int(np.count_nonzero(found.horizons == 1))

    def _stretch(self, stamps: Ints, values: Floats, extras: Floats, before: int) -> Stretch:
        """Return rounds as the ensemble takes them; `before` is the time of the round before."""
        times = np.append(before, stamps)
        clock = self._local_clock
        expected = clock.ahead(stamps, self.auto.horizon)
        tasks = [self.columns[place] for place in self.places] if self.n_known else range(len(self.places))
        plan = self.plan.table(tasks), self.plan.rows_of(times[:-1], expected, self._clock.step)
        local = clock.local(times), clock.local(expected)
        return self._surroundings.stretch(times, *local, values, extras, plan, self._clock, self.is_dated)

    @property
    def _local_clock(self) -> LocalClock:
        """The clock, and the zone to which times are converted if they are in UTC."""
        return LocalClock(self._clock, self.auto.timezone if self.is_dated and self.origin.is_utc else None)

    def _after(self, stamp: int) -> int:
        return int(self._local_clock.ahead(np.array([stamp]), 2)[0, 1])

    # Forecasting ---------------------------------------------------------------------------------------------------

    def _ahead(self, stamp: int) -> Forecasts:
        stamps, forecast = np.array([stamp]), np.tile(self._last, (self.horizon, 1))
        if self.ensemble is not None:
            made = self.ensemble.ahead(self._next(stamp))
            forecast[:, self.places] = made.forecasts[:, 0]
        forecast = self._outward(np.where(self._has_changed, forecast, self._last), self.places)
        widths, offsets = self._pending.ahead(self._unit)
        k, columns = np.nonzero(~np.isnan(forecast))
        times, unknown = self._local_clock.ahead(stamps, self.horizon)[0][k], np.full(len(k), np.nan)
        middle, zero = forecast[k, columns], np.zeros(len(k))
        given = widths[k, columns], k + 1, offsets[k, :, columns]
        return self._forecasts(times, columns, unknown, middle, zero, *given)

    def _next(self, stamp: int | None = None) -> Stretch:
        """Return the round after the last, as the ensemble takes it; it is expected at `stamp`."""
        stamps = np.array([self._after(self.last_stamp) if stamp is None else stamp])
        nothing = np.full((1, len(self.places)), np.nan)
        return self._stretch(stamps, nothing, self._last_extras[None, self.places], self.last_stamp)

    # Saving --------------------------------------------------------------------------------------------------------

    def dump(self) -> dict[str, Any]:
        """Return all parts and the state, for `braided.save`."""
        dumped = super().dump()
        dumped["parts"] |= {"auto": self.auto, "n_extras": self._n_extras, "clock": self._clock}
        return dumped | {
            "last_extras": self._last_extras,
            "extras_units": self._surroundings.units,
            "head": self._head.dump(),
            "waiting": self._newcomers.dump(),
            "pending": self._pending.dump(),
            "plan": self.plan,
            "places": self.places,
            "ensembles": [one.dump() for one in (self.ensemble, self.alone) if one is not None],
        }

    @classmethod
    def restore(cls, dumped: Mapping[str, Any]) -> Self:
        """Return the engine that `dump` described; raise InputError if its parts are inconsistent."""
        parts = dumped["parts"]
        if not isinstance(parts["auto"], Auto):
            raise InputError(f"auto is a {type(parts['auto']).__name__}")
        if not isinstance(dumped["plan"], Plan):
            raise InputError(f"plan is a {type(dumped['plan']).__name__}")
        given = {name: parts[name] for name in ("n_extras", "coverage", "origin")}
        engine = cls(parts["auto"], n_known=dumped["plan"].n_known, **given)
        engine.plan = dumped["plan"]
        engine._clock = parts["clock"]
        ensembles = [Ensemble.restore(one) for one in dumped["ensembles"]]
        engine.ensemble, engine.alone = (*ensembles, None, None)[:2]
        engine.places, engine._last_extras = dumped["places"], dumped["last_extras"]
        engine._surroundings.units = dumped["extras_units"]
        engine._newcomers.restore(dumped["waiting"])
        engine._head = FirstRounds.restore(dumped["head"])
        engine._pending.restore(dumped["pending"], len(dumped["last_extras"]))
        insist_kinds(engine, origin=Origin, _clock=Clock)
        engine.record = dumped["state"]["record"]
        engine._resume(dumped["state"])
        engine._insist_sound()
        return engine

    def _insist_sound(self) -> None:
        super()._insist_sound()
        insist_sound(self)

    def in_words(self) -> str:
        """Say what is mixed, and which seasons there are."""
        if self.ensemble is None:
            return f"Auto: “no change” for the first {HEADS[0]} rounds."
        n_rules = len(self.ensemble.names) - self.ensemble.n_learners
        found = self.ensemble.seasons.in_words
        clock = ""
        if self.is_dated and self.auto.timezone is not None:
            clock = f" on the clock of {self.auto.timezone}"
        elif self.origin.is_utc:
            clock = " in UTC (--timezone Europe/Berlin makes them local)"
        learners = f"{self.ensemble.n_learners} learners and " * bool(self.ensemble.n_learners)
        said = f"Auto: {learners}{n_rules} rules, weighted by their past errors; "
        return said + (f"seasons: {', '.join(found)}{clock}." if found else "no season.")

    def _parts_in_words(self) -> str:
        return f"{self.auto}, {len(self.columns)} streams"


def last_known(values: Floats, before: Floats) -> tuple[Floats, Floats]:
    """Return what was known last before each round (n, …), and after all of them; `before` (…) is known at the start.

    >>> last_known(np.array([[1.0], [np.nan], [3.0]]), np.array([np.nan]))
    (array([[nan],
           [ 1.],
           [ 1.]]), array([3.]))
    """
    known = np.concatenate([before[None], values])
    rounds = np.arange(len(known)).reshape(-1, *[1] * before.ndim)
    latest = np.maximum.accumulate(np.where(np.isnan(known), 0, rounds), axis=0)
    filled = np.take_along_axis(known, latest, axis=0)
    return filled[:-1], filled[-1]
