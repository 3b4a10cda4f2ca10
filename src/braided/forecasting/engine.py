"""Engine: values of many streams in, forecasts of the next ones out, learning as it goes.

It holds all that a forecast needs: the learner, the preparation of its samples, the last values of every stream, and a
record of its errors beside those of the baselines: one filter per stream, "no change" and "last change". A forecast
does not depend on how the values before it arrived: in one call, in pieces, or round by round.

| event                     | response                                                                          |
|---------------------------|-----------------------------------------------------------------------------------|
| a value is missing        | that task is absent; it is forecast again after its next value (`Lags.fill`)      |
| a value is beyond 1e150   | counts as missing, and is reported; so does one beyond 1e100 typical changes      |
| a step is far too long    | lags do not reach across the gap                                                  |
| a new task                | joins after 20 values, with the average similarity to the others                  |
| a task ends               | stays, and is no longer forecast                                                  |
| the learner breaks down   | it is reset after that round, for which "no change" is forecast; counted          |

>>> import braided as bd
>>> panel = bd.datasets.wind_field(seed=0, steps=300, sites=3)     # synthetic
>>> past, lags = panel.values[:100], bd.Lags(3)
>>> graph = bd.TaskGraph.from_history(past, panel.tasks)
>>> model = bd.MTWRLS(graph, lags.n_features, penalty=10.0)
>>> preparation = Preparation(lags, graph, Units.measure(past), clock=Clock.measure(panel.times))
>>> forecaster = bd.forecasting.Engine(model, preparation)
>>> made = forecaster.advance(panel.times, panel.values, panel.tasks)
>>> made.tasks[0], len(made.forecast)
('site 1', 888)
>>> ahead = forecaster.ahead()
>>> ahead.times[0], ahead.tasks, (ahead.low < ahead.forecast).all()
(np.datetime64('2012-01-02T01:00:00.000000'), ['site 1', 'site 2', 'site 3'], np.True_)
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np

from braided._compiled.intervals import LOG_FACTOR, half_widths_inplace
from braided.errors import InputError, NumericalError
from braided.features import Lags, Scale
from braided.forecasting.clipping import Clipping
from braided.forecasting.clock import LARGEST_STAMP, NEVER, Clock, as_stamps
from braided.forecasting.forecasts import Forecasts, joined
from braided.forecasting.origin import Origin
from braided.forecasting.preparation import Preparation, with_gaps
from braided.forecasting.record import Record
from braided.forecasting.units import CENTRE_VALUES, LARGEST_LEVEL, Units, without_too_large
from braided.graph import TaskGraph, TaskKey, task_keys
from braided.learners import Learner
from braided.learners.parts.samples import plain_time
from braided.types import Floats, Ints
from braided.validate import LARGEST_COUNT, count, insist_kinds, insist_numbers, share

JOIN_AFTER = CENTRE_VALUES  # values, on which a new task's units are measured
MADE_BY_HAND = Origin()
GOLDEN = 0.6180339887  # its multiples, modulo 1, are spread evenly
COUNTERS = ("rounds", "gaps", "breakdowns", "unforecast", "irregular", "absent", "too_large")


@final
class Engine:
    """A learner, and everything that turns streams of values into forecasts; the learner's tasks are the streams."""

    def __init__(
        self,
        learner: Learner,  # of the prepared samples
        preparation: Preparation,
        *,
        single: Learner | None = None,  # one filter per stream on its own past and a bias, as a baseline
        coverage: float = 0.9,  # share of the values that intervals should hold
        origin: Origin = MADE_BY_HAND,
    ) -> None:
        from scipy.special import ndtri

        graph, lags, n_extras = preparation.graph, preparation.lags, preparation.n_extras
        for name, one in {"graph": graph, "single": single}.items():
            if one is not None and one.tasks != learner.tasks:
                raise InputError(f"{name} has other tasks than the learner: give the same tasks to all")
        if preparation.units is None:
            raise InputError("the preparation has no units: measure them on past values (Units.measure)")
        if not lags.difference:
            raise InputError("lags has difference=False: a forecaster forecasts changes")
        for one, expected in ((learner, lags.n_features + n_extras), (single, lags.n_own + 1 + n_extras)):
            if one is not None and one.n_features != expected:
                raise InputError(f"{type(one).__name__} has {one.n_features} features: the lags give {expected}")
        self.learner, self.preparation, self.single, self.origin = learner, preparation, single, origin
        self.coverage = share(coverage, "coverage")
        self.record = Record.blank(graph.n_tasks)
        start = [np.log(ndtri(0.5 + self.coverage / 2.0)), 0.0, 0.0]  # as if errors were normal
        self._calibration: Floats = np.tile(start, (graph.n_tasks, 1))
        self.columns: list[TaskKey] = list(graph.tasks)  # all tasks seen, those that have not joined yet at the end
        self._recent: Floats = np.full((lags.reach, graph.n_tasks), np.nan)  # their last values
        self._recent_extras: Floats = np.full((lags.reach, graph.n_tasks, n_extras), np.nan)
        self._waiting: dict[TaskKey, Floats] = {}  # the first values of tasks that have not joined yet
        self.first_stamp, self.last_stamp = NEVER, NEVER  # the first and the last time, as integers
        self.is_dated = False  # whether times are dates
        self.rounds, self.gaps, self.breakdowns = 0, 0, 0
        self.irregular = 0  # steps longer than nine of ten that are not gaps
        self.absent = 0  # scored values that were missing or too large
        self.too_large = 0  # values too large to use, which count as missing
        self.unforecast = 0  # values without a forecast: the one before was missing

    @property
    def tasks(self) -> tuple[TaskKey, ...]:
        """The tasks that are forecast."""
        return self.learner.tasks

    @property
    def graph(self) -> TaskGraph:
        """The graph of the tasks that are forecast."""
        return self.preparation.graph

    @property
    def units(self) -> Units:
        """The units of each task's values."""
        assert self.preparation.units is not None
        return self.preparation.units

    @property
    def last_time(self) -> Any:
        """The time of the last round; None before the first."""
        return None if self.last_stamp == NEVER else self._time(self.last_stamp)

    @property
    def silent(self) -> list[TaskKey]:
        """The tasks that had no value in the last rounds that lags look back to."""
        return [self.tasks[place] for place in np.flatnonzero(np.isnan(self._recent[:, : len(self.tasks)]).all(axis=0))]

    def _time(self, stamp: int) -> Any:
        return np.datetime64(stamp, "us") if self.is_dated else stamp

    # Learning ------------------------------------------------------------------------------------------------------

    def advance(
        self,
        times: Any,
        values: Any,
        tasks: Sequence[TaskKey] | None = None,
        extras: Any = None,
        record: bool = True,
    ) -> Forecasts:
        """Forecast each value before it is learned, round by round; return the forecasts.

        `values` is (rounds, tasks), NaN where a task is absent; `extras` (rounds, tasks, features). With
        `record=False` the forecasts are not scored. A refused call changes nothing.
        """
        stamps, dated = self._stamps(times)
        keys = self.tasks if tasks is None else task_keys(tasks)
        table, more = self._tables(values, extras, (len(stamps), len(keys)))
        if not len(stamps):
            return self.nothing()
        self.is_dated = dated
        table, too_large = without_too_large(table)
        more = without_too_large(more)[0] if more.size else more
        self.too_large += too_large
        self._meet(keys)
        made: list[Forecasts] = []
        first = 0
        for end, joining in self._joins(table, keys):
            if end > first:
                made.append(
                    self._learn(stamps[first:end], *self._arranged(keys, table[first:end], more[first:end]), record)
                )
            for task in joining:
                self._join(task)
            first = end
        return joined(made)

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
            before = self._time(int(earlier[place]))
            raise InputError(f"times[{place}] is {given[place]}, not after {before}: give each round once, in order")
        return stamps, dated

    def _tables(self, values: Any, extras: Any, shape: tuple[int, int]) -> tuple[Floats, Floats]:
        table = np.asarray(values, dtype=np.float64)
        more = np.empty((*shape, 0)) if extras is None else np.asarray(extras, dtype=np.float64)
        for name, array, expected in (("values", table, shape), ("extras", more, (*shape, self.preparation.n_extras))):
            if array.shape != expected:
                raise InputError(f"{name} has shape {array.shape}: times, tasks and features say {expected}")
            bad = np.isinf(array) | ((array <= 0.0) & (self.units.logarithm and name == "values"))
            if bad.any():
                place = tuple(map(int, np.argwhere(bad)[0]))
                what = "use NaN for a missing value" if np.isinf(array[place]) else "it has no logarithm; use NaN"
                raise InputError(f"{name}{list(place)} is {array[place]:g}: {what}")
        return table, more

    def _meet(self, keys: tuple[TaskKey, ...]) -> None:
        """Make room for new tasks, which wait to join."""
        known = set(self.columns)
        new = [key for key in keys if key not in known]
        self._waiting |= {key: np.empty(0) for key in new}
        self.columns += new
        self._recent, self._recent_extras = (_widened(a, len(new)) for a in (self._recent, self._recent_extras))

    def _arranged(self, keys: tuple[TaskKey, ...], table: Floats, more: Floats) -> tuple[Floats, Floats]:
        """Put the columns into the order of `columns`; a task that is not among them is absent."""
        if keys == tuple(self.columns):
            return table, more
        place = {key: position for position, key in enumerate(keys)}
        order = [place.get(key, len(keys)) for key in self.columns]
        return _widened(table, 1)[:, order], _widened(more, 1)[:, order]

    def _joins(self, table: Floats, keys: tuple[TaskKey, ...]) -> list[tuple[int, list[TaskKey]]]:
        """Cut the rounds where tasks can join: after the round in which they reach the number of values they need."""
        ready: dict[int, list[TaskKey]] = {len(table): []}
        for key in self._waiting.keys() & set(keys):
            column = table[:, keys.index(key)]
            rows, known = np.flatnonzero(~np.isnan(column)), self._waiting[key]
            needed = JOIN_AFTER - np.count_nonzero(~np.isnan(known))
            end = int(rows[needed - 1]) + 1 if len(rows) >= needed else len(table)
            self._waiting[key] = np.append(known, column[:end])  # missing values included, as changes are one step long
            if len(rows) >= needed:
                ready.setdefault(end, []).append(key)
        return [(end, sorted(joining, key=self.columns.index)) for end, joining in sorted(ready.items())]

    def _join(self, task: TaskKey) -> None:
        n_tasks, similar = self.graph.n_tasks, self._typical_links()
        self.preparation.join(task, similar, self._waiting.pop(task))
        for learner in (self.learner, self.single):
            if learner is not None:
                self._let_join(learner, task, similar if learner.shares else None)
        self.record.join()
        fresh = [[self._calibration[:, LOG_FACTOR].mean(), 0.0, 0.0]]
        self._calibration = np.concatenate([self._calibration, fresh])
        order = list(range(len(self.columns)))
        order.insert(n_tasks, order.pop(self.columns.index(task)))
        self.columns = [self.columns[place] for place in order]
        self._recent, self._recent_extras = self._recent[:, order], self._recent_extras[:, order]

    def _let_join(self, learner: Learner, task: TaskKey, similar: dict[TaskKey, float] | None) -> None:
        """Add a task; if that fails numerically, reset the learner first and count a breakdown."""
        try:
            learner.add_task(task, similar)
        except NumericalError:
            learner.reset()
            learner.add_task(task, similar)
            self.breakdowns += learner is self.learner

    def _typical_links(self) -> dict[TaskKey, float]:
        """The average similarity: to all tasks, or on a sparse graph to as many as others have, spread over it."""
        n_tasks, links = self.graph.n_tasks, self.graph.similarity
        if not self.graph.is_sparse:
            return dict.fromkeys(self.tasks, float(links.sum()) / max(n_tasks * (n_tasks - 1), 1))
        n_links = -(-links.nnz // (2 * n_tasks))
        phase = GOLDEN * n_tasks % 1.0  # so that the next task to join meets others
        places = (int(n_tasks * (k + phase) / n_links) for k in range(n_links))
        return {self.tasks[place]: float(links.sum()) / links.nnz for place in places}

    def _learn(self, stamps: Ints, table: Floats, more: Floats, record: bool) -> Forecasts:
        """Forecast and learn rounds in which no task joins."""
        clock, reach, n_tasks = self.preparation.clock, self.preparation.lags.reach, len(self.tasks)
        if self.last_stamp == NEVER:
            self.first_stamp, self.last_stamp = int(stamps[0]), int(stamps[0]) - clock.step
        own, added, rounds_of = with_gaps(clock, stamps, table, more, self.last_stamp)
        n_gaps = len(own) - len(stamps)
        longer = int(np.count_nonzero(np.diff(stamps, prepend=self.last_stamp) > clock.longest))
        values, further = np.vstack([self._recent, own]), np.concatenate([self._recent_extras, added])
        X, y, names, steps, level, previous = self.preparation.samples(values, further, first=reach)
        places, row = self.graph.indices(names), rounds_of[steps - reach]
        rounds = self.rounds + row
        mean, deviations = self._progress(self.learner, X, y, names, rounds, self.learner.has_std)
        alone = mean
        if self.single is not None:
            alone, _ = self._progress(self.single, self._own(X), y, names, rounds, with_std=False)
        ends = np.append(np.flatnonzero(np.diff(rounds)) + 1, len(y))
        error = np.clip(y - mean, -LARGEST_LEVEL, LARGEST_LEVEL)
        widths = self._widths(self._calibration, error, deviations, places, ends)
        absent = int(np.count_nonzero(np.isnan(self.preparation.levels(table))))
        self.too_large += absent - int(np.count_nonzero(np.isnan(table[:, :n_tasks])))
        if record:
            errors = np.stack([y - mean, y - alone, y, y - previous], axis=1)
            self.record.add(np.clip(errors, -LARGEST_LEVEL, LARGEST_LEVEL), widths, places, row, len(stamps))
            self.absent += absent
            self.unforecast += len(stamps) * n_tasks - absent - len(y)
        self.gaps, self.irregular = self.gaps + n_gaps, self.irregular + longer - n_gaps
        self.rounds, self.last_stamp = self.rounds + len(stamps), int(stamps[-1])
        self._recent, self._recent_extras = values[-reach:].copy(), further[-reach:].copy()
        return self._forecasts(stamps[row], places, values[steps, places], level, mean, widths)

    def _own(self, X: Floats) -> Floats:
        """The features of one filter per stream: its own past, a bias and the extras."""
        lags = self.preparation.lags
        return np.column_stack([X[:, : lags.n_own], np.ones(len(X)), X[:, lags.n_features :]])

    def _widths(self, calibration: Floats, errors: Floats, deviations: Floats, places: Ints, ends: Ints) -> Floats:
        """Half-widths of the intervals; the calibration learns from the errors."""
        widths = np.empty(len(places))
        half_widths_inplace(calibration, widths, errors, deviations, places, ends, 1.0 - self.coverage)
        return widths

    def _progress(
        self, learner: Learner, X: Floats, y: Floats, names: Any, rounds: Ints, with_std: bool
    ) -> tuple[Floats, Floats]:
        """Forecasts, and deviations if asked; where the learner breaks down, it is reset after the round."""
        mean, deviations = np.zeros(len(y)), np.full(len(y) if with_std else 0, np.nan)
        first = 0
        while first < len(y):
            rest = np.s_[first:]
            try:
                made = learner.progressive(X[rest], y[rest], names[rest], rounds=rounds[rest], with_std=with_std)
            except NumericalError as error:
                means, spreads = error.made
                until = first + len(means)
                mean[first:until] = np.nan_to_num(means, nan=0.0, posinf=0.0, neginf=0.0)
                deviations[first : first + len(spreads)] = spreads
                last = first + len(error.forecasts)  # where it broke down
                first = int(np.searchsorted(rounds, rounds[min(last, len(y) - 1)], side="right"))
                learner.reset()
                self.breakdowns += learner is self.learner
            else:
                if isinstance(made, tuple):
                    mean[rest], deviations[rest] = made
                else:
                    mean[rest] = made
                break
        return mean, deviations

    def forget_record(self) -> None:
        """Begin a new record of errors; what was learned stays."""
        self.record = Record.blank(len(self.tasks))
        self.absent = self.unforecast = self.too_large = self.gaps = self.irregular = self.breakdowns = 0

    # Forecasting ---------------------------------------------------------------------------------------------------

    def ahead(self) -> Forecasts:
        """Forecast the round after the last, for every task with complete lags."""
        if self.last_stamp == NEVER:
            raise InputError("nothing is known yet: give values to `advance` first")
        X, names, level = self.preparation.latest(self._recent, self._recent_extras)
        places = self.graph.indices(names)
        mean, deviations = np.zeros(len(places)), np.full(len(places), np.nan)
        try:
            made = self.learner.predict_many(X, names, with_std=self.learner.has_std)
            mean, deviations = made if isinstance(made, tuple) else (made, np.empty(0))
        except NumericalError:
            pass  # "no change", without an interval
        widths = self._widths(self._calibration.copy(), mean, deviations, places, np.array([len(places)]))
        stamps = np.full(len(places), self.preparation.clock.after(self.last_stamp))
        return self._forecasts(stamps, places, np.full(len(places), np.nan), level, mean, widths)

    def nothing(self) -> Forecasts:
        """Return an empty table of forecasts."""
        none = np.empty(0, np.int64)
        return self._forecasts(none, none, *(np.empty(0) for _ in range(4)))

    def _forecasts(
        self, stamps: Ints, places: Ints, actual: Floats, level: Floats, change: Floats, widths: Floats
    ) -> Forecasts:
        times = stamps.view("datetime64[us]") if self.is_dated else stamps
        ends = (change, change - widths, change + widths)
        return Forecasts(times, places, self.tasks, actual, *(self.units.outward(level + end, places) for end in ends))

    # Saving --------------------------------------------------------------------------------------------------------

    def dump(self) -> dict[str, Any]:
        """Return all parts and the state of this forecaster, for `braided.save`."""
        held = self.preparation
        parts = {"learner": self.learner, "lags": held.lags, "graph": held.graph, "units": held.units}
        parts |= {"single": self.single, "extras": held.scale, "clock": held.clock, "coverage": self.coverage}
        parts |= {"origin": self.origin, "clips": held.clips}
        state = {name: getattr(self, attribute) for name, attribute in SAVED_STATE.items()}
        waiting = [list(self._waiting), list(self._waiting.values())]
        return {"parts": parts, "state": state, "clipping": held.clipping, "waiting": waiting}

    @classmethod
    def restore(cls, dumped: Mapping[str, Any]) -> Engine:
        """Return the forecaster that `dump` described; raise InputError if its parts are inconsistent."""
        given = dumped["parts"]
        for name, kinds in SAVED_PARTS.items():
            if not isinstance(given[name], kinds):
                raise InputError(f"{name} is a {type(given[name]).__name__}")
        lags, graph, units, scale = (given[name] for name in ("lags", "graph", "units", "extras"))
        if lags.n_features > given["learner"].n_features:  # before memory is taken for them
            raise InputError(f"the lags give {lags.n_features} features, more than the learner has")
        preparation = Preparation(lags, graph, units, scale, given["clock"], given["clips"])
        preparation.clipping = dumped["clipping"]
        rest = {name: given[name] for name in ("single", "coverage", "origin")}
        forecaster = cls(given["learner"], preparation, **rest)
        for name, attribute in SAVED_STATE.items():
            setattr(forecaster, attribute, dumped["state"].get(name, getattr(forecaster, attribute)))
        forecaster.columns = list(task_keys(forecaster.columns))
        forecaster._waiting = dict(zip(*dumped["waiting"], strict=True))
        forecaster._insist_sound()
        return forecaster

    def _insist_sound(self) -> None:
        """Refuse a loaded state with parts that do not belong together."""
        n_tasks, n_columns, reach = len(self.tasks), len(self.columns), self.preparation.lags.reach
        clipping, n_extras = self.preparation.clipping, self.preparation.n_extras
        for name in COUNTERS:
            count(getattr(self, name), name, least=0, most=LARGEST_COUNT)
        for name in ("first_stamp", "last_stamp"):
            count(getattr(self, name), name, least=NEVER, most=LARGEST_STAMP)
        insist_kinds(self, is_dated=bool, record=Record)
        insist_kinds(self.preparation, clipping=Clipping)
        insist_numbers(self._recent, "recent values", (reach, n_columns), missing=True)
        insist_numbers(self._recent_extras, "recent extras", (reach, n_columns, n_extras), missing=True)
        insist_numbers(self._calibration, "calibration", (n_tasks, 3))
        for values in self._waiting.values():
            insist_numbers(values, "first values", (len(values),), missing=True)
        sizes = (len(self.units.centre), len(self.record.counts), len(clipping.seen))
        if set(sizes) != {n_tasks} or clipping.squares.shape[1] != self.learner.n_features:
            raise InputError("units, record and typical sizes are of other tasks or features than the learner")
        if tuple(self.columns[:n_tasks]) != self.tasks or self._waiting.keys() != set(self.columns[n_tasks:]):
            raise InputError("the columns are not the tasks, followed by those that wait to join")
        if any(np.count_nonzero(~np.isnan(values)) >= JOIN_AFTER for values in self._waiting.values()):
            raise InputError(f"a task has {JOIN_AFTER} values or more and has not joined")

    def __copy__(self) -> Engine:
        """Return a copy that shares no state: what one learns, the other does not."""
        return copy.deepcopy(self)

    def __repr__(self) -> str:
        seen = f"{self.rounds} rounds" + (f" up to {self.last_time}" if self.rounds else "")
        return f"Engine({self.learner!r}, {self.preparation.lags!r}) after {seen}"


SAVED_PARTS: dict[str, Any] = {  # what is saved, and its type
    "learner": Learner,
    "lags": Lags,
    "graph": TaskGraph,
    "units": Units,
    "single": Learner | None,
    "extras": Scale | None,
    "clock": Clock,
    "coverage": float,
    "clips": bool,
    "origin": Origin,
}
SAVED_STATE = {  # what is saved, by name, and the attribute that holds it
    **{name: name for name in ("record", "columns", "is_dated", "first_stamp", "last_stamp", *COUNTERS)},
    **{name: f"_{name}" for name in ("recent", "recent_extras", "calibration")},
}


def _widened(array: Floats, more: int) -> Floats:
    """Append columns without values."""
    return np.concatenate([array, np.full((len(array), more, *array.shape[2:]), np.nan)], axis=1) if more else array
