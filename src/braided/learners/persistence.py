"""Persistence: each task's last value, a baseline without a model.

On differenced series this is the baseline "last change"; "no change" is the forecast 0.

>>> import braided as bd
>>> model = bd.Persistence(["a", "b"], n_features=1)
>>> model.progressive([[0.0], [0.0], [0.0]], [1.0, 2.0, 3.0], ["a", "b", "a"])
array([0., 0., 1.])
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, final

import numpy as np

from braided._compiled.batch import Batch
from braided._compiled.naive import last_value_inplace
from braided.graph import TaskGraph, TaskKey
from braided.learners.base import Learner
from braided.learners.parts.joining import appended, without
from braided.types import Floats, Ints
from braided.validate import insist_numbers


class Last(NamedTuple):
    """State of `Persistence`."""

    values: Floats  # (T,) last value of each task, 0 before the first


@final
class Persistence(Learner):
    """Forecast each task's last value; features are checked but not used."""

    shares = False
    state: Last

    def __init__(self, tasks: Iterable[TaskKey] | TaskGraph, n_features: int) -> None:
        super().__init__(TaskGraph.independent(tasks), n_features)

    def _start(self) -> Last:
        return Last(np.zeros(self.graph.n_tasks))

    def _predict(self, X: Floats, tasks: Ints, mean: Floats, std: Floats) -> None:
        mean[:] = self.state.values[tasks]

    def _progressive(self, batch: Batch, mean: Floats, std: Floats) -> int:
        return last_value_inplace(self.state.values, batch.y, batch.tasks, batch.weights, batch.ends, mean)

    @classmethod
    def _check_arrays(cls, arrays: Mapping[str, Any], n_tasks: int, d: int) -> None:
        insist_numbers(arrays["values"], "values", (n_tasks,))

    def _joined(self, graph: TaskGraph) -> Last:
        return appended(self.state, Last(np.zeros(1)))

    def _left(self, graph: TaskGraph, position: int) -> Last:
        return without(self.state, position)
