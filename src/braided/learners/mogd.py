"""MOGD: online gradient descent on the graph-regularised loss, a contender of the paper.

| symbol | name      | shape  | meaning                                        |
|--------|-----------|--------|------------------------------------------------|
| λ      | `penalty` |        | weight of the graph and its ridge              |
| η₀     | `step`    |        | step length, η_i = η₀/√i at sample i           |
| A      |           | (T, T) | relation matrix of the graph                   |
| w      | `coef`    | (T, d) | the tasks' weights                             |

A sample of task t moves w_t ← w_t − 2η_i [−e x + λ Σ_j A_tj w_j]. Costs O(d · neighbours) and keeps only the weights.
It diverges, in the end with a NumericalError, if the step is too long for the data: choose it by a progressive run over
past data.

>>> import braided as bd
>>> model = bd.MOGD(bd.TaskGraph.pooled(["a", "b"]), n_features=1, penalty=0.1, step=0.25)
>>> model.learn_one([1.0], 2.0, task="a")
>>> model.coef
array([[1.],
       [0.]])

Reference: Lencione & Von Zuben, arXiv 2308.01938, Section IV-A.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np
import scipy.sparse as sparse

from braided._compiled.batch import Batch
from braided._compiled.gradient import Descent, Relation, progressive_inplace
from braided._compiled.linear import forecast_inplace
from braided.graph import TaskGraph
from braided.learners.base import Learner
from braided.learners.parts.joining import arrival, expected_weights
from braided.types import Floats, Ints
from braided.validate import LARGEST_COUNT, insist_integers, insist_numbers, positive


@final
class MOGD(Learner):
    """Multi-task online gradient descent."""

    parameters = ("penalty", "step")
    state: Descent
    _relation: Relation

    def __init__(self, graph: TaskGraph, n_features: int, penalty: float = 1.0, step: float = 0.1) -> None:
        self.penalty = positive(penalty, "penalty")
        self.step = positive(step, "step")
        super().__init__(graph, n_features)

    @property
    def coef(self) -> Floats:
        """w, the weights (T, d)."""
        return self.state.weights.copy()

    def _derive(self, graph: TaskGraph) -> None:
        A = sparse.csr_array(graph.relation) * self.penalty
        self._relation = Relation(A.indptr.astype(np.int64), A.indices.astype(np.int64), A.data)

    def _start(self) -> Descent:
        return Descent(np.zeros((self.graph.n_tasks, self.n_features)), np.zeros(1, np.int64))

    def _predict(self, X: Floats, tasks: Ints, mean: Floats, std: Floats) -> None:
        forecast_inplace(mean, self.state.weights, X, tasks)

    def _progressive(self, batch: Batch, mean: Floats, std: Floats) -> int:
        return progressive_inplace(self.state, self._relation, self.step, batch, mean)

    @classmethod
    def _check_arrays(cls, arrays: Mapping[str, Any], n_tasks: int, d: int) -> None:
        insist_numbers(arrays["weights"], "weights", (n_tasks, d))
        insist_integers(arrays["steps"], "steps", (1,), 0, LARGEST_COUNT)

    def _joined(self, graph: TaskGraph) -> Descent:
        return self.state._replace(weights=expected_weights(arrival(graph), self.state.weights))

    def _left(self, graph: TaskGraph, position: int) -> Descent:
        return self.state._replace(weights=np.delete(self.state.weights, position, axis=0))
