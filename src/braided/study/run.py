"""Run: tune every method on the tuning period of a window, then forecast the rest of it from scratch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from time import perf_counter
from typing import Any, Literal, NamedTuple, TypeAlias, final

import numpy as np

from braided.evaluation import Evaluation, Protocol, evaluate
from braided.features import ELM, Scale
from braided.features.lags import Samples
from braided.forecasting import Parameters, Preparation, Trial
from braided.graph import TaskGraph
from braided.methods import Inputs, Make, Method
from braided.study.plan import METRICS, WINDOW_LENGTH, Plan, Unit
from braided.tuning import Tuner, by_score
from braided.types import Floats

Block: TypeAlias = dict[str, Any]  # columns of a table: arrays, or one value for all rows


@final
@dataclass
class Window:
    """One window, cut into a tuning period and a test period."""

    levels: Floats  # (length, tasks)
    tasks: tuple[str, ...]
    plan: Plan
    train: int  # steps
    _parts: dict[tuple[Inputs, int, int], tuple[Samples, Samples]] = field(default_factory=dict, init=False)

    @cached_property
    def graph(self) -> TaskGraph:
        """Spearman correlations of the changes in the tuning period."""
        return TaskGraph.from_history(self.levels[: self.train], self.tasks)

    def every(self, method: Method) -> int:
        """Return the rounds between refits, in proportion to the window."""
        return max(round(method.every * len(self.levels) / WINDOW_LENGTH), 1)

    def parts(self, inputs: Inputs, hidden: int = 0, seed: int = 0) -> tuple[Samples, Samples]:
        """Return the samples of the tuning and the test period; lags of the latter reach back into the former.

        With `hidden` nodes, behind the hidden layer that `seed` draws.
        """
        key = inputs, hidden, seed
        if key not in self._parts and hidden:
            layer = ELM(hidden, seed)
            known, ahead = (part._replace(X=layer.transform(part.X)) for part in self.parts(inputs))
            self._parts[key] = known, ahead
        elif key not in self._parts:
            samples = Preparation(inputs.lags(self.plan.lags), self.graph).samples(self.levels)
            if inputs.scaled:
                known = samples.between(0, self.train)
                samples = samples._replace(X=Scale.fit(known.X).transform(samples.X))
            self._parts[key] = samples.between(0, self.train), samples.between(self.train, len(self.levels))
        return self._parts[key]


class Tuned(NamedTuple):
    """The result of tuning."""

    parameters: Parameters | None  # None where every candidate broke down
    score: float  # on the tuning period
    candidates: int
    discarded: int


def run_part(
    make: Make,
    method: Method,
    window: Window,
    part: Literal[0, 1],
    protocol: Protocol,
    parameters: Parameters,
    seed: int = 0,
) -> Evaluation:
    """Forecast the tuning (0) or test period (1) of a window from scratch; `seed` draws a hidden layer."""
    samples = window.parts(method.inputs, int(parameters.get("hidden", 0)), seed)[part]
    learner = method.build(parameters, window.graph, samples.X.shape[1], window.plan.per, make, guard=False)
    return evaluate(learner, samples, protocol, every=window.every(method))


def tune(method: Method, window: Window, protocol: Protocol) -> Tuned:
    """Choose parameters by progressive runs over the tuning period; candidates that break down are discarded."""
    make = method.tuned_by or method.make
    if make is None:
        return Tuned({}, np.nan, 0, 0)
    trials: list[Trial] = []

    def attempt(pool: list[Parameters], rounds: int) -> list[Trial]:
        runs = (run_part(make, method, window, 0, protocol, candidate) for candidate in pool)
        scores = [run.scores.mean("rmse_to_no_change") if run.broke_at is None else np.inf for run in runs]
        found = (score if np.isfinite(score) else None for score in scores)
        trials.extend(Trial(method.name, one, rounds, score) for one, score in zip(pool, found, strict=True))
        return trials[-len(pool) :]

    best = Tuner(window.plan.forgetting, window.train).tune(method, attempt)
    held = None if best.score is None else best.parameters
    return Tuned(held, by_score(best), len(trials), sum(trial.score is None for trial in trials))


def forecast(method: Method, window: Window, protocol: Protocol, parameters: Parameters | None) -> list[Evaluation]:
    """Forecast the test period from scratch: once, or once per hidden layer."""
    _, ahead = window.parts(method.inputs)
    if method.naive is not None:
        return [Evaluation(ahead, method.naive(ahead))]
    if method.make is None or parameters is None:
        return [Evaluation(ahead, np.zeros(len(ahead.y)), broke_at=0)]
    seeds = range(method.hidden_seeds)
    return [run_part(method.make, method, window, 1, protocol, parameters, seed) for seed in seeds]


def run_unit(
    plan: Plan, methods: Sequence[Method], unit: Unit, levels: Floats, tasks: tuple[str, ...]
) -> dict[str, list[Block]]:
    """Run all methods on one window and split; return the blocks of each table of the store."""
    window = Window(levels, tasks, plan, plan.splits[unit.split])
    where = {"window": unit.window, "split": unit.split}
    T, step = len(tasks), np.arange(len(levels))
    pairs = {"task": np.repeat(tasks, T), "other": np.tile(tasks, T), "similarity": window.graph.similarity.ravel()}
    series = {"task": np.tile(tasks, len(step)), "step": np.repeat(step, T), "level": levels.ravel()}
    tables = {"graphs": [where | pairs], "series": [where | series]}
    for method in methods:
        found: dict[str, Block] = {}
        for protocol in method.protocols:
            if method.shares or not found:  # without sharing, a round teaches nothing about itself: one run is both
                found = _run(method, window, protocol)
            for name, block in found.items():
                tables.setdefault(name, []).append(where | {"protocol": protocol, "method": method.name} | block)
    return tables


def _run(method: Method, window: Window, protocol: Protocol) -> dict[str, Block]:
    window.parts(method.inputs)  # shared by many methods, so not timed
    began = perf_counter()
    tuned = tune(method, window, protocol)
    then = perf_counter()
    runs = forecast(method, window, protocol, tuned.parameters)
    done = perf_counter()
    means = {name: np.mean([getattr(run.scores, name) for run in runs], axis=0) for name in METRICS}
    seen = runs[0].samples
    forecasts = {"task": seen.tasks, "step": seen.steps, "actual": seen.y, "forecast": runs[0].forecast}
    broke = sum(run.broke_at is not None for run in runs)
    choice = tuned._asdict() | {"parameters": json.dumps(tuned.parameters), "runs": len(runs), "broke": broke}
    times = {"tuning": then - began, "testing": (done - then) / len(runs), "samples": len(seen.y)}
    scores = {"task": runs[0].scores.tasks} | means
    return {"scores": scores, "forecasts": forecasts, "choices": choice, "timings": times}
