"""Features kept within what is usual, so that a wild value of one stream does not throw the forecasts of others."""

import numpy as np

from braided._compiled import compiled
from braided.types import Floats, Ints

TIMES = 10.0  # its usual size is what a feature may have
FIRST = 30.0  # inputs of a task that are taken as they are
WINDOW = 500.0  # inputs that what is usual remembers


@compiled
def tame_inplace(X: Floats, usual: Floats, seen: Floats, tasks: Ints, learn: bool) -> None:
    """Limit features to ten times their task's usual size, the root of `usual` (T, d); learn that if told.

    A lasting change of size is let in all the same: what is usual (a square) grows by up to 99/`seen` per input.
    """
    for i in range(tasks.size):
        t = tasks[i]
        n = min(seen[t] + 1.0, WINDOW)
        if learn:
            seen[t] = n
        for j in range(X.shape[1]):
            square, most = X[i, j] * X[i, j], TIMES * TIMES * usual[t, j]
            if n > FIRST and square > most > 0.0:
                X[i, j] = np.sqrt(most) if X[i, j] > 0.0 else -np.sqrt(most)
                square = most
            if learn:
                usual[t, j] += (square - usual[t, j]) / n
