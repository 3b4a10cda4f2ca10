"""L21: joint feature selection, the batch solution under the ℓ2,1 norm (see `parts/norms.py`)."""

from __future__ import annotations

from typing import final

import numpy as np

from braided.learners.parts.norms import NormLearner
from braided.types import Floats


@final
class L21(NormLearner):
    """Joint feature selection: a feature is used by all tasks or by none; T = 1 is the lasso.

    `tasks` are keys, or a graph, of which only the keys are used.
    """

    _low_rank = False

    @staticmethod
    def _dual_norm(G: Floats) -> float:
        return float(np.linalg.norm(G, axis=0).max())

    @staticmethod
    def _norm(W: Floats) -> float:
        return float(np.linalg.norm(W, axis=0).sum())

    @staticmethod
    def _root(W: Floats, units: Floats, share: float) -> Floats:
        sizes = np.linalg.norm(W, axis=0)
        return np.diag(np.sqrt(sizes * units))

    @staticmethod
    def _violation(G: Floats, W: Floats, penalty: float, least: float) -> float:
        """‖G_k + λW_k/‖W_k‖‖ of columns W_k that are not (exactly) zero, ‖G_k‖ − λ of the others."""
        sizes = np.linalg.norm(W, axis=0)
        used = sizes > 0
        rest = np.linalg.norm(G + penalty * W / np.where(used, sizes, 1.0), axis=0)
        return max(0.0, float(np.where(used, rest, rest - penalty).max()))
