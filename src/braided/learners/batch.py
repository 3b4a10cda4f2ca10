"""GraphRidge: the batch solution of the graph-regularised problem, solved anew when it is asked for.

| symbol | name        | shape     | meaning                                             |
|--------|-------------|-----------|-----------------------------------------------------|
| λ      | `penalty`   |           | weight of the graph and its ridge against the data  |
| Φ_t    |             | (T, d, d) | sum of x x' of task t                               |
| ψ_t    |             | (T, d)    | sum of y x of task t                                |
| w      | `coef`      | (T, d)    | (blkdiag Φ_t + λA ⊗ I)⁻¹ ψ, Eq. 24                  |

Holds moments only, never the samples. A dense graph is solved by Cholesky, a sparse one by a sparse factorisation
(SciPy's SuperLU, in symmetric mode). Where every sample changes the answer, MTWRLS gives the same one faster.

>>> import braided as bd
>>> graph = bd.TaskGraph([[0, 1], [1, 0]], tasks=["north", "south"], ridge=0.1)
>>> model = bd.GraphRidge(graph, n_features=2, penalty=0.5)
>>> model.learn_many([[1.0, 2.0]], [5.0], ["north"])
>>> model.coef.round(3)
array([[0.981, 1.963],
       [0.892, 1.784]])

Reference: Lencione & Von Zuben, arXiv 2308.01938, Eq. 24.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, final

import numpy as np
import scipy.linalg
import scipy.sparse as sparse
from scipy.sparse.linalg import splu

from braided.errors import NumericalError
from braided.graph import TaskGraph
from braided.learners.base import Learner
from braided.learners.joining import appended, without
from braided.learners.samples import Batch
from braided.types import Floats, Ints
from braided.validate import positive

Solve = Callable[[Floats], Floats]
LARGEST = 1e290  # of an addend, so that sums stay finite


class Moments(NamedTuple):
    """State of the batch learner."""

    inputs: Floats  # (T, d, d) Φ
    targets: Floats  # (T, d) ψ
    totals: Floats  # (T, 2) sums of weights and of weighted y²


@final
class GraphRidge(Learner):
    """Batch graph-regularised ridge regression."""

    parameters = ("penalty",)
    has_std = True
    state: Moments
    _solution: tuple[Moments, Solve, Floats] | None = None

    def __init__(self, graph: TaskGraph, n_features: int, penalty: float = 1.0) -> None:
        self.penalty = positive(penalty, "penalty")
        super().__init__(graph, n_features)

    @property
    def coef(self) -> Floats:
        """w, the weights (T, d)."""
        return self._solved()[1].copy()

    @property
    def noise_variance(self) -> float:
        """The estimated variance of the noise; infinite before the first sample."""
        total, squares = self.state.totals.sum(axis=0)
        residual = squares - float((self.state.targets * self._solved()[1]).sum())
        return float(max(residual, 0.0) / total) if total > 0 else np.inf

    def _start(self) -> Moments:
        return self._empty(self.graph.n_tasks)

    def _empty(self, n_tasks: int) -> Moments:
        d = self.n_features
        return Moments(np.zeros((n_tasks, d, d)), np.zeros((n_tasks, d)), np.zeros((n_tasks, 2)))

    def _solved(self) -> tuple[Solve, Floats]:
        """Return a solver of the system, and the weights; both kept until the next sample."""
        if self._solution is None or self._solution[0] is not self.state:
            try:
                self._solution = self._solve()
            except (np.linalg.LinAlgError, RuntimeError, ValueError) as error:
                raise NumericalError(f"GraphRidge: {error}: scale the features to about 1, or raise penalty") from error
        return self._solution[1:]

    def _solve(self) -> tuple[Moments, Solve, Floats]:
        A, d = self.graph.relation, self.n_features
        if self.graph.is_sparse:
            data = sparse.block_diag(list(self.state.inputs), format="csc")
            system = (data + sparse.kron(self.penalty * A, sparse.eye_array(d))).tocsc()
            options = {"SymmetricMode": True}
            solve: Solve = splu(system, "MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options).solve
        else:
            dense = np.kron(self.penalty * A, np.eye(d))
            each = np.arange(len(A))
            dense.reshape(len(A), d, len(A), d)[each, :, each, :] += self.state.inputs
            factor, lower = scipy.linalg.cho_factor(dense, lower=True)
            share, _ = scipy.linalg.lapack.dpocon(factor, np.linalg.norm(dense, 1), uplo="L")
            if share < 1e-15:
                raise np.linalg.LinAlgError(f"the system is nearly singular (reciprocal condition {share:.0e})")
            solve = partial(scipy.linalg.cho_solve, (factor, lower))
        return self.state, solve, solve(self.state.targets.ravel()).reshape(-1, d)

    def _predict(self, X: Floats, tasks: Ints, mean: Floats, std: Floats) -> None:
        solve, coef = self._solved()
        mean[:] = (X * coef[tasks]).sum(axis=1)
        if not std.size:
            return
        noise = self.noise_variance
        d = self.n_features
        for i, t in enumerate(tasks):
            z = np.zeros(coef.size)
            z[t * d : (t + 1) * d] = X[i]
            std[i] = np.sqrt(noise * (1.0 + z @ solve(z)))

    def _progressive(self, batch: Batch, mean: Floats, std: Floats) -> int:
        first = 0
        for end in batch.ends:
            try:
                self._predict(batch.X[first:end], batch.tasks[first:end], mean[first:end], std[first:end])
            except NumericalError:
                return first
            learned = self._add(batch, first, end)
            if learned < end:
                return learned
            first = int(end)
        return first

    def _absorb(self, batch: Batch) -> int:
        return self._add(batch, 0, len(batch.X))

    def _add(self, batch: Batch, first: int, end: int) -> int:
        """Add samples to the moments, up to one whose squares overflow; return where the first one not added is."""
        with np.errstate(over="ignore"):
            largest = np.maximum(np.abs(batch.X[first:end]).max(axis=1), np.abs(batch.y[first:end]))
            overflows = largest * largest * np.maximum(batch.weights[first:end], 1.0) > LARGEST
        end = first + int(np.argmax(overflows)) if overflows.any() else end
        X, y, v, tasks = batch.X[first:end], batch.y[first:end], batch.weights[first:end], batch.tasks[first:end]
        for t in np.unique(tasks):
            own = tasks == t
            weighted = v[own, None] * X[own]
            self.state.inputs[t] += weighted.T @ X[own]
            self.state.targets[t] += weighted.T @ y[own]
            self.state.totals[t] += v[own].sum(), v[own] @ y[own] ** 2
        self.state = Moments(*self.state)  # another tuple: the solution is out of date
        return int(end)

    def _joined(self, graph: TaskGraph) -> Moments:
        return appended(self.state, self._empty(1))

    def _left(self, graph: TaskGraph, position: int) -> Moments:
        """The task's samples go with it: what remains is the solution on the graph that remains."""
        return without(self.state, position)
