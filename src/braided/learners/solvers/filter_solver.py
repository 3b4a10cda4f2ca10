"""Solvers by recursive least squares filters: one filter of all tasks, or one per task."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from braided._compiled.batch import Batch, Clock, Steps
from braided._compiled.filters import Filters, covariances, forecast_inplace, fresh_filters, variances
from braided._compiled.rls_run import learn_one_inplace, progressive_inplace
from braided._compiled.rls_step import symmetric
from braided.forgetting.steps import Policy, Prior
from braided.graph import TaskGraph
from braided.learners.base import Health
from braided.learners.parts.joining import appended, errors_with_one_more, without
from braided.types import Floats, Ints
from braided.validate import LARGEST_COUNT, insist_integers, insist_numbers


@dataclass(frozen=True)
class Setting:
    """What a solver solves: the tasks, and the parameters of the learner."""

    graph: TaskGraph
    n_features: int
    penalty: float
    forgetting: Policy
    robust: float  # 0 for none
    noise: float  # 0 for none
    tolerance: float = 0.0


class FilterSolver:
    """Filters. All that was learned is in the state; the solver holds only the setting and the prior."""

    has_fixed_shapes = True
    is_joint: ClassVar[bool]  # whether one filter serves all tasks

    def __init__(self, setting: Setting, prior: Prior) -> None:
        """Take the prior of the filters."""
        self.setting, self.prior = setting, prior
        self.moves_weights = setting.forgetting.moves_weights  # so that a refused sample may have moved them
        fixed = setting.forgetting.has_fixed_steps
        self._steps = {opens: self.steps(Clock.of_one(opens)) for opens in (False, True)} if fixed else {}

    @property
    def gain_size(self) -> int:
        """The number of weights of a filter; 0 where the policy allows no gains."""
        return (
            self.setting.forgetting.has_gains
            * self.setting.n_features
            * (self.setting.graph.n_tasks if self.is_joint else 1)
        )

    def steps(self, clock: Clock) -> Steps:
        """Return what happens before each sample of a chunk."""
        return self.setting.forgetting.steps(clock, self.prior)

    def predict(self, state: Filters, X: Floats, tasks: Ints, mean: Floats, std: Floats) -> None:
        """Predict into `mean`, and into `std` unless that is empty."""
        forecast_inplace(state, X, tasks, mean, std)

    def progressive(self, state: Filters, batch: Batch, mean: Floats, std: Floats) -> int:
        """Predict and learn group by group; return how many samples could be learned."""
        steps = self.steps(batch.clock)
        if self.setting.forgetting.has_own_clocks:
            steps.fades[batch.weights == 0.0] = 1.0  # a task that is only predicted is not seen
        return progressive_inplace(state, batch, steps, self.setting.robust, mean, std)

    def learn_one(self, state: Filters, x: Floats, y: float, task: int, weight: float, opens: bool) -> bool:
        """Fast path for one sample; returns False, with the state unchanged, where it is not enough."""
        steps = self._steps.get(opens)
        if steps is None or weight == 0.0:
            return False
        return learn_one_inplace(state, x, y, task, weight, steps, self.setting.robust)

    def coef(self, state: Filters) -> Floats:
        """Return the weights (T, d)."""
        return state.weights.reshape(-1, self.setting.n_features).copy()

    def covariance(self, state: Filters) -> Floats:
        """Return P of every filter."""
        return symmetric(covariances(state))

    def health(self, state: Filters, samples: int) -> Health:
        """Return the numerical condition after that many samples."""
        return Health.of(samples, int(state.guarded.sum()), variances(state), state.errors)

    @classmethod
    def check(cls, arrays: Mapping[str, Any], n_tasks: int, d: int) -> None:
        """Refuse loaded arrays that are not the state of that many tasks."""
        n_filters = 1 if cls.is_joint else n_tasks
        n, room = d * n_tasks // n_filters, np.shape(arrays["terms"])[1]
        shapes = {"weights": (n_filters, n), "covariance": (n_filters, n, n), "base": (n_filters, n, n)}
        shapes |= {"totals": (n_filters, 3), "terms": (n_filters, room, n), "losses": (n_filters, room)}
        shapes |= {"gained": (n_tasks, d, d), "errors": (n_tasks + 1, 3)}
        for name, shape in shapes.items():
            insist_numbers(arrays[name], name, shape)
        insist_integers(arrays["pending"], "pending", (n_filters,), 0, room)
        insist_integers(arrays["guarded"], "guarded", (n_filters,), 0, LARGEST_COUNT)


@final
class SeparateSolver(FilterSolver):
    """One filter per task, for WRLS."""

    is_joint = False

    def __init__(self, setting: Setting) -> None:
        """Start every task from I/λ."""
        unit = np.ones((setting.graph.n_tasks, 1, 1))
        super().__init__(setting, Prior.of(unit, unit, setting.penalty, setting.graph.tasks))

    def steps(self, clock: Clock) -> Steps:
        """Let the whole filter of the sample's task fade, when the task does."""
        steps = super().steps(clock)
        steps.fades[:, 0] *= steps.fades[:, 1]
        steps.fades[:, 1] = 1.0
        return steps

    def start(self) -> Filters:
        """Return the state before the first sample."""
        return self._filters(self.setting.graph.n_tasks)

    def _filters(self, n_tasks: int) -> Filters:
        d, penalty = self.setting.n_features, self.setting.penalty
        each = np.tile(np.eye(d), (n_tasks, 1, 1))
        return fresh_filters(np.zeros((n_tasks, d)), each / penalty, penalty * each, d, self.setting.noise)

    def join(self, state: Filters, graph: TaskGraph) -> Filters:
        """Append a fresh filter."""
        return appended(state, self._filters(1))._replace(errors=errors_with_one_more(state.errors))

    def leave(self, state: Filters, position: int) -> Filters:
        """Drop the task's filter, and its row of the errors."""
        return without(state, position)
