"""Tuning period: the leading rounds of a table, on which units are measured, the graph built and methods tuned.

A few streams are all tied to each other, with an exact solver. Of many streams, each is tied to the most similar ones,
by a solver with a cost per sample that does not grow with their number; methods are tuned on parts of that graph.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import final

import numpy as np
from scipy.sparse.csgraph import breadth_first_order

from braided.errors import InputError
from braided.features import ELM, Lags, Scale
from braided.features.lags import Samples
from braided.forecasting import Clock, Parameters, Preparation, Units
from braided.forecasting.auto.view import TIED_TO
from braided.forecasting.clock import as_stamps
from braided.forecasting.preparation import Rows, with_gaps
from braided.forecasting.units import without_too_large
from braided.graph import TaskGraph, listed
from braided.learners import Learner
from braided.methods import Method, sees_level
from braided.printable import counted
from braided.tables import Chunk
from braided.types import Floats, Times
from braided.validate import LARGEST_VALUE

ROBUST_BEYOND = 5.0  # deviations: larger innovations have less weight
DEFAULT_LAGS = 9  # fewer where the tuning period is short
EXACT_UP_TO = 300  # streams · (lags + 1) up to which every stream is tied to every other, not to a few
TUNED_REGIONS, REGION_STREAMS = 3, 100  # regions of the graph to tune on, and streams in each


@final
@dataclass(frozen=True, eq=False)
class TuningPeriod:
    """The first rounds of some streams: all that is known before the first forecast that is scored."""

    times: Times  # (n,)
    tasks: tuple[str, ...]
    values: Floats  # (n, T), NaN where one is missing
    extras: Floats  # (n, T, E) further features
    scale: Scale | None  # of the further features
    lags: int
    logarithm: bool = False
    robust: bool = True  # wild values have little weight
    _samples: dict[Lags, Samples] = field(default_factory=dict, init=False)

    @classmethod
    def of(
        cls,
        chunk: Chunk,
        lags: int | None = None,
        logarithm: bool = False,
        keep_constant: bool = False,
        robust: bool = True,
    ) -> TuningPeriod:
        """Return the tuning period without streams that have too few values yet; those join later.

        `lags` defaults to nine, or fewer in a short period. A stream that never changes is refused, or joins later if
        `keep_constant`.
        """
        times, tasks, values, extras = chunk
        values, too_large = without_too_large(values)
        extras, _ = without_too_large(extras)
        count = max(min(DEFAULT_LAGS, len(times) // 4), 1) if lags is None else lags
        needed = count + 3
        there = (~np.isnan(values)).sum(axis=0)
        enough = there >= needed
        if len(times) < needed or not enough.any():
            beyond = f"beyond {LARGEST_VALUE:g}".replace("e+", "e")
            lost = f" ({too_large:,} {beyond} count as missing: use a larger unit)" * bool(too_large)
            raise InputError(
                f"the tuning period has {counted(len(times), 'round')}, the longest stream in it "
                f"{counted(there.max(initial=0), 'value')}{lost}; a model with {counted(count, 'lag')} needs "
                f"{needed}: give a longer table, fewer lags (--lags), or a larger share (--tune)"
            )
        low, high = np.fmin.reduce(values), np.fmax.reduce(values)
        if logarithm and (low <= 0.0).any():
            step, task = map(int, np.argwhere(values <= 0.0)[0])
            raise InputError(
                f"{tasks[task]!r} is {values[step, task]:g} at {times[step]}, which has no logarithm: leave out --log "
                "(logarithm=False), or the stream (--without)"
            )
        constant = enough & ~(low < high)
        if constant.any() and not keep_constant:
            names = [tasks[place] for place in np.flatnonzero(constant)]
            raise InputError(
                f"{listed(names)} never change{'s' * (len(names) == 1)} in the tuning period ({len(times)} rounds): "
                "leave out such streams (--without), let them join later (--keep-constant), or use a longer tuning "
                "period (--tune)"
            )
        enough &= ~constant
        if enough.sum() < 2:
            name = tasks[int(np.argmax(enough))]
            subject = f"only one stream, {name!r:.80}," if enough.any() else "no stream that changes"
            raise InputError(
                f"{subject} has {needed} values in the tuning period: sharing needs at least two; add another, or name "
                "the column that tells them apart (--stream)"
            )
        kept = tuple(np.array(tasks, object)[enough])
        extras = extras[:, enough]
        return cls(times, kept, values[:, enough], extras, _scale_of(extras), count, logarithm, robust)

    @cached_property
    def clock(self) -> Clock:
        """When rounds are expected."""
        return Clock.measure(self.times)

    @cached_property
    def _rows(self) -> Rows:
        stamps = as_stamps(self.times)
        return with_gaps(self.clock, stamps, self.values, self.extras, before=int(stamps[0]))

    @cached_property
    def units(self) -> Units:
        """The units of each task's values."""
        return Units.measure(self._rows.values, self.logarithm)

    @cached_property
    def graph(self) -> TaskGraph:
        """Spearman correlations of the changes; a stream that is not similar to any other has no ties."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "no similarity")
            k = TIED_TO if len(self.tasks) * (self.lags + 1) > EXACT_UP_TO else None
            return TaskGraph.from_history(self.units.inward(self._rows.values), self.tasks, k=k)

    @cached_property
    def sample(self) -> TuningPeriod:
        """The tuning period of enough streams to tune on: all, or regions spread over the graph."""
        n_tasks, most = len(self.tasks), TUNED_REGIONS * REGION_STREAMS
        if n_tasks <= most:
            return self
        chosen: dict[int, None] = {}  # a set that keeps its order
        for seed in [*(n_tasks * k // TUNED_REGIONS for k in range(TUNED_REGIONS)), *range(n_tasks)]:
            if len(chosen) >= most:
                break
            if seed not in chosen:
                near = breadth_first_order(self.graph.similarity, seed, return_predecessors=False)[:REGION_STREAMS]
                chosen |= dict.fromkeys(near.tolist())
        kept = sorted([*chosen][:most])
        tasks = tuple(self.tasks[place] for place in kept)
        return replace(self, tasks=tasks, values=self.values[:, kept], extras=self.extras[:, kept])

    def lags_of(self, method: Method, parameters: Parameters) -> Lags:
        """Return the features that a method sees of the past."""
        return method.inputs.lags(self.lags, fill=True, level=sees_level(parameters))

    def preparation(self, lags: Lags) -> Preparation:
        """Return how values become samples: the same way for trials and for the forecaster."""
        return Preparation(lags, self.graph, self.units, self.scale, self.clock, self.robust)

    def samples(self, lags: Lags, rounds: int) -> Samples:
        """Return the samples of the first rounds."""
        rows = self._rows
        if lags not in self._samples:
            self._samples[lags] = self.preparation(lags).samples(rows.values, rows.extras)
        return self._samples[lags].between(0, int(np.searchsorted(np.maximum.accumulate(rows.rounds), rounds)))

    def build(self, method: Method, parameters: Parameters) -> Learner:
        """Return a learner for these samples; they are in units, so inputs are not scaled again."""
        robust = ROBUST_BEYOND if self.robust else None
        n_features = self.lags_of(method, parameters).n_features + self.extras.shape[2]
        learner = method.build(parameters, self.graph, n_features, per="round", robust=robust)
        hidden = int(parameters.get("hidden", 0))
        return ELM(hidden, seed=0) | learner if hidden else learner


def _scale_of(extras: Floats) -> Scale | None:
    """Return how further features are standardised."""
    if not extras.shape[2]:
        return None
    rows = extras.reshape(-1, extras.shape[2])
    rows = rows[~np.isnan(rows).any(axis=1)]
    if not len(rows):
        raise InputError("the further features are never all present in the tuning period: name others (--features)")
    still = np.flatnonzero(np.ptp(rows, axis=0) == 0.0)
    if len(still):
        raise InputError(f"feature {still[0] + 1} never changes in the tuning period: leave it out (--features)")
    return Scale.fit(rows)
