"""GraphRidge: the batch solution of the graph-regularised problem, solved when a forecast is requested.

| symbol | name        | shape     | meaning                                             |
|--------|-------------|-----------|-----------------------------------------------------|
| λ      | `penalty`   |           | weight of the graph and its ridge against the data  |
| Φ_t    |             | (T, d, d) | sum of x x' of task t                               |
| ψ_t    |             | (T, d)    | sum of y x of task t                                |
| w      | `coef`      | (T, d)    | (blkdiag Φ_t + λA ⊗ I)⁻¹ ψ, Eq. 24                  |

Keeps moments only, never the samples. A dense graph is solved by Cholesky, a sparse one by a sparse factorisation
(SciPy's SuperLU, in symmetric mode). If you need the solution after every sample, MTWRLS gives the same one faster.

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
from typing import final

import numpy as np
import scipy.linalg
import scipy.sparse as sparse

from braided.learners.parts.moments import MomentLearner
from braided.matrices import sparse_factor
from braided.types import Floats, Ints

Solve = Callable[[Floats], Floats]


@final
class GraphRidge(MomentLearner):
    """Batch graph-regularised ridge regression."""

    has_std = True
    _system: Solve  # the factorised system

    @property
    def noise_variance(self) -> float:
        """The estimated variance of the noise; infinite before the first sample."""
        total, squares = self.state.totals.sum(axis=0)
        residual = squares - float((self.state.targets * self._weights()).sum())
        return float(max(residual, 0.0) / total) if total > 0 else np.inf

    @property
    def optimality(self) -> float:
        """The gradient that remains, ‖Φw + λ(A ⊗ I)w − ψ‖ / ‖ψ‖; 0 is exact."""
        W = self._weights()
        size = np.linalg.norm(self.state.targets)
        return float(np.linalg.norm(self._slope(W) + self.penalty * (self.graph.relation @ W)) / size) if size else 0.0

    def _solve(self) -> Floats:
        self._system = self._factorised()
        return self._system(self.state.targets.ravel()).reshape(-1, self.n_features)

    def _factorised(self) -> Solve:
        A, d = self.graph.relation, self.n_features
        if self.graph.is_sparse:
            data = sparse.block_diag(list(self.state.inputs), format="csc")
            solve: Solve = sparse_factor(data + sparse.kron(self.penalty * A, sparse.eye_array(d))).solve
            return solve
        dense = np.zeros((len(A) * d, len(A) * d))
        blocks, each, place = dense.reshape(len(A), d, len(A), d), np.arange(len(A)), np.arange(d)
        blocks[:, place, :, place] = self.penalty * A  # A ⊗ I
        blocks[each, :, each, :] += self.state.inputs
        factor, lower = scipy.linalg.cho_factor(dense, lower=True)
        share, _ = scipy.linalg.lapack.dpocon(factor, np.linalg.norm(dense, 1), uplo="L")
        if share < 1e-15:
            raise np.linalg.LinAlgError(f"the system is nearly singular (reciprocal condition {share:.0e})")
        return partial(scipy.linalg.cho_solve, (factor, lower))

    def _predict(self, X: Floats, tasks: Ints, mean: Floats, std: Floats) -> None:
        super()._predict(X, tasks, mean, std)
        if not std.size:
            return
        noise, d = self.noise_variance, self.n_features
        for i, t in enumerate(tasks):
            z = np.zeros(self.state.targets.size)
            z[t * d : (t + 1) * d] = X[i]
            std[i] = np.sqrt(noise * (1.0 + z @ self._system(z)))
