"""MADMM: the online alternating direction method of multipliers, a contender of the paper.

| symbol | name         | shape     | meaning                                                     |
|--------|--------------|-----------|-------------------------------------------------------------|
| λ      | `penalty`    |           | weight of the graph and its ridge                           |
| ρ      | `rho`        |           | how strongly the two copies of the weights are tied         |
| σ      | `forgetting` |           | factor by which a task's data fade at each of its samples   |
| W      | `coef`       | (T, d)    | weights that fit the data, w_t = (R_t + ρI)⁻¹(p_t + ρ(z_t − u_t)) |
| Z, U   |              | (T, d)    | weights that fit the graph, ρ(λA + ρI)⁻¹(W + U); duals      |

It iterates once per round in `learn_many` and `progressive` with `rounds=`, and otherwise once per sample. So it lags
behind the solution, which MTWRLS holds exactly, and converges to it when no new data come. Without forgetting, a sample
of weight 0 is an iteration without new data.

>>> import braided as bd
>>> graph = bd.TaskGraph.pooled(["a", "b"])
>>> madmm, exact = bd.MADMM(graph, n_features=1, rho=0.5), bd.MTWRLS(graph, n_features=1)
>>> madmm.learn_one([1.0], 2.0, task="a"); exact.learn_one([1.0], 2.0, task="a")
>>> for _ in range(200):
...     madmm.learn_one([1.0], 2.0, task="a", weight=0)
>>> bool(abs(madmm.coef - exact.coef).max() < 1e-12)
True

References: Lencione & Von Zuben, arXiv 2308.01938, Section IV-A; Cao & Liu, arXiv 1702.03366.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np

from braided._compiled.admm import Consensus, progressive_inplace
from braided._compiled.batch import Batch, Clock
from braided._compiled.linear import forecast_inplace
from braided.forgetting import Forgetting, Policy
from braided.forgetting.custom import as_policy
from braided.forgetting.steps import NO_PRIOR
from braided.graph import TaskGraph
from braided.learners.base import Learner
from braided.learners.parts.joining import appended, arrival, expected_weights, without
from braided.matrices import inverse
from braided.types import Floats, Ints
from braided.validate import insist_numbers, positive


@final
class MADMM(Learner):
    """Multi-task online ADMM; O(d³) per sample and O(d²T + dT²) per round."""

    parameters = ("penalty", "rho", "forgetting")
    state: Consensus
    _smoother: Floats
    _fades_of_one: dict[bool, Floats]  # of a sample that opens a round or not, where they do not depend on time

    def __init__(
        self,
        graph: TaskGraph,
        n_features: int,
        penalty: float = 1.0,
        rho: float = 1.0,
        forgetting: float | Policy | Forgetting = 1.0,
    ) -> None:
        self.penalty = positive(penalty, "penalty")
        self.rho = positive(rho, "rho")
        self.forgetting = as_policy(forgetting, "MADMM", own_clocks=True, has_covariance=False)
        super().__init__(graph, n_features)

    @property
    def coef(self) -> Floats:
        """W, the weights (T, d)."""
        return self.state.weights.copy()

    def _derive(self, graph: TaskGraph) -> None:
        self._smoother = inverse(self.penalty / self.rho * graph.dense_relation + np.eye(graph.n_tasks))
        known = (False, True) if self.forgetting.has_fixed_steps else ()
        self._fades_of_one = {opens: self._fades(Clock.of_one(opens)) for opens in known}

    def _start(self) -> Consensus:
        return self._empty(self.graph.n_tasks)

    def _empty(self, n_tasks: int) -> Consensus:
        d = self.n_features
        moments, rows = np.zeros((n_tasks, d, d)), np.zeros((n_tasks, d))
        factors = np.tile(np.sqrt(self.rho) * np.eye(d), (n_tasks, 1, 1))
        return Consensus(moments, rows, factors, rows.copy(), rows.copy(), rows.copy())

    def _predict(self, X: Floats, tasks: Ints, mean: Floats, std: Floats) -> None:
        forecast_inplace(mean, self.state.weights, X, tasks)

    def _progressive(self, batch: Batch, mean: Floats, std: Floats) -> int:
        fades = self._fades_of_one.get(bool(batch.opens[0])) if len(batch.y) == 1 else None  # the fast path
        if fades is None:
            fades = self._fades(batch.clock)
        return progressive_inplace(self.state, self._smoother, self.rho, batch, fades, mean)

    def _fades(self, clock: Clock) -> Floats:
        """Return the factor by which a task's data fade at each sample."""
        return self.forgetting.steps(clock, NO_PRIOR).fades.prod(axis=1)

    @classmethod
    def _check_arrays(cls, arrays: Mapping[str, Any], n_tasks: int, d: int) -> None:
        for name in Consensus._fields:
            square = name in ("moments", "factors")
            insist_numbers(arrays[name], name, (n_tasks, d, d) if square else (n_tasks, d))

    def _joined(self, graph: TaskGraph) -> Consensus:
        arrived = arrival(graph)
        weights, copies = (expected_weights(arrived, W) for W in (self.state.weights, self.state.copies))
        return appended(self.state, self._empty(1))._replace(weights=weights, copies=copies)

    def _left(self, graph: TaskGraph, position: int) -> Consensus:
        return without(self.state, position)
