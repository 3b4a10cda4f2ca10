"""L21 and TraceNorm: batch solutions that couple the tasks by a norm of all their weights, without a graph.

| symbol | name      | shape     | meaning                                                                           |
|--------|-----------|-----------|-----------------------------------------------------------------------------------|
| λ      | `penalty` |           | weight of the norm against the data                                               |
| Φ_t    |           | (T, d, d) | sum of x x' of task t                                                             |
| ψ_t    |           | (T, d)    | sum of y x of task t                                                              |
| W      | `coef`    | (T, d)    | minimises ½ Σ_t ‖X_t w_t − y_t‖² + λ‖W‖, the norm being                           |
|        |           |           | L21: Σ_k ‖(w_1k … w_Tk)‖, so that the tasks agree on which features they use      |
|        |           |           | TraceNorm: the sum of the singular values, so that they share a few combinations  |
| G      |           | (T, d)    | Φ_t w_t − ψ_t in row t, the gradient of the data's term                           |

Holds moments only, and solves from zero when a forecast is requested after learning: by accelerated proximal gradient
and, where that is slow, reweighted ridge regressions in between. It stops where a subgradient is 1e-9 of the gradient
at zero, or as short as rounding allows; `optimality` measures it from moments and weights alone. A penalty of
at least the dual norm of that gradient (its longest column, its largest singular value) makes all weights exactly zero.
L21 takes features on any scale; TraceNorm mixes them, so bring them to about 1.

>>> import numpy as np, braided as bd
>>> X = np.array([[1.0, 2.0, 0.1], [2.0, -1.0, 0.0], [1.0, 1.0, -0.1], [-1.0, 0.0, 0.2]])
>>> y = np.concatenate([X @ [1.0, 2.0, 0.0], X @ [2.0, 4.0, 0.0]])
>>> both = ["north"] * 4 + ["south"] * 4
>>> for learner in (bd.L21, bd.TraceNorm):
...     model = learner(["north", "south"], n_features=3, penalty=0.5)
...     model.learn_many(np.vstack([X, X]), y, both)
...     print(model.coef.round(3) + 0.0, model.optimality < 1e-8)
[[0.973 1.967 0. ]
 [1.945 3.935 0. ]] True
[[0.99 1.968 0.008]
 [1.981 3.936 0.016]] True

References: Liu, Ji & Ye, UAI 2009 (L21); Ji & Ye, ICML 2009 (TraceNorm); both as in MALSAR (Zhou, Chen & Ye, 2012).
Reweighting: Argyriou, Evgeniou & Pontil, Machine Learning 73 (2008).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import ClassVar

import numpy as np

from braided._compiled.proximal import Problem, minimise_inplace
from braided.errors import NumericalError
from braided.graph import TaskGraph, TaskKey
from braided.learners.base import RESCALE
from braided.learners.parts.moments import MomentLearner
from braided.matrices import numerical_errors
from braided.types import Floats

TOLERANCE = 1e-9  # for a subgradient, relative to the gradient at zero
FIRST_LEG, LEGS = 1000, 7  # steps; each leg has three times as many as the one before, a million in all
REWEIGHTINGS = 20  # after each leg
TINY = float(np.finfo(np.float64).tiny)  # instead of 0 in denominators


class NormLearner(MomentLearner):
    """What L21 and TraceNorm share: all but the norm."""

    shares = False  # edges of a graph have no effect: the norm couples all tasks
    _low_rank: ClassVar[bool]

    def __init__(self, tasks: Iterable[TaskKey] | TaskGraph, n_features: int, penalty: float = 1.0) -> None:
        super().__init__(TaskGraph.independent(tasks), n_features, penalty)

    @staticmethod
    @abstractmethod
    def _dual_norm(G: Floats) -> float:
        """Return the norm of a gradient that the penalty is compared with."""

    @staticmethod
    @abstractmethod
    def _violation(G: Floats, W: Floats, penalty: float, least: float) -> float:
        """Return how far G and W are from the optimality conditions; W is zero where it is no larger than `least`."""

    @staticmethod
    @abstractmethod
    def _norm(W: Floats) -> float:
        """Return the norm."""

    @staticmethod
    @abstractmethod
    def _root(W: Floats, units: Floats, share: float) -> Floats:
        """Return H (d, d): the penalty ½ Σ_t ‖v_t‖², w_t = Hv_t, touches the norm at W; `share` smooths it."""

    @property
    def optimality(self) -> float:
        """By how much the optimality conditions are violated, relative to the gradient at zero; 0 is exact."""
        W = self._weights()
        with numerical_errors("the optimality can't be found", RESCALE):
            scale, largest = self._scale(), max(float(np.abs(W).max()), TINY)
            curvature = max(float(np.linalg.eigvalsh(self.state.inputs)[:, -1].max()), TINY)
            least = 0.1 * TOLERANCE * scale / curvature / largest  # anything smaller is rounding, without effect on G
            return self._violation(self._slope(W) / scale, W / largest, self.penalty / scale, least)

    def _scale(self) -> float:
        """Return the dual norm of the gradient at zero, or the penalty if that is larger."""
        largest = max(float(np.abs(self.state.targets).max()), TINY)
        return max(self.penalty, largest * self._dual_norm(self.state.targets / largest))

    def _solve(self) -> Floats:
        """Solve in units in which gradients are at most 1, and so are the eigenvalues of every Φ_t."""
        scale, squares = self._scale(), np.einsum("tkk->tk", self.state.inputs).max(axis=0)
        W = np.zeros_like(self.state.targets)
        if scale == self.penalty:
            return W
        largest = max(float(squares.max()), TINY)
        # One unit for all features where the norm mixes them; else their own, so that their scales do not matter.
        units = np.ones(self.n_features) if self._low_rank else np.sqrt(np.maximum(squares / largest, 1e-280))
        moments = self.state.inputs / largest / units[:, None] / units
        curvature = max(float(np.linalg.eigvalsh(moments)[:, -1].max()), 1.0)
        targets = self.state.targets / scale / units
        problem = Problem(moments / curvature, targets, units, self.penalty / scale)
        for leg in range(LEGS):
            if minimise_inplace(W, problem, self._low_rank, TOLERANCE, FIRST_LEG * 3**leg):
                break
            W = self._reweighted(W, problem)
        else:
            raise NumericalError(
                f"{type(self).__name__} did not converge: scale the features to about 1, leave out features that are "
                "nearly sums of others, or raise penalty"
            )
        with np.errstate(over="ignore", invalid="ignore"):  # forecasts are checked
            return W * (scale / largest / curvature / units)

    def _reweighted(self, W: Floats, problem: Problem) -> Floats:
        """Return a ridge solution whose penalty touches the norm from above near it, or W if that is better.

        A ridge solution converges equally fast along all directions of Φ_t, however different its eigenvalues.
        """
        new, ridge = W, max(problem.penalty, 0.1 * TOLERANCE) * np.eye(self.n_features)  # less has no effect
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # then it is not better
                for k in range(REWEIGHTINGS):
                    root = self._root(new, problem.units, 0.5 ** (k + 1))
                    rhs = (problem.targets @ root)[..., None]
                    new = np.linalg.solve(root.T @ problem.moments @ root + ridge, rhs)[..., 0] @ root.T
                found, known = self._objective(new, problem), self._objective(W, problem)
        except np.linalg.LinAlgError:  # nearly equal features, or of very different sizes: the ridge is lost
            return W
        return new if found < known else W

    def _objective(self, W: Floats, problem: Problem) -> float:
        slope = np.einsum("tjk,tk->tj", problem.moments, W) / 2.0 - problem.targets
        return float((slope * W).sum() + problem.penalty * self._norm(W / problem.units))
