"""OSLSSVR: online sparse least squares support vector regression, one dictionary per task.

| symbol | name      | meaning                                                                 |
|--------|-----------|-------------------------------------------------------------------------|
| λ      | `penalty` | weight of the prior against the data                                    |
| ν      | `novelty` | squared distance (Eq. 29) above which an input enters the dictionary    |

>>> import braided as bd
>>> model = bd.OSLSSVR(["north", "south"], n_features=1, kernel="rbf")
>>> model.learn_one([0.5], 1.0, task="north")
>>> model.predict_one([0.5], task="north"), model.predict_one([0.5], task="south")
(0.5, 0.0)

Reference: Lencione & Von Zuben, arXiv 2308.01938, Eqs. 25–29.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

import numpy as np

from braided._compiled.dictionary import Dictionaries
from braided.forgetting import Forgetting, Policy
from braided.graph import TaskGraph, TaskKey
from braided.kernels import Kernel, UserKernel
from braided.learners.parts.joining import appended, errors_with_one_more
from braided.learners.parts.kernel_learner import KernelLearner
from braided.types import Ints


@final
class OSLSSVR(KernelLearner):
    """Online sparse least squares support vector regression, one dictionary per task.

    Parameters as for MTOSLSSVR; all dictionaries have the capacity of the largest.
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
        *,
        novelty_relative: bool = False,
        coherence: float = 1.0,
        forgetting: float | Policy | Forgetting = 1.0,
        robust: float | None = None,
        noise: float | None = None,
    ) -> None:
        given = TaskGraph.independent(tasks), n_features, kernel, penalty, novelty, budget
        super().__init__(
            *given,
            novelty_relative=novelty_relative,
            coherence=coherence,
            forgetting=forgetting,
            robust=robust,
            noise=noise,
        )

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
