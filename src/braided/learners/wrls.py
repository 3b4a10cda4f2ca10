"""WRLS: weighted recursive least squares, one filter per task; what multi-task learners are measured against.

| symbol | name         | shape     | meaning                                                   |
|--------|--------------|-----------|-----------------------------------------------------------|
| λ      | `penalty`    |           | weight of the ridge against the data                      |
| σ      | `forgetting` |           | what a task's past fades by when the task is seen         |
| w      | `coef`       | (T, d)    | the tasks' weights, Eq. 17                                |
| P      | `covariance` | (T, d, d) | a filter's covariance, starts as I/λ, Eq. 18              |

>>> import braided as bd
>>> model = bd.WRLS(["north", "south"], n_features=2, penalty=0.5)
>>> model.learn_one([1.0, 2.0], 5.0, task="north")
>>> model.coef.round(3)
array([[0.909, 1.818],
       [0. , 0. ]])

Reference: Lencione & Von Zuben, arXiv 2308.01938, Eqs. 12–18.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

import numpy as np

from braided._compiled.batch import Clock, Steps
from braided._compiled.filters import Filters, covariances, fresh_filters
from braided._compiled.step import noise_variance, symmetric
from braided.forgetting import Forgetting, Policy, Prior, as_policy
from braided.graph import TaskGraph, TaskKey
from braided.learners.parts.filters import FilterLearner
from braided.learners.parts.joining import appended, errors_with_one_more, without
from braided.types import Floats


@final
class WRLS(FilterLearner):
    """Weighted recursive least squares, one filter per task; O(d²) per sample.

    `tasks` are keys, or a graph whose keys are taken and whose edges are not; the rest is as for MTWRLS.
    """

    shares = False
    state: Filters

    def __init__(
        self,
        tasks: Iterable[TaskKey] | TaskGraph,
        n_features: int,
        penalty: float = 1.0,
        forgetting: float | Policy | Forgetting = 1.0,
        robust: float | None = None,
        noise: float | None = None,
    ) -> None:
        policy = as_policy(forgetting, "WRLS", own_clocks=True)
        super().__init__(TaskGraph.independent(tasks), n_features, penalty, policy, robust, noise)

    @property
    def coef(self) -> Floats:
        """w, the weights (T, d)."""
        return self.state.weights.copy()

    @property
    def covariance(self) -> Floats:
        """P, the filters' covariances (T, d, d)."""
        return symmetric(covariances(self.state))

    @property
    def noise_variance(self) -> Floats:
        """The estimated variance (T,) of each task's noise; infinite before its first sample."""
        return noise_variance(self.state.totals)

    def _filters(self, n_tasks: int) -> Filters:
        d = self.n_features
        each = np.tile(np.eye(d), (n_tasks, 1, 1))
        return fresh_filters(np.zeros((n_tasks, d)), each / self.penalty, self.penalty * each, d, self.noise or 0.0)

    def _prior_of(self, graph: TaskGraph) -> Prior:
        unit = np.ones((graph.n_tasks, 1, 1))
        return Prior.of(unit, unit, self.penalty)

    def _start(self) -> Filters:
        return self._filters(self.graph.n_tasks)

    def _steps(self, clock: Clock, tasks: tuple[TaskKey, ...]) -> Steps:
        steps = super()._steps(clock, tasks)
        steps.fades[:, 0] *= steps.fades[:, 1]  # the filter that sees the sample is its task's
        steps.fades[:, 1] = 1.0
        return steps

    def _joined(self, graph: TaskGraph) -> Filters:
        return appended(self.state, self._filters(1))._replace(errors=errors_with_one_more(self.state.errors))

    def _left(self, graph: TaskGraph, position: int) -> Filters:
        return without(self.state, position)  # also of the errors, whose last row is of all tasks
