"""WRLS and OSLSSVR: one filter per task, what the multi-task learners are measured against.

| symbol | name         | shape     | meaning                                                   |
|--------|--------------|-----------|-----------------------------------------------------------|
| λ      | `penalty`    |           | weight of the ridge against the data                      |
| σ      | `forgetting` |           | what a task's past fades by when the task is seen         |
| w      | `coef`       | (T, d)    | the tasks' weights, Eq. 17                                |
| P      | `covariance` | (T, d, d) | a filter's covariance, starts as I/λ, Eq. 18              |
| ν      | `novelty`    |           | squared distance (Eq. 29) above which an input is news    |

>>> import braided as bd
>>> model = bd.WRLS(["north", "south"], n_features=2, penalty=0.5)
>>> model.learn_one([1.0, 2.0], 5.0, task="north")
>>> model.coef.round(3)
array([[0.909, 1.818],
       [0. , 0. ]])

Reference: Lencione & Von Zuben, arXiv 2308.01938, Eqs. 12–18 and 25–29.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

import numpy as np

from braided._compiled.dictionary import Dictionaries
from braided._compiled.filters import Filters, covariances, fresh_filters
from braided._compiled.step import noise_variance, symmetric
from braided.forgetting import Policy, Prior, Steps, own_policy
from braided.graph import TaskGraph, TaskKey
from braided.kernels import Kernel, UserKernel
from braided.learners.dictionary import KernelLearner
from braided.learners.filters import FilterLearner
from braided.learners.joining import appended, errors_with_one_more, without
from braided.types import Flags, Floats, Ints


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
        forgetting: float | Policy = 1.0,
        robust: float | None = None,
        noise: float | None = None,
    ) -> None:
        policy = own_policy(forgetting, "WRLS")
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

    def _steps(self, opens: Flags, labels: Ints, last: int, tasks: tuple[TaskKey, ...]) -> Steps:
        steps = super()._steps(opens, labels, last, tasks)
        steps.fades[:, 0] *= steps.fades[:, 1]  # the filter that sees the sample is its task's
        steps.fades[:, 1] = 1.0
        return steps

    def _joined(self, graph: TaskGraph) -> Filters:
        return appended(self.state, self._filters(1))._replace(errors=errors_with_one_more(self.state.errors))

    def _left(self, graph: TaskGraph, position: int) -> Filters:
        return without(self.state, position)  # also of the errors, whose last row is of all tasks


@final
class OSLSSVR(KernelLearner):
    """Online sparse least squares support vector regression, one dictionary per task.

    Parameters as for MTOSLSSVR; all dictionaries have room for what the largest needs.

    >>> model = OSLSSVR(["north", "south"], n_features=1, kernel="rbf")
    >>> model.learn_one([0.5], 1.0, task="north")
    >>> model.predict_one([0.5], task="north"), model.predict_one([0.5], task="south")
    (0.5, 0.0)
    """

    shares = False

    def __init__(
        self,
        tasks: Iterable[TaskKey] | TaskGraph,
        n_features: int,
        kernel: str | Kernel | UserKernel = "linear",
        penalty: float = 1.0,
        novelty: float = 1e-3,
        budget: int | None = None,
        novelty_relative: bool = False,
        coherence: float = 1.0,
        forgetting: float | Policy = 1.0,
        robust: float | None = None,
        noise: float | None = None,
    ) -> None:
        given = (kernel, penalty, novelty, budget, novelty_relative, coherence, forgetting, robust, noise)
        super().__init__(TaskGraph.independent(tasks), n_features, *given)

    def _start(self) -> Dictionaries:
        n_tasks = self.graph.n_tasks
        return self._empty(n_tasks, np.ones((1, 1)), _own_dictionaries(n_tasks))

    def _joined(self, graph: TaskGraph) -> Dictionaries:
        places, capacity = _own_dictionaries(graph.n_tasks), self.state.inputs.shape[1]
        new = self._empty(1, self.state.prior, places[-1:], capacity)
        errors = errors_with_one_more(self.state.errors)
        return appended(self.state, new)._replace(prior=self.state.prior, places=places, errors=errors)

    def _left(self, graph: TaskGraph, position: int) -> Dictionaries:
        own = {name: array for name, array in self.state._asdict().items() if name not in ("prior", "places")}
        rest = {name: np.delete(array, position, axis=0) for name, array in own.items()}
        return self.state._replace(**rest, places=_own_dictionaries(graph.n_tasks))


def _own_dictionaries(n_tasks: int) -> Ints:
    return np.stack([np.arange(n_tasks), np.zeros(n_tasks, np.int64)], axis=1)
