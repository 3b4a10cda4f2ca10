"""Engine: what all engines have in common, and the boundary where values and times are checked, once.

An engine takes the values of many streams, round by round, forecasts each one before it learns it, and keeps a record
of its errors beside those of baselines. What forecasts is up to the subclass: `LearnerEngine` drives a learner.

| event                     | response                                                                          |
|---------------------------|-----------------------------------------------------------------------------------|
| a value is missing        | that stream is absent                                                             |
| a value is beyond 1e150   | counts as missing, and is reported                                                |
| a step is far too long    | it is a gap, and is counted                                                       |
| a new stream              | joins when the engine says so; until then it waits, at the end of `columns`       |
| a stream ends             | stays                                                                             |
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from braided.errors import InputError
from braided.forecasting.clock import LARGEST_STAMP, NEVER, Clock, as_stamps
from braided.forecasting.forecasts import Forecasts, joined
from braided.forecasting.origin import Origin
from braided.forecasting.plan import Plan
from braided.forecasting.record import CONTENDERS, Record
from braided.forecasting.units import LARGEST_LEVEL, without_too_large
from braided.graph import TaskGraph, TaskKey, task_keys
from braided.learners.parts.samples import plain_time
from braided.types import Flags, Floats, Ints, Times
from braided.validate import LARGEST_COUNT, count, insist_kinds, numbers, share

MADE_BY_HAND = Origin()
COUNTERS = ("rounds", "gaps", "breakdowns", "unforecast", "irregular", "absent", "too_large")


class Engine(ABC):
    """Turns values of many streams into forecasts, and learns as it goes; "tasks" are the streams it forecasts.

    Subclasses make their parts, then call `super().__init__`, and implement the properties `tasks`, `clock` and
    `samples`, and the methods `_meet`, `_advance`, `_ahead`, `_outward`, `_is_silent` and `restore`; those that save
    more than the common state extend `saved` and `dump`. `_advance` ends each run of rounds with `_score`, `_count` and
    `_forecasts`, and calls `_join` when a task joins.
    """

    plan: Plan = Plan.none(0)  # what is known ahead; nothing, unless the subclass can use it
    no_forecast: ClassVar[str] = "no value in the last round"  # why `ahead` leaves a stream out
    saved: ClassVar[dict[str, str]] = {  # what is saved of the state, by name, and the attribute that holds it
        name: name for name in ("record", "columns", "is_dated", "first_stamp", "last_stamp", *COUNTERS)
    }

    def __init__(
        self,
        tasks: Sequence[TaskKey],
        scale: Floats,  # (T,) of the record: each task's typical change, in the user's units
        coverage: float = 0.9,
        origin: Origin = MADE_BY_HAND,
        contenders: tuple[str, ...] = CONTENDERS,
    ) -> None:
        self.coverage, self.origin = share(coverage, "coverage"), origin
        self.record = self._blank(scale, contenders)
        self.columns: list[TaskKey] = list(tasks)  # all tasks seen, those that have not joined yet at the end
        self.first_stamp, self.last_stamp = NEVER, NEVER  # the first and the last time, as integers
        self.is_dated = False  # whether times are dates
        self.rounds, self.gaps, self.breakdowns = 0, 0, 0
        self.irregular = 0  # steps longer than nine of ten that are not gaps
        self.absent = 0  # scored values that were missing or too large
        self.too_large = 0  # values too large to use, which count as missing
        self.unforecast = 0  # values without a forecast
        self._is_torn = False  # whether a call stopped midway, so that parts of the state belong to different rounds

    # What an engine implements -------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def tasks(self) -> tuple[TaskKey, ...]:
        """The tasks that are forecast."""

    @property
    @abstractmethod
    def clock(self) -> Clock:
        """When rounds are expected."""

    @property
    @abstractmethod
    def samples(self) -> int:
        """The number of samples learned."""

    @property
    def n_extras(self) -> int:
        """The number of further columns."""
        return 0

    @property
    def n_known(self) -> int:
        """How many of the further columns, the last ones, are known ahead."""
        return self.plan.n_known

    @property
    def horizon(self) -> int:
        """How many rounds ahead it forecasts."""
        return 1

    @property
    def levels(self) -> tuple[float, ...]:
        """The levels of the quantiles that it forecasts."""
        return ()

    @property
    def needs_positive(self) -> bool:
        """Whether a value of 0 or below is refused, as it has no logarithm."""
        return False

    @property
    def graph(self) -> TaskGraph | None:
        """The graph of the tasks that are forecast, if there is one."""
        return None

    @property
    def name(self) -> str:
        """What forecasts, in a word."""
        return type(self).__name__

    @property
    def shares(self) -> bool:
        """Whether a forecast uses the values of other streams."""
        return True

    @property
    def latecomers(self) -> list[TaskKey]:
        """The tasks that joined after the start."""
        position = self.origin.position
        return [] if position is None else list(self.tasks[position.tuning_streams :])

    @property
    def waiting(self) -> list[TaskKey]:
        """The tasks that have too few values to join."""
        return self.columns[len(self.tasks) :]

    @property
    def contenders(self) -> tuple[str, ...]:
        """The contenders of the record that are worth showing."""
        return self.record.contenders

    @abstractmethod
    def _meet(self, new: list[TaskKey]) -> None:
        """Make room for new tasks, which are at the end of `columns` now."""

    @abstractmethod
    def _advance(
        self, stamps: Ints, keys: tuple[TaskKey, ...], table: Floats, extras: Floats, record: bool
    ) -> list[Forecasts]:
        """Forecast and learn rounds (n,) whose columns are `keys`; all is checked, and nothing is too large."""

    @abstractmethod
    def _ahead(self, stamp: int) -> Forecasts:
        """Forecast the round after the last, which is expected at `stamp`, and change nothing."""

    @abstractmethod
    def _outward(self, levels: Floats, places: Ints) -> Floats:
        """Return levels, in the units that are learned, of the tasks at `places` in the user's units."""

    @abstractmethod
    def _is_silent(self) -> Flags:
        """Return which tasks (T,) had no value in the last rounds that a forecast looks back to."""

    @classmethod
    @abstractmethod
    def restore(cls, dumped: Mapping[str, Any]) -> Self:
        """Return the engine that `dump` described; raise InputError if its parts are inconsistent."""

    # What a user calls ---------------------------------------------------------------------------------------------

    def advance(
        self,
        times: Any,
        values: Any,
        tasks: Sequence[TaskKey] | None = None,
        extras: Any = None,
        record: bool = True,
    ) -> Forecasts:
        """Forecast each value before it is learned, round by round; return the forecasts.

        `values` is (rounds, tasks), NaN where a task is absent; `extras` (rounds, tasks, features), the last of which
        may be known ahead: then a round without any value is part of the plan for rounds to come. With `record=False`
        the forecasts are not scored. A refused call changes nothing.
        """
        self._insist_whole()
        stamps, dated = self._stamps(times)
        keys = self.tasks if tasks is None else task_keys(tasks)
        table, more = self._tables(values, extras, (len(stamps), len(keys)))
        if not len(stamps):
            return self.nothing()
        came = self._are_rounds(table)
        if came.any():
            self._insist_measured(keys, table[came])
        self._take_plan(stamps, keys, more, came)
        if not came.all():
            stamps, table, more = stamps[came], table[came], more[came]
        if not len(stamps):
            return self.nothing()
        self.is_dated = dated
        table, too_large = without_too_large(table)
        more = without_too_large(more)[0] if more.size else more
        self.too_large += too_large
        if self.last_stamp == NEVER:
            self.first_stamp, self.last_stamp = int(stamps[0]), int(stamps[0]) - self.clock.step
        known = set(self.columns)
        new = [key for key in keys if key not in known]
        self.columns += new
        self._meet(new)
        try:
            return joined(self._advance(stamps, keys, table, more, record))
        except BaseException:
            self._is_torn = True
            raise

    def ahead(self) -> Forecasts:
        """Forecast the round after the last, for every task that can be forecast."""
        self._insist_whole()
        if self.last_stamp == NEVER:
            raise InputError("nothing is known yet: give values to `advance` first")
        return self._ahead(self._after(self.last_stamp))

    def learn_known_ahead(self, times: Any, known: Any, tasks: Sequence[TaskKey]) -> None:
        """Add to the plan what is known of later rounds: (rounds, tasks, columns known ahead), NaN where unknown.

        New values replace old ones. Only the next 1,000 rounds are kept.
        """
        raise InputError(f"{self.name} has no columns that are known ahead: only Auto can have them")

    def plan_in_words(self) -> str:
        """Say how many of the next forecasts are made without knowing everything; an empty string if none."""
        return ""

    def _insist_measured(self, keys: tuple[TaskKey, ...], table: Floats) -> None:  # noqa: B027 (most don't look ahead)
        """Refuse forecasts of this engine as values."""

    def _are_rounds(self, table: Floats) -> Flags:
        """Return which rows (n,) are rounds; where columns are known ahead, others are the plan for rounds to come."""
        return np.asarray((~np.isnan(table)).any(axis=1)) if self.n_known else np.ones(len(table), np.bool_)

    def _take_plan(  # noqa: B027 (most have none)
        self, stamps: Ints, keys: tuple[TaskKey, ...], extras: Floats, came: Flags
    ) -> None:
        """Add to the plan what is known of rounds, those that came and those to come."""

    def _after(self, stamp: int) -> int:
        """When the round after that of a time is expected."""
        return self.clock.after(stamp)

    def nothing(self) -> Forecasts:
        """Return an empty table of forecasts."""
        none = np.empty(0, np.int64)
        unknown = np.empty(0)
        return self._forecasts(none, none, unknown, unknown, unknown, unknown)

    def forget_record(self) -> None:
        """Begin a new record of errors; what was learned stays."""
        self.record = self._blank(self.record.scale, self.record.contenders)
        self.absent = self.unforecast = self.too_large = self.gaps = self.irregular = self.breakdowns = 0

    @property
    def last_time(self) -> Any:
        """The time of the last round; None before the first."""
        return None if self.last_stamp == NEVER else self._time(self.last_stamp)

    @property
    def silent(self) -> list[TaskKey]:
        """The tasks that had no value in the last rounds that a forecast looks back to."""
        return [self.tasks[place] for place in np.flatnonzero(self._is_silent())]

    def _time(self, stamp: int) -> Any:
        return _moment(stamp, self.is_dated)

    # The boundary --------------------------------------------------------------------------------------------------

    def _stamps(self, times: Any) -> tuple[Ints, bool]:
        """Times as integers, in order and after all that was learned."""
        given = np.asarray(times)
        if given.dtype.kind in "OU" and given.size:
            try:
                given = np.array([plain_time(time) for time in given.ravel()], "datetime64[us]").reshape(given.shape)
            except (TypeError, ValueError) as error:
                raise InputError(f"times holds {given.flat[0]!r}: give dates or integers ({error})") from error
        dated = given.dtype.kind == "M"
        if given.dtype.kind not in "iuM" or given.ndim != 1:
            raise InputError(f"times has dtype {given.dtype} and shape {given.shape}: give datetime64 or integers")
        if self.last_stamp != NEVER and len(given) and dated != self.is_dated:
            before = "dates" if self.is_dated else "integers"
            raise InputError(f"times has dtype {given.dtype}: those of the rounds before were {before}")
        stamps = as_stamps(given)
        for place in np.flatnonzero(np.abs(stamps) > LARGEST_STAMP)[:1]:
            raise InputError(
                f"times[{place}] is {given[place]}: give times between {-LARGEST_STAMP} and {LARGEST_STAMP}, or in a "
                "coarser unit"
            )
        earlier = np.append(self.last_stamp, stamps[:-1])[: len(stamps)]
        for place in np.flatnonzero(stamps <= earlier)[:1]:
            before = _moment(int(earlier[place]), dated)
            raise InputError(f"times[{place}] is {given[place]}, not after {before}: give each round once, in order")
        steps = np.diff(stamps, prepend=stamps[:1] if self.last_stamp == NEVER else self.last_stamp)
        for place in np.flatnonzero(steps > LARGEST_STAMP)[:1]:
            raise InputError(f"times[{place}] is {given[place]}, more than {LARGEST_STAMP} after the round before")
        return stamps, dated

    def _tables(self, values: Any, extras: Any, shape: tuple[int, int]) -> tuple[Floats, Floats]:
        table = numbers(values, "values")
        more = np.empty((*shape, 0)) if extras is None else numbers(extras, "extras")
        for name, array, expected in (("values", table, shape), ("extras", more, (*shape, self.n_extras))):
            if array.shape != expected:
                raise InputError(f"{name} has shape {array.shape}: times, tasks and features say {expected}")
            bad = np.isinf(array) | ((array <= 0.0) & (self.needs_positive and name == "values"))
            if bad.any():
                place = tuple(map(int, np.argwhere(bad)[0]))
                what = "use NaN for a missing value" if np.isinf(array[place]) else "it has no logarithm; use NaN"
                raise InputError(f"{name}{list(place)} is {array[place]:g}: {what}")
        return table, more

    # What a subclass calls -----------------------------------------------------------------------------------------

    def _arranged(self, keys: tuple[TaskKey, ...], table: Floats, extras: Floats) -> tuple[Floats, Floats]:
        """Put the columns into the order of `columns`; a task that is not among them is absent."""
        if keys == tuple(self.columns):
            return table, extras
        place = {key: position for position, key in enumerate(keys)}
        order = [place.get(key, len(keys)) for key in self.columns]
        return widened(table, 1)[:, order], widened(extras, 1)[:, order]

    def _join(self, task: TaskKey, scale: float) -> list[int]:
        """Make one of the tasks at the end of `columns` the last of those that are forecast; give its record's scale.

        Returns the new order of the columns, for what the subclass keeps of each.
        """
        n_tasks = len(self.record.counts)
        self.record.join(np.array([scale]))
        order = list(range(len(self.columns)))
        order.insert(n_tasks, order.pop(self.columns.index(task)))
        self.columns = [self.columns[place] for place in order]
        return order

    def _score(self, errors: Floats, inside: Floats, places: Ints, rows: Ints, n_rounds: int, absent: int) -> None:
        """Add errors to the record, as `Record.add` takes them; `absent` values had nothing to compare with."""
        self.record.add(np.clip(errors, -LARGEST_LEVEL, LARGEST_LEVEL), inside, places, rows, n_rounds)
        self.absent += absent
        self.unforecast += n_rounds * len(self.tasks) - absent - len(places)

    def _blank(self, scale: Floats, contenders: tuple[str, ...]) -> Record:
        """Return a record before the first forecast."""
        return Record.blank(scale, contenders, self._all_levels)

    @property
    def _all_levels(self) -> tuple[float, ...]:
        """The levels of both ends of the interval, then those of the quantiles."""
        return ((1.0 - self.coverage) / 2.0, (1.0 + self.coverage) / 2.0, *self.levels)

    def _count(self, stamps: Ints) -> None:
        """Count rounds that were learned, and the steps between them that were too long."""
        self._count_steps(stamps, self.last_stamp)
        self.rounds, self.last_stamp = self.rounds + len(stamps), int(stamps[-1])

    def _count_steps(self, stamps: Ints, before: int) -> None:
        """Count steps that were too long; `before` is the time before the first."""
        longer = int(np.count_nonzero(np.diff(stamps, prepend=before) > self.clock.longest))
        n_gaps = len(self.clock.gaps(stamps, before))
        self.gaps, self.irregular = self.gaps + n_gaps, self.irregular + longer - n_gaps

    def _forecasts(
        self,
        stamps: Ints,
        places: Ints,
        actual: Floats,
        level: Floats,
        change: Floats,
        widths: Floats,
        horizons: Ints | None = None,
        offsets: Floats | None = None,  # (n, Q) of the quantiles, from the forecast
    ) -> Forecasts:
        """Return forecasts of changes from a level, with intervals, in the user's units; by default 1 round ahead."""
        ends = (change, change - widths, change + widths)
        horizons = np.ones(len(places), np.int64) if horizons is None else horizons
        forecast, low, high = (self._outward(level + end, places) for end in ends)
        quantiles = np.full((len(places), len(self.levels)), np.nan)
        if offsets is not None:
            for column, offset in zip(quantiles.T, offsets.T, strict=True):
                column[:] = self._outward(level + change + offset, places)
            quantiles.sort(axis=1)  # where they cross, that makes the total loss no larger
        known = places, horizons, self.tasks, actual
        return Forecasts(self._times(stamps), *known, forecast, low, high, quantiles, self.levels)

    def _times(self, stamps: Ints) -> Times:
        return stamps.view("datetime64[us]") if self.is_dated else stamps

    # Saving --------------------------------------------------------------------------------------------------------

    def dump(self) -> dict[str, Any]:
        """Return all parts and the state, for `braided.save`."""
        self._insist_whole()
        state = {name: getattr(self, attribute) for name, attribute in self.saved.items()}
        return {"parts": {"coverage": self.coverage, "origin": self.origin}, "state": state}

    def _resume(self, state: Mapping[str, Any]) -> None:
        """Take a saved state; what it lacks stays as it is."""
        contenders = self.record.contenders
        for name, attribute in self.saved.items():
            setattr(self, attribute, state.get(name, getattr(self, attribute)))
        self.columns = list(task_keys(self.columns)) if len(self.columns) else []
        insist_kinds(self, record=Record)
        if self.record.contenders != contenders:
            raise InputError(f"the record is of {self.record.contenders!r:.200}, the engine of {contenders}")
        self._insist_levels(self.record)

    def _insist_levels(self, record: Record) -> None:
        """Refuse a record of other levels; one from a file without any starts its sums now."""
        if not record.levels:
            record.expect(self._all_levels)
        if record.levels != self._all_levels:
            raise InputError(f"the record is of the levels {record.levels!r:.200}, not {self._all_levels}")

    def _insist_whole(self) -> None:
        if self._is_torn:
            raise InputError("an update stopped midway, so this model is half changed: load it from where it was saved")

    def _insist_sound(self) -> None:
        """Refuse a loaded state with parts that do not belong together."""
        n_tasks = len(self.tasks)
        for name in COUNTERS:
            count(getattr(self, name), name, least=0, most=LARGEST_COUNT)
        for name in ("first_stamp", "last_stamp"):
            count(getattr(self, name), name, least=NEVER, most=LARGEST_STAMP)
        insist_kinds(self, is_dated=bool)
        if not len(self.record.counts) == len(self.record.scale) == n_tasks:
            raise InputError(f"the record is of {len(self.record.counts)} tasks, the engine of {n_tasks}")
        if tuple(self.columns[:n_tasks]) != self.tasks:
            raise InputError("the columns are not the tasks, followed by those that wait to join")

    def __copy__(self) -> Self:
        """Return a copy that shares no state: what one learns, the other does not."""
        return copy.deepcopy(self)

    def __repr__(self) -> str:
        seen = f"{self.rounds} rounds" + (f" up to {self.last_time}" if self.rounds else "")
        return f"{type(self).__name__}({self._parts_in_words()}) after {seen}"

    def _parts_in_words(self) -> str:
        return ""


def _moment(stamp: int, is_dated: bool) -> Any:
    return np.datetime64(stamp, "us") if is_dated else stamp


def widened(array: Floats, more: int) -> Floats:
    """Append columns without values."""
    return np.concatenate([array, np.full((len(array), more, *array.shape[2:]), np.nan)], axis=1) if more else array
