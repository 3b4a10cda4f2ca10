"""Rescue: a learner that breaks down is reset, and goes on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from braided.errors import NumericalError
from braided.graph import TaskKey
from braided.learners import Learner
from braided.types import Floats, Ints


def progressive_or_reset(
    learner: Learner,
    X: Floats,
    y: Floats,
    tasks: Any,
    rounds: Ints,
    weights: Floats,
    with_std: bool = False,
    gains: Floats | None = None,
) -> tuple[Floats, Floats, int]:
    """Return forecasts made before each round is learned, their deviations if asked, and the number of breakdowns.

    After a round in which the learner breaks down it is reset; what it could not forecast is NaN or infinite. `gains`,
    zeros (n, size of a filter), are filled, and NaN for the sample at which it broke down.
    """
    made, deviations = np.full(len(y), np.nan), np.full(len(y) if with_std else 0, np.nan)
    first, breakdowns = 0, 0
    while first < len(y):
        rest = np.s_[first:]
        try:
            result = learner.progressive(
                X[rest],
                y[rest],
                tasks[rest],
                rounds=rounds[rest],
                weights=weights[rest],
                with_std=with_std,
                gains=None if gains is None else gains[rest],
            )
            if isinstance(result, tuple):
                made[rest], deviations[rest] = result
            else:
                made[rest] = result
            break
        except NumericalError as error:
            means, spreads = error.made
            made[first : first + len(means)] = means
            deviations[first : first + len(spreads)] = spreads
            last = min(first + len(error.forecasts), len(y) - 1)  # where it broke down
            first = int(np.searchsorted(rounds, rounds[last], side="right"))
            learner.reset()
            breakdowns += 1
            if gains is not None:
                gains[last:] = 0.0
                gains[last] = np.nan
    return made, deviations, breakdowns


def add_or_reset(learner: Learner, task: TaskKey, similar: Mapping[TaskKey, float]) -> int:
    """Add a task, tied to others if the learner shares; reset it first if that fails. Return the breakdowns, 0 or 1."""
    links = similar if learner.shares else None
    try:
        learner.add_task(task, links)
    except NumericalError:
        learner.reset()
        learner.add_task(task, links)
        return 1
    return 0
