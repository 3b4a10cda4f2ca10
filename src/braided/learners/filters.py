"""What the two recursive least squares learners share: filters, policies of forgetting, and the robust step."""

from __future__ import annotations

from functools import partial
from typing import Any

from braided._compiled.rls import Filters, predict, progressive_inplace, variances
from braided.forgetting import Policy, Prior, Steps, steps_of
from braided.graph import TaskGraph
from braided.learners.base import Health, Learner
from braided.learners.samples import NO_ROUND, Batch
from braided.types import Floats, Ints
from braided.validate import positive


class FilterLearner(Learner):
    """A learner on one filter or several; says how to forecast and learn, not how tasks and filters relate."""

    parameters = ("penalty", "forgetting", "robust", "noise")
    has_std = True
    state: Filters
    _prior: Prior

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
        return Health.of(
            self.samples, int(state.guarded.sum()), variances(state.covariance, state.totals), state.errors
        )

    def _steps(self, batch: Batch) -> Steps:
        return steps_of(self.forgetting, self._prior, self.tasks, *batch.clock, self._last_round, NO_ROUND)

    def _predict(self, X: Floats, tasks: Ints, mean: Floats, std: Floats) -> None:
        predict(self.state, X, tasks, mean, std)

    def _progressive(self, batch: Batch, mean: Floats, std: Floats) -> int:
        steps = self._steps(batch)
        run = partial(self._run, steps)
        return self._run_or_replay(run, batch, mean, std) if steps.moves.any() else run(batch, mean, std)

    def _run(self, steps: Steps, batch: Batch, mean: Floats, std: Floats) -> int:
        arguments: tuple[Any, ...] = (*batch.columns, *steps, self.robust or 0.0, mean, std)
        return progressive_inplace(self.state, *arguments)
