"""WRLS: weighted recursive least squares, one filter per task; the single-task baseline.

| symbol | name         | shape     | meaning                                                   |
|--------|--------------|-----------|-----------------------------------------------------------|
| λ      | `penalty`    |           | weight of the ridge against the data                      |
| σ      | `forgetting` |           | factor by which a task's past fades when the task is seen |
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

from collections.abc import Iterable, Mapping
from typing import Any, final

from braided._compiled.rls_step import noise_variance
from braided.forgetting import Forgetting, Policy
from braided.forgetting.custom import as_policy
from braided.graph import TaskGraph, TaskKey
from braided.learners.parts.filter_learner import FilterLearner
from braided.learners.solvers import SeparateSolver, Setting, Solver
from braided.types import Floats


@final
class WRLS(FilterLearner):
    """Weighted recursive least squares, one filter per task; O(d²) per sample.

    `tasks` are keys, or a graph, whose edges are ignored; the other parameters are those of MTWRLS.
    """

    shares = False

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
    def noise_variance(self) -> Floats:
        """The estimated variance (T,) of each task's noise; infinite before its first sample."""
        return noise_variance(self.state.totals)

    def _solver_of(self, setting: Setting) -> Solver:
        return SeparateSolver(setting)

    @classmethod
    def _check_arrays(cls, arrays: Mapping[str, Any], n_tasks: int, d: int) -> None:
        SeparateSolver.check(arrays, n_tasks, d)
