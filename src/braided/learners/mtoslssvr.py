"""MTOSLSSVR: multi-task online sparse least squares support vector regression, Algorithm 2 of the paper.

Kernel recursive least squares with the multi-task kernel k((x,s),(x',t)) = A⁻¹[s,t] κ(x,x'), on a dictionary of inputs.
An input joins the dictionary only if those in it can't express it.

| symbol | name           | shape  | meaning                                                        |
|--------|----------------|--------|----------------------------------------------------------------|
| λ      | `penalty`      |        | weight of the graph and its ridge against the data             |
| ν      | `novelty`      |        | squared distance (Eq. 29) above which an input joins           |
| D      | `dictionary`   | (m, d) | the inputs that joined, and their tasks                        |
| α      | `dual_coef`    | (m,)   | their weights                                                  |
| K = U'U|                | (m, m) | their kernel matrix; U is what is stored                       |
| P̃      |                | (m, m) | (Φ'Φ + λI)⁻¹ in the coordinates φ = U⁻ᵀk; the paper's P is U'P̃U|

With the linear kernel and ν → 0 it equals MTWRLS without forgetting. Costs O(m² + dm) per sample.

>>> import braided as bd
>>> graph = bd.TaskGraph([[0, 1], [1, 0]], tasks=["north", "south"], ridge=0.1)
>>> model = bd.MTOSLSSVR(graph, n_features=2, kernel=bd.kernels.rbf(width=2.0), penalty=0.5)
>>> model.learn_one([1.0, 2.0], 5.0, task="north")
>>> round(model.predict_one([1.0, 2.0], task="south"), 3)
4.149

References: Lencione & Von Zuben, arXiv 2308.01938, Algorithm 2; Engel, Mannor & Meir, The kernel recursive least
squares algorithm, IEEE Transactions on Signal Processing 52 (2004), for the test of approximate linear dependence.
"""

from __future__ import annotations

from typing import final

import numpy as np

from braided._compiled.dictionary import Dictionaries
from braided._compiled.rls_step import RESIDUAL
from braided.graph import TaskGraph, TaskKey
from braided.learners.parts.joining import arrival, enlarge, errors_with_one_more
from braided.learners.parts.kernel_learner import KernelLearner, dual_weights, with_prior
from braided.types import Floats


@final
class MTOSLSSVR(KernelLearner):
    """Multi-task online sparse least squares support vector regression.

    Parameters
    ----------
    graph, n_features, penalty
        As for MTWRLS.
    kernel
        "linear", "rbf" (of width √(d/2), for standardised features), a kernel of `braided.kernels`, or a Python
        function(X, x), which is slower and can't be saved.
    novelty
        ν, 0 or more, in the units of k(x, x); a share of k(x, x) with `novelty_relative=True`.
    budget
        The largest size of the dictionary. Beyond it, the element whose removal changes the forecasts of recent inputs
        (ten times as many as the budget) least is dropped, with all that it alone could express.
    coherence
        In (0, 1]: an input whose normalised kernel with an element exceeds this does not join, however novel it is.
        1 leaves it to the novelty.
    forgetting
        `Restore(ρ)`, towards the prior once a round, or `Directional(σ)`; 1 for none.
    robust, noise
        As for MTWRLS.
    """

    @property
    def dictionary(self) -> tuple[Floats, list[TaskKey | None]]:
        """The inputs in the dictionary, and their tasks; None for a task that has left."""
        m = int(self.state.sizes[0])
        tasks = dict(zip(self.state.places[:, 1].tolist(), self.tasks, strict=True))
        return self.state.inputs[0, :m].copy(), [tasks.get(row) for row in self.state.rows[0, :m].tolist()]

    @property
    def dual_coef(self) -> Floats:
        """α, the weights of the dictionary's inputs."""
        return dual_weights(self.state, 0)

    def _start(self) -> Dictionaries:
        places = np.stack([np.zeros(self.graph.n_tasks), np.arange(self.graph.n_tasks)], axis=1)
        return self._empty(1, self.graph.inverse, places.astype(np.int64))

    def _joined(self, graph: TaskGraph) -> Dictionaries:
        """The samples stay as the dictionary represents them, and are refitted with the enlarged prior."""
        arrived = arrival(graph)
        rows = self.state.places[:, 1]
        known = len(self.state.prior)  # with the rows of tasks that left
        prior, *_ = enlarge(self.state.prior, np.zeros((known, 1)), arrived._replace(near=rows[arrived.near]), 1.0)
        places = np.vstack([self.state.places, [0, known]])
        errors = errors_with_one_more(self.state.errors)
        state = with_prior(self.state, self.penalty, self._kernel, prior, places, errors)
        if not self.forgetting.has_objective:
            state.totals[0, RESIDUAL] = self.state.totals[0, RESIDUAL]
        return state

    def _left(self, graph: TaskGraph, position: int) -> Dictionaries:
        """Marginalise: the task's inputs stay in the dictionary, as forecasts of other tasks depend on them."""
        places = np.delete(self.state.places, position, axis=0)
        rows = self.state.rows.copy()
        m = int(self.state.sizes[0])
        needed = np.union1d(places[:, 1], rows[0, :m])
        places[:, 1] = np.searchsorted(needed, places[:, 1])
        rows[0, :m], rows[0, m:] = np.searchsorted(needed, rows[0, :m]), 0
        errors = np.delete(self.state.errors, position, axis=0)
        prior = self.state.prior[np.ix_(needed, needed)]
        return self.state._replace(places=places, rows=rows, prior=prior, errors=errors)
