"""Clip features at a multiple of their typical size: a wild value of one stream must not upset forecasts of others."""

import numpy as np

from braided._compiled import compiled
from braided.types import Floats, Ints

CLIP_FEATURES_AT = 10.0  # times their typical size
UNCLIPPED_INPUTS = 30.0  # the first ones of a task
SIZE_WINDOW = 500.0  # of the running mean square, in inputs


@compiled
def clip_features_inplace(X: Floats, squares: Floats, seen: Floats, tasks: Ints, learn: bool) -> None:
    """Clip features at ten times the root of their task's mean square (T, d); update that if `learn`.

    A lasting change of size passes after a while: the mean square grows by up to 99/`seen` per input.
    """
    for i in range(tasks.size):
        t = tasks[i]
        n = min(seen[t] + 1.0, SIZE_WINDOW)
        if learn:
            seen[t] = n
        for j in range(X.shape[1]):
            square, limit = X[i, j] * X[i, j], CLIP_FEATURES_AT * CLIP_FEATURES_AT * squares[t, j]
            if n > UNCLIPPED_INPUTS and square > limit > 0.0:
                X[i, j] = np.sqrt(limit) if X[i, j] > 0.0 else -np.sqrt(limit)
                square = limit
            if learn:
                squares[t, j] += (square - squares[t, j]) / n
