"""What the two recursive least squares learners share: filters, policies of forgetting, and the robust step."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np

from braided._compiled.batch import Batch, Clock, Steps
from braided._compiled.filters import forecast_inplace, variances
from braided._compiled.rls import learn_one_inplace, progressive_inplace
from braided.forgetting import Policy, Prior
from braided.graph import TaskGraph, TaskKey
from braided.learners.base import Health, Learner
from braided.types import Floats, Ints
from braided.validate import MOST_COUNTED, insist_integers, insist_numbers, positive


class FilterLearner(Learner):
    """A learner on one filter or several; says how to forecast and learn, not how tasks and filters relate."""

    parameters: ClassVar[tuple[str, ...]] = ("penalty", "forgetting", "robust", "noise")
    has_std = True
    _prior: Prior
    _at_once: dict[bool, Steps]  # of a sample that opens a round or not, where that is all there is to know

    def __init__(
        self,
        graph: TaskGraph,
        n_features: int,
        penalty: float,
        forgetting: Policy,
        robust: float | None,
        noise: float | None,
    ) -> None:
        self.penalty = positive(penalty, "penalty")
        self.forgetting = forgetting
        self.robust = None if robust is None else positive(robust, "robust")
        self.noise = None if noise is None else positive(noise, "noise")
        super().__init__(graph, n_features)

    @property
    def health(self) -> Health:
        """What it has learned, and how its arithmetic is."""
        state = self.state
        return Health.of(self.samples, int(state.guarded.sum()), variances(state), state.errors)

    def _derive(self, graph: TaskGraph) -> None:
        self._prior = self._prior_of(graph)
        self._at_once = {}
        if self.forgetting.has_fixed_steps:
            self._at_once = {opens: self._steps(Clock.of_one(opens), graph.tasks) for opens in (False, True)}

    @abstractmethod
    def _prior_of(self, graph: TaskGraph) -> Prior:
        """Return what the weights start from."""

    def _steps(self, clock: Clock, tasks: tuple[TaskKey, ...]) -> Steps:
        return self.forgetting.steps(clock, self._prior, tasks)

    def _predict(self, X: Floats, tasks: Ints, mean: Floats, std: Floats) -> None:
        arguments: tuple[Any, ...] = (mean, std, *self.state[:6], X, tasks, 0, len(tasks))
        forecast_inplace(*arguments)

    def _progressive(self, batch: Batch, mean: Floats, std: Floats) -> int:
        steps = self._steps(batch.clock, self.tasks)
        run = partial(self._run, steps)
        return self._run_or_replay(run, batch, mean, std) if steps.moves.any() else run(batch, mean, std)

    def _run(self, steps: Steps, batch: Batch, mean: Floats, std: Floats) -> int:
        arguments: tuple[Any, ...] = (*batch.columns, *steps, self.robust or 0.0, mean, std)
        return progressive_inplace(self.state, *arguments)

    @classmethod
    def _check_arrays(cls, arrays: Mapping[str, Any], n_tasks: int, d: int) -> None:
        n_filters = 1 if cls.shares else n_tasks
        n, room = d * n_tasks // n_filters, np.shape(arrays["terms"])[1]
        shapes = {
            "weights": (n_filters, n),
            "covariance": (n_filters, n, n),
            "totals": (n_filters, 3),
            "terms": (n_filters, room, n),
            "losses": (n_filters, room),
            "base": (n_filters, n, n),
            "gained": (n_tasks, d, d),
            "errors": (n_tasks + 1, 3),
        }
        for name, shape in shapes.items():
            insist_numbers(arrays[name], name, shape)
        insist_integers(arrays["pending"], "pending", (n_filters,), 0, room)
        insist_integers(arrays["guarded"], "guarded", (n_filters,), 0, MOST_COUNTED)

    def _learn_at_once(self, x: Floats, y: float, position: int, weight: float, opens: bool) -> bool:
        steps = self._at_once.get(opens)
        return steps is not None and learn_one_inplace(self.state, x, y, position, weight, *steps, self.robust or 0.0)
