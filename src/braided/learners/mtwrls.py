"""MTWRLS: multi-task weighted recursive least squares, Algorithm 1 of the paper.

One recursive least squares filter on the stacked weights of all tasks, whose starting covariance carries the graph:
after every sample it holds the exact solution of the graph-regularised problem.

| symbol | name         | shape    | meaning                                                      |
|--------|--------------|----------|--------------------------------------------------------------|
| λ      | `penalty`    |          | weight of the graph and its ridge against the data           |
| σ      | `forgetting` |          | what the past fades by, per sample (or a policy)             |
| A      | `relation`   | (T, T)   | of the graph                                                 |
| w      | `coef`       | (T, d)   | the tasks' weights, Eq. 17                                   |
| P      | `covariance` | (dT, dT) | inverse of the information, starts as (λA)⁻¹ ⊗ I, Eq. 18     |
| s²     | `noise_variance` |      | minimum of the objective over the effective number of samples|

Costs O(d²T²) per sample. A forecast's variance is s² (1 + z'Pz); while samples are few, s² is as good as the prior.

>>> import braided as bd
>>> graph = bd.TaskGraph([[0, 1], [1, 0]], tasks=["north", "south"], ridge=0.1)
>>> model = bd.MTWRLS(graph, n_features=2, penalty=0.5)
>>> model.learn_one([1.0, 2.0], 5.0, task="north")
>>> round(model.predict_one([1.0, 2.0], task="south"), 3)  # never seen, and yet no longer zero
4.46
>>> model.coef.round(3)
array([[0.981, 1.963],
       [0.892, 1.784]])

Reference: Lencione & Von Zuben, arXiv 2308.01938, Algorithm 1.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np

from braided._compiled.rls import (
    COUNT,
    RESIDUAL,
    SCALE,
    Filters,
    fresh_filters,
    noise_variance,
    predict,
    progressive_inplace,
    symmetric,
    variances,
)
from braided.forgetting import Policy, Prior, as_forgetting, steps_of
from braided.graph import TaskGraph
from braided.learners.base import Health, Learner
from braided.learners.joining import arrival, enlarge
from braided.learners.samples import NO_ROUND, Batch
from braided.matrices import inverse
from braided.types import Floats, Ints
from braided.validate import positive


@final
class MTWRLS(Learner):
    """Multi-task weighted recursive least squares.

    Parameters
    ----------
    graph
        How alike the tasks are.
    n_features
        d, the length of every input.
    penalty
        λ, above 0; how much the graph weighs against the data. It depends on the units and the noise of the data, so
        choose it by a progressive run over past data, among powers of ten.
    forgetting
        A number in (0, 1] means the paper's: the past fades by it at every sample, of any task, so by its T-th power
        per round. A policy of `braided.forgetting` says otherwise: by round, by the clock, or without losing the prior
        (`Restore`, `Directional`, `Drift`). Strong exponential forgetting also fades the prior, and with it the
        coupling between the tasks; where it makes the arithmetic break down, a NumericalError says so.
    """

    parameters = ("penalty", "forgetting")
    has_std = True
    state: Filters

    def __init__(
        self, graph: TaskGraph, n_features: int, penalty: float = 1.0, forgetting: float | Policy = 1.0
    ) -> None:
        self.penalty = positive(penalty, "penalty")
        self.forgetting = as_forgetting(forgetting)
        super().__init__(graph, n_features)

    @property
    def coef(self) -> Floats:
        """w, the weights (T, d)."""
        return self.state.weights.reshape(-1, self.n_features).copy()

    @property
    def health(self) -> Health:
        """What it has learned, and how its arithmetic is."""
        P = variances(self.state)
        spread = float(P.max() / P.min())
        return Health(self.samples, int(self.state.guarded.sum()), float(P.max()), spread)

    @property
    def covariance(self) -> Floats:
        """P, the covariance (dT, dT) of the stacked weights, up to the noise."""
        return symmetric(self.state.covariance[0]) * self.state.totals[0, SCALE]

    @property
    def noise_variance(self) -> float:
        """s², the estimated variance of the noise; infinite before the first sample."""
        return float(noise_variance(self.state.totals)[0])

    def _derive(self, graph: TaskGraph) -> None:
        self._prior = Prior.of(graph.inverse[None], graph.dense_relation[None], self.penalty)

    def _start(self) -> Filters:
        each = np.eye(self.n_features)
        covariance, information = (np.kron(part[0], each) for part in self._prior[:2])
        return _filter(np.zeros((self.graph.n_tasks, self.n_features)), covariance, information)

    def _predict(self, X: Floats, tasks: Ints, mean: Floats, std: Floats) -> None:
        predict(self.state, X, tasks, mean, std)

    def _progressive(self, batch: Batch, mean: Floats, std: Floats) -> int:
        steps = steps_of(self.forgetting, self._prior, self.tasks, *batch.clock, self._last_round, NO_ROUND)
        arguments: tuple[Any, ...] = (*batch.columns, *steps, mean, std)
        return progressive_inplace(self.state, *arguments)

    def _joined(self, graph: TaskGraph) -> Filters:
        """The new task's edges and ridge enter at full strength, however much of the first prior has faded."""
        P, weights, grown = enlarge(self.covariance, self.coef, arrival(graph), self.penalty)
        totals = self.state.totals[0]
        return _filter(weights, P, inverse(P), totals[RESIDUAL] + grown, totals[COUNT])

    def _left(self, graph: TaskGraph, position: int) -> Filters:
        """Marginalise: what the task has taught the others stays, and so do their forecasts."""
        d = self.n_features
        stay = np.delete(np.arange(self.state.weights.size), np.s_[position * d : (position + 1) * d])
        totals = self.state.totals[0]
        P = self.covariance[np.ix_(stay, stay)]
        return _filter(np.delete(self.coef, position, axis=0), P, inverse(P), totals[RESIDUAL], totals[COUNT])


def _filter(weights: Floats, P: Floats, information: Floats, residual: float = 0.0, count: float = 0.0) -> Filters:
    state = fresh_filters(weights.reshape(1, -1), P[None], information[None], weights.shape[1])
    state.totals[0, [RESIDUAL, COUNT]] = residual, count
    return state
