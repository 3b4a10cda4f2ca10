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

from typing import Literal, TypeAlias, final, get_args

import numpy as np
import scipy.linalg

from braided._compiled.filters import Filters, covariances, fresh_filters
from braided._compiled.guard import FLOOR
from braided._compiled.step import COUNT, RESIDUAL, SCALE, noise_variance, symmetric
from braided.forgetting import Directional, Policy, Prior, as_forgetting
from braided.graph import TaskGraph
from braided.learners.filters import FilterLearner
from braided.learners.joining import arrival, enlarge, errors_with_one_more
from braided.types import Floats
from braided.validate import choice

Solver: TypeAlias = Literal["auto", "dense", "blocked"]
BLOCKED_FROM = 64  # weights
ROOM = ((512, 32), (256, 16), (0, 8))  # weights from which so many samples go into P at once


@final
class MTWRLS(FilterLearner):
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
        coupling between the tasks; a guard (see `Exponential`) keeps the arithmetic sound.
    robust
        k, above 0: an innovation of more than k standard deviations, by those of its task so far, is given the weight
        that makes it one of k. Then no sample, however wild, moves any forecast by more than k of that forecast's own
        standard deviations (without the noise). 4 or 5 is usual; None takes every value as it is. The very first sample
        has nothing to be compared with, unless `noise` is given.
    noise
        The standard deviation that the noise is expected to have, until samples tell.
    solver
        "dense" touches P at every sample; "blocked" once for several, which is faster from about dT = 64 on and gives
        the same forecasts to rounding; "auto" chooses, and `uses` tells what.
    """

    parameters = (*FilterLearner.parameters, "solver")

    def __init__(
        self,
        graph: TaskGraph,
        n_features: int,
        penalty: float = 1.0,
        forgetting: float | Policy = 1.0,
        robust: float | None = None,
        noise: float | None = None,
        solver: Solver = "auto",
    ) -> None:
        self.solver = choice(solver, "solver", get_args(Solver))
        super().__init__(graph, n_features, penalty, as_forgetting(forgetting), robust, noise)

    @property
    def uses(self) -> str:
        """The solver in use."""
        if self.solver == "auto":
            return "blocked" if self.graph.n_tasks * self.n_features >= BLOCKED_FROM else "dense"
        return self.solver

    @property
    def coef(self) -> Floats:
        """w, the weights (T, d)."""
        return self.state.weights.reshape(-1, self.n_features).copy()

    @property
    def covariance(self) -> Floats:
        """P, the covariance (dT, dT) of the stacked weights, up to the noise."""
        return symmetric(covariances(self.state)[0])

    @property
    def noise_variance(self) -> float:
        """s², the estimated variance of the noise; infinite before the first sample."""
        return float(noise_variance(self.state.totals)[0])

    def _prior_of(self, graph: TaskGraph) -> Prior:
        return Prior.of(graph.inverse[None], graph.dense_relation[None], self.penalty)

    def _start(self) -> Filters:
        each = np.eye(self.n_features)
        covariance, information = (np.kron(part[0], each) for part in self._prior[:2])
        return self._filter(np.zeros((self.graph.n_tasks, self.n_features)), covariance, information)

    def _information(self) -> Floats:
        """The inverse of P where the policy is guarded; elsewhere `base` is not kept up, nor used."""
        state = self.state
        return (state.base[0] + scipy.linalg.block_diag(*state.gained)) / state.totals[0, SCALE]

    def _joined(self, graph: TaskGraph) -> Filters:
        """The new task's edges and ridge enter at full strength, however much of the first prior has faded."""
        P, weights, grown = enlarge(self.covariance, self.coef, arrival(graph), self.penalty)
        d = self.n_features
        added = graph.dense_relation - np.pad(self.graph.dense_relation, (0, 1))
        information = np.pad(self._information(), (0, d)) + self.penalty * np.kron(added, np.eye(d))
        fades = isinstance(self.forgetting, Directional)  # its evidence does, the objective does not
        errors = errors_with_one_more(self.state.errors)
        return self._changed(weights, P, information, errors, 0.0 if fades else grown)

    def _left(self, graph: TaskGraph, position: int) -> Filters:
        """Marginalise: what the task has taught the others stays, and so do their forecasts."""
        d, information = self.n_features, self._information()
        gone = np.arange(position * d, (position + 1) * d)
        stay = np.delete(np.arange(len(information)), gone)
        shared, own = information[np.ix_(stay, gone)], information[np.ix_(gone, gone)]
        own += FLOOR * self._prior.information[0, position, position] * np.eye(d)
        information = information[np.ix_(stay, stay)] - shared @ np.linalg.solve(own, shared.T)
        weights, errors = (np.delete(rows, position, axis=0) for rows in (self.coef, self.state.errors))
        return self._changed(weights, self.covariance[np.ix_(stay, stay)], information, errors)

    def _changed(self, weights: Floats, P: Floats, information: Floats, errors: Floats, grown: float = 0.0) -> Filters:
        state = self._filter(weights, P, information)
        state.totals[0, [RESIDUAL, COUNT]] = self.state.totals[0, [RESIDUAL, COUNT]] + [grown, 0.0]
        return state._replace(errors=errors, guarded=self.state.guarded.copy())

    def _filter(self, weights: Floats, P: Floats, information: Floats) -> Filters:
        given = weights.reshape(1, -1), P[None], information[None]
        room = 0 if self.uses == "dense" else next(room for least, room in ROOM if weights.size >= least)
        return fresh_filters(*given, self.n_features, self.noise or 0.0, room)
