"""TraceNorm: weights of low rank, the batch solution under the trace norm (see `parts/norms.py`)."""

from __future__ import annotations

from typing import final

import numpy as np

from braided.learners.parts.norms import NormLearner
from braided.types import Floats


@final
class TraceNorm(NormLearner):
    """Low rank: the weights of all tasks are combinations of a few; T = 1 shrinks the weights as a whole.

    `tasks` are keys, or a graph, of which only the keys are used.
    """

    _low_rank = True

    @staticmethod
    def _dual_norm(G: Floats) -> float:
        return float(np.linalg.svd(G, compute_uv=False).max(initial=0.0))

    @staticmethod
    def _norm(W: Floats) -> float:
        return float(np.linalg.svd(W, compute_uv=False).sum())

    @staticmethod
    def _root(W: Floats, units: Floats, share: float) -> Floats:
        """Smoothed: otherwise, combinations of features with weight zero would keep it forever."""
        squares, V = np.linalg.eigh(W.T @ W)
        return V * (squares.clip(0.0) + share**2 * squares[-1]) ** 0.25

    @staticmethod
    def _violation(G: Floats, W: Floats, penalty: float, least: float) -> float:
        """With W = USV', S not zero: ‖U'G + λV'‖, ‖GV + λU‖, and ‖G‖ − λ of the rest of G (largest singular values)."""
        U, sizes, V = np.linalg.svd(W, full_matrices=False)
        U, V = U[:, sizes > least], V[sizes > least]
        rest = G - U @ (U.T @ G)
        rest -= rest @ V.T @ V
        inside = (TraceNorm._dual_norm(M) for M in (U.T @ G + penalty * V, G @ V.T + penalty * U))
        return max(*inside, TraceNorm._dual_norm(rest) - penalty)
