"""LearnerEngine: values of many streams in, forecasts of the next ones by a learner out, learning as it goes.

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
>>> forecaster = bd.forecasting.LearnerEngine(model, preparation)
>>> made = forecaster.advance(panel.times, panel.values, panel.tasks)
>>> made.tasks[0], len(made.forecast)
('site 1', 888)
>>> ahead = forecaster.ahead()
>>> ahead.times[0], ahead.tasks, (ahead.low < ahead.forecast).all()
(np.datetime64('2012-01-02T01:00:00.000000'), ['site 1', 'site 2', 'site 3'], np.True_)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, final

import numpy as np

from braided._compiled.intervals import LOG_FACTOR, half_widths_inplace
from braided.errors import InputError, NumericalError
from braided.features import Lags, Scale
from braided.forecasting.clipping import Clipping
from braided.forecasting.clock import Clock
from braided.forecasting.engine import MADE_BY_HAND, Engine, widened
from braided.forecasting.forecasts import Forecasts
from braided.forecasting.origin import Origin
from braided.forecasting.preparation import Preparation, with_gaps
from braided.forecasting.rescue import add_or_reset, progressive_or_reset
from braided.forecasting.units import JOIN_AFTER, LARGEST_LEVEL, Units
from braided.graph import TaskGraph, TaskKey
from braided.learners import Learner
from braided.types import Flags, Floats, Ints
from braided.validate import insist_kinds, insist_numbers


@final
class LearnerEngine(Engine):
    """A learner, and everything that turns streams of values into forecasts; the learner's tasks are the streams."""

    saved: ClassVar[dict[str, str]] = Engine.saved | {
        "calibration": "_calibration",
        "recent": "_recent",
        "recent_extras": "_recent_extras",
    }

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
        super().__init__(graph.tasks, preparation.units.typical, coverage, origin)
        self.learner, self.preparation, self.single = learner, preparation, single
        self._log_factor = float(np.log(ndtri(0.5 + self.coverage / 2.0)))  # of the first widths: of normal errors
        self._calibration: Floats = np.tile([self._log_factor, 0.0, 0.0], (graph.n_tasks, 1))
        self._recent: Floats = np.full((lags.reach, graph.n_tasks), np.nan)  # the last values of all columns
        self._recent_extras: Floats = np.full((lags.reach, graph.n_tasks, n_extras), np.nan)
        self._waiting: dict[TaskKey, Floats] = {}  # the first values of tasks that have not joined yet

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
    def clock(self) -> Clock:
        """When rounds are expected."""
        return self.preparation.clock

    @property
    def samples(self) -> int:
        """The number of samples learned."""
        return self.learner.samples

    @property
    def n_extras(self) -> int:
        """The number of further columns."""
        return self.preparation.n_extras

    @property
    def needs_positive(self) -> bool:
        """Whether logarithms are learned."""
        return self.units.logarithm

    @property
    def name(self) -> str:
        """The learner, in a word."""
        return type(self.learner).__name__

    @property
    def shares(self) -> bool:
        """Whether weights are tied, or neighbours' values are features."""
        return self.learner.shares or self.preparation.lags.neighbours > 0

    @property
    def contenders(self) -> tuple[str, ...]:
        """The contenders of the record; without one filter per stream, its column repeats that of the model."""
        return tuple(one for one in self.record.contenders if one != "single" or self.single is not None)

    def _is_silent(self) -> Flags:
        """Return which tasks had no value in the last rounds that lags look back to."""
        silent: Flags = np.logical_and.reduce(np.isnan(self._recent[:, : len(self.tasks)]), axis=0)
        return silent

    def _outward(self, levels: Floats, places: Ints) -> Floats:
        return self.units.outward(levels, places)

    # Learning ------------------------------------------------------------------------------------------------------

    def _advance(
        self, stamps: Ints, keys: tuple[TaskKey, ...], table: Floats, extras: Floats, record: bool
    ) -> list[Forecasts]:
        made: list[Forecasts] = []
        first = 0
        for end, joining in self._joins(table, keys):
            if end > first:
                columns = self._arranged(keys, table[first:end], extras[first:end])
                made.append(self._learn(stamps[first:end], *columns, record))
            for task in joining:
                self._admit(task)
            first = end
        return made

    def _meet(self, new: list[TaskKey]) -> None:
        """Let new tasks wait until they have the values to join."""
        self._waiting |= {key: np.empty(0) for key in new}
        self._recent, self._recent_extras = (widened(a, len(new)) for a in (self._recent, self._recent_extras))

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

    def _admit(self, task: TaskKey) -> None:
        similar = self.graph.typical_links()
        self.preparation.join(task, similar, self._waiting.pop(task))
        for learner in (self.learner, self.single):
            if learner is not None:
                self.breakdowns += add_or_reset(learner, task, similar) * (learner is self.learner)
        factor = self._calibration[:, LOG_FACTOR].mean() if len(self._calibration) else self._log_factor
        self._calibration = np.concatenate([self._calibration, [[factor, 0.0, 0.0]]])
        order = self._join(task, float(self.units.typical[-1]))
        self._recent, self._recent_extras = self._recent[:, order], self._recent_extras[:, order]

    def _learn(self, stamps: Ints, table: Floats, more: Floats, record: bool) -> Forecasts:
        """Forecast and learn rounds in which no task joins."""
        reach = self.preparation.lags.reach
        own, added, rounds_of = with_gaps(self.clock, stamps, table, more, self.last_stamp)
        values, further = np.vstack([self._recent, own]), np.concatenate([self._recent_extras, added])
        X, y, names, steps, level, previous = self.preparation.samples(values, further, first=reach)
        places, row = self.graph.indices(names), rounds_of[steps - reach]
        rounds = self.rounds + row
        mean, deviations = self._progress(self.learner, X, y, names, rounds, self.learner.has_std)
        alone = mean
        if self.single is not None:
            alone, _ = self._progress(self.single, self._own(X), y, names, rounds, with_std=False)
        error = np.clip(y - mean, -LARGEST_LEVEL, LARGEST_LEVEL)
        widths = self._widths(error, deviations, places, row)
        made = self._forecasts(stamps[row], places, values[steps, places], level, mean, widths)
        absent = int(np.count_nonzero(np.isnan(self.preparation.levels(table))))
        self.too_large += absent - int(np.count_nonzero(np.isnan(table[:, : len(self.tasks)])))
        if record:
            guesses = np.stack([mean, alone, np.zeros(len(y)), previous], axis=1)  # of CONTENDERS
            errors = self._errors(y, guesses, level, values[steps, places], places)
            inside = np.where(np.isnan(widths), np.nan, np.abs(error) <= widths)
            self._score(errors, inside, places, row, len(stamps), absent)
            self.record.add_losses(np.column_stack([made.low, made.high]), made.actual, places)
        self._count(stamps)
        self._recent, self._recent_extras = values[-reach:].copy(), further[-reach:].copy()
        return made

    def _widths(self, errors: Floats, deviations: Floats, places: Ints, rounds: Ints) -> Floats:
        """Return half-widths of the intervals, NaN where there is none yet; the calibration learns from the errors.

        `errors` (n,) of the levels, sorted by round; `deviations` (n,), or empty: then the size of the errors so far.
        """
        ends = np.append(np.flatnonzero(np.diff(rounds)) + 1, len(places))
        return self._made_widths(self._calibration, errors, deviations, places, ends)

    def _widths_ahead(self, deviations: Floats, places: Ints) -> Floats:
        """Return half-widths for the next round; nothing is learned."""
        end = np.array([len(places)])
        return self._made_widths(self._calibration.copy(), np.zeros(len(places)), deviations, places, end)

    def _made_widths(self, calibration: Floats, errors: Floats, deviations: Floats, places: Ints, ends: Ints) -> Floats:
        widths = np.empty(len(places))
        half_widths_inplace(calibration, widths, errors, deviations, places, ends, 1.0 - self.coverage)
        return widths

    def _errors(self, y: Floats, guesses: Floats, level: Floats, actual: Floats, places: Ints) -> Floats:
        """Errors (n, K) of the changes that the contenders guessed, in the user's units over the record's scale.

        Without logarithms, those of the levels are the same.
        """
        if not self.units.logarithm:
            return y[:, None] - guesses
        forecasts = np.stack([self._outward(level + guess, places) for guess in guesses.T], axis=1)
        last, before = forecasts[:, 2], self._outward(level - guesses[:, 3], places)
        forecasts[:, 3] = last + (last - before)  # the same change in the user's units, not the same growth
        with np.errstate(over="ignore"):
            errors: Floats = (actual[:, None] - forecasts) / self.record.scale[places, None]
        return errors

    def _own(self, X: Floats) -> Floats:
        """The features of one filter per stream: its own past, a bias and the extras."""
        lags = self.preparation.lags
        return np.column_stack([X[:, : lags.n_own], np.ones(len(X)), X[:, lags.n_features :]])

    def _progress(
        self, learner: Learner, X: Floats, y: Floats, names: Any, rounds: Ints, with_std: bool
    ) -> tuple[Floats, Floats]:
        """Forecasts, 0 where the learner could make none, and deviations if asked."""
        samples = X, y, names, rounds, np.ones(len(y))
        mean, deviations, breakdowns = progressive_or_reset(learner, *samples, with_std)
        self.breakdowns += breakdowns * (learner is self.learner)
        return np.nan_to_num(mean, nan=0.0, posinf=0.0, neginf=0.0), deviations

    def _ahead(self, stamp: int) -> Forecasts:
        X, names, level = self.preparation.latest(self._recent, self._recent_extras)
        places = self.graph.indices(names)
        mean, deviations = np.zeros(len(places)), np.full(len(places), np.nan)
        try:
            made = self.learner.predict_many(X, names, with_std=self.learner.has_std)
            mean, deviations = made if isinstance(made, tuple) else (made, np.empty(0))
        except NumericalError:
            pass  # "no change", without an interval
        widths = self._widths_ahead(deviations, places)
        stamps, unknown = np.full(len(places), stamp), np.full(len(places), np.nan)
        return self._forecasts(stamps, places, unknown, level, mean, widths)

    # Saving --------------------------------------------------------------------------------------------------------

    def dump(self) -> dict[str, Any]:
        """Return all parts and the state of this forecaster, for `braided.save`."""
        held, common = self.preparation, super().dump()
        parts = {"learner": self.learner, "lags": held.lags, "graph": held.graph, "units": held.units}
        parts |= {"single": self.single, "extras": held.scale, "clock": held.clock, "clips": held.clips}
        waiting = [list(self._waiting), list(self._waiting.values())]
        return common | {"parts": parts | common["parts"], "clipping": held.clipping, "waiting": waiting}

    @classmethod
    def restore(cls, dumped: Mapping[str, Any]) -> Self:
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
        forecaster._resume(dumped["state"])
        forecaster._scale_old_record()
        forecaster._waiting = dict(zip(*dumped["waiting"], strict=True))
        forecaster._insist_sound()
        return forecaster

    def _scale_old_record(self) -> None:
        """Convert the record of a file from before records had a scale: their errors were those of the levels.

        Without logarithms, it is the scale of the units that is missing. Errors of logarithms can't be turned into
        errors in the user's units, so a new record is begun, and all counts with it.
        """
        if not len(self.record.scale):
            self.record.scale = self.units.typical
            if self.units.logarithm:
                self.forget_record()

    def _insist_sound(self) -> None:
        """Refuse a loaded state with parts that do not belong together."""
        super()._insist_sound()
        n_tasks, n_columns, reach = len(self.tasks), len(self.columns), self.preparation.lags.reach
        insist_kinds(self.preparation, clipping=Clipping)
        insist_numbers(self._calibration, "calibration", (n_tasks, 3))
        insist_numbers(self._recent, "recent values", (reach, n_columns), missing=True)
        insist_numbers(self._recent_extras, "recent extras", (reach, n_columns, self.n_extras), missing=True)
        for values in self._waiting.values():
            insist_numbers(values, "first values", (len(values),), missing=True)
        clipping = self.preparation.clipping
        n_features = clipping.squares.shape[1]
        if {len(self.units.centre), len(clipping.seen)} != {n_tasks} or n_features != self.learner.n_features:
            raise InputError("units and typical sizes are of other tasks or features than the learner")
        if self._waiting.keys() != set(self.columns[n_tasks:]):
            raise InputError("the columns are not the tasks, followed by those that wait to join")
        if any(np.count_nonzero(~np.isnan(values)) >= JOIN_AFTER for values in self._waiting.values()):
            raise InputError(f"a task has {JOIN_AFTER} values or more and has not joined")

    def _parts_in_words(self) -> str:
        return f"{self.learner!r}, {self.preparation.lags!r}"


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
