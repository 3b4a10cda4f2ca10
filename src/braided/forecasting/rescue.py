"""Rescue: a learner that breaks down is reset after the round, and goes on."""

from __future__ import annotations

import numpy as np

from braided.errors import NumericalError
from braided.learners import Learner
from braided.types import Floats, Ints


def progressive_or_reset(
    learner: Learner, X: Floats, y: Floats, tasks: Ints, rounds: Ints, weights: Floats
) -> tuple[Floats, int]:
    """Return forecasts made before each round is learned, NaN where the learner broke down, and how often it did."""
    made, first, breakdowns = np.full(len(y), np.nan), 0, 0
    while first < len(y):
        rest = np.s_[first:]
        try:
            made[rest] = learner.progressive(X[rest], y[rest], tasks[rest], rounds=rounds[rest], weights=weights[rest])
            break
        except NumericalError as error:
            means, _ = error.made
            made[first : first + len(means)] = means
            last = first + len(error.forecasts)  # where it broke down
            first = int(np.searchsorted(rounds, rounds[min(last, len(y) - 1)], side="right"))
            learner.reset()
            breakdowns += 1
    return made, breakdowns
