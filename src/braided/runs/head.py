"""Head: the leading rounds of a stream, on which methods are tuned, units measured and the graph is built."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, final

import numpy as np

from braided.errors import InputError
from braided.features import ELM, Lags, Scale
from braided.features.lags import Samples
from braided.forecasting import Forecaster, Units, as_stamps, gaps_in, usual_step
from braided.graph import TaskGraph
from braided.learners import Learner
from braided.streams.panel import Times
from braided.study import METHODS, Method
from braided.study.methods import Inputs, Parameters
from braided.types import Floats

LAGS = 9  # fewer where the head is short
SINGLE = "wrls"  # one filter per stream, to compare with


@final
@dataclass(frozen=True, eq=False)
class Head:
    """The first rounds of some streams: all that is known before the first forecast that counts."""

    times: Times  # (n,)
    tasks: tuple[str, ...]
    values: Floats  # (n, T), NaN where one is missing
    extras: Floats  # (n, T, E) further features
    lags: int
    logarithm: bool = False
    _samples: dict[Inputs, Samples] = field(default_factory=dict, init=False)

    @classmethod
    def of(
        cls,
        times: Times,
        tasks: tuple[str, ...],
        values: Floats,
        extras: Floats,
        lags: int | None = None,
        logarithm: bool = False,
    ) -> Head:
        """Return the head without tasks that have too few values yet; those join later.

        `lags` are nine, or fewer in a short head, unless told. A task that never changes is refused.
        """
        count = max(min(LAGS, len(times) // 4), 1) if lags is None else lags
        needed = count + 3
        there = (~np.isnan(values)).sum(axis=0)
        enough = there >= needed
        if len(times) < needed or not enough.any():
            raise InputError(
                f"the part to tune on has {len(times)} rounds, the longest series in it {there.max(initial=0)} values; "
                f"{count} lags need {needed}: give a longer file, fewer lags (--lags), or a larger share (--tune)"
            )
        low, high = np.fmin.reduce(values), np.fmax.reduce(values)
        constant = [tasks[place] for place in np.flatnonzero(enough & ~(low < high))]
        if constant:
            names = ", ".join(repr(name) for name in constant[:5]) + ", …" * (len(constant) > 5)
            raise InputError(
                f"{names} never changes in the part to tune on ({len(times)} rounds): there is nothing to learn; "
                "leave it out (--without), or tune on a larger share (--tune)"
            )
        if enough.sum() < 2:
            raise InputError(
                f"one task only, {tasks[int(np.argmax(enough))]!r:.80}, has {needed} values in the part to tune on: "
                "sharing needs at least two; add another, or name the column that tells them apart (--task)"
            )
        kept = tuple(np.array(tasks, object)[enough])
        return cls(times, kept, values[:, enough], extras[:, enough], count, logarithm)

    @cached_property
    def step(self) -> int:
        """The usual step of the clock."""
        return usual_step(self.times)

    @cached_property
    def units(self) -> Units:
        """Of each task's values."""
        return Units.measure(self.values, self.logarithm)

    @cached_property
    def scale(self) -> Scale | None:
        """Of the further features."""
        if not self.extras.shape[2]:
            return None
        rows = self.extras.reshape(-1, self.extras.shape[2])
        rows = rows[~np.isnan(rows).any(axis=1)]
        if not len(rows):
            raise InputError(
                "the further features are never all there in the part to tune on: name others (--features)"
            )
        return Scale.fit(rows)

    @cached_property
    def graph(self) -> TaskGraph:
        """Spearman correlations of the changes; a task that is like no other stays alone."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "no similarity")
            return TaskGraph.from_history(self.units.inward(self.values), self.tasks)

    def lags_of(self, inputs: Inputs) -> Lags:
        """Return the lags that a method sees."""
        neighbours = max(self.lags // 3, 1) if inputs.neighbours else 0
        return Lags(self.lags, neighbours=neighbours, gap=inputs.neighbours, bias=inputs.bias)

    def samples(self, inputs: Inputs) -> Samples:
        """Return all samples of the head; lags do not reach across gaps."""
        if inputs not in self._samples:
            stamps = as_stamps(self.times)
            gaps = gaps_in(stamps, self.step, int(stamps[0]))
            levels = np.insert(self.units.inward(self.values), gaps, np.nan, axis=0)
            samples = self.lags_of(inputs).samples(levels, self.tasks, self.graph)
            if self.scale is not None:
                places = self.graph.indices(samples.tasks)
                further = self.scale.transform(np.insert(self.extras, gaps, np.nan, axis=0))
                X = np.hstack([samples.X, further[samples.steps - 1, places]])
                whole = np.flatnonzero(~np.isnan(X).any(axis=1))
                names = [samples.tasks[place] for place in whole]
                columns = {name: getattr(samples, name)[whole] for name in ("y", "steps", "level", "previous")}
                samples = Samples(X=X[whole], tasks=names, **columns)
            self._samples[inputs] = samples
        return self._samples[inputs]

    def build(self, method: Method, parameters: Parameters) -> Learner:
        """Return a learner for samples of this head."""
        n_features = self.lags_of(method.inputs).n_features + self.extras.shape[2]
        learner = method.build(parameters, self.graph, n_features, per="round")
        hidden = int(parameters.get("hidden", 0))
        return ELM(hidden, seed=0) | learner if hidden else learner

    def forecaster(
        self, method: Method, parameters: Parameters, single: Parameters, coverage: float, about: dict[str, Any]
    ) -> Forecaster:
        """Return a forecaster from scratch, beside one filter per stream."""
        alone = METHODS[SINGLE]
        return Forecaster(
            self.build(method, parameters),
            self.lags_of(method.inputs),
            self.graph,
            self.units,
            None if method is alone and parameters == single else self.build(alone, single),
            self.scale,
            self.step,
            coverage,
            about,
        )
