"""Lags: from series to samples. Each task's own past, and what its neighbours just did, as features of the next step.

| feature                 | how many     | what                                                             |
|-------------------------|--------------|------------------------------------------------------------------|
| own lags                | `count`      | the last differences of the task (or levels)                     |
| neighbour lags          | `neighbours` | similarity-weighted mean of the neighbours' last differences     |
| gap                     | `gap`        | the neighbours' weighted mean level, less the task's own         |
| bias                    | `bias`       | 1                                                                |

With `difference=True` the target is the next difference, and `samples.level` is what to add to a forecast of it to
have the level. A sample that lacks a value of its own, or all of its neighbours', is left out.

>>> import numpy as np
>>> samples = Lags(2).samples(np.array([[0.0], [1.0], [3.0], [6.0], [10.0]]), tasks=["a"])
>>> samples.X          # the last difference, the one before, the bias
array([[2., 1., 1.],
       [3., 2., 1.]])
>>> samples.y, samples.level + samples.y
(array([3., 4.]), array([ 6., 10.]))

Reference: Lencione & Von Zuben, arXiv 2308.01938, Eq. 38, for the own lags.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike

from braided.errors import InputError
from braided.graph import TaskGraph, TaskKey, task_keys
from braided.matrices import Matrix
from braided.types import Flags, Floats, Ints
from braided.validate import count


class Samples(NamedTuple):
    """Samples of all tasks, sorted by step and then in the order of the tasks."""

    X: Floats  # (n, features)
    y: Floats  # (n,) the target: the next difference, or level
    tasks: list[TaskKey]  # (n,)
    steps: Ints  # (n,) row of the series that y belongs to: the round
    level: Floats  # (n,) what to add to a forecast of y to have the level
    previous: Floats  # (n,) the task's y one step before

    def between(self, first: int, end: int) -> Samples:
        """Return the samples of the steps from `first` on and before `end`."""
        own = slice(*np.searchsorted(self.steps, [first, end]).tolist())
        return Samples._make(column[own] for column in self)


@final
@dataclass(frozen=True)
class Lags:
    """Autoregressive features of a panel of series.

    Parameters
    ----------
    count
        Own lags, 1 or more.
    difference
        Work on first differences, or on the levels.
    neighbours
        Lags of the neighbours' mean; needs a graph.
    gap
        Whether to add the gap to the neighbours' level; needs a graph.
    bias
        Whether to end with a constant 1.
    """

    count: int
    difference: bool = True
    neighbours: int = 0
    gap: bool = False
    bias: bool = True

    def __post_init__(self) -> None:
        """Check the numbers."""
        object.__setattr__(self, "count", count(self.count, "count"))
        object.__setattr__(self, "neighbours", count(self.neighbours, "neighbours", least=0))

    @property
    def n_features(self) -> int:
        """How many features a sample has."""
        return self.count + self.neighbours + bool(self.gap) + bool(self.bias)

    def samples(self, levels: ArrayLike, tasks: Any = None, graph: TaskGraph | None = None) -> Samples:
        """Return the samples of a panel (steps, tasks), NaN where a value is missing."""
        values = np.asarray(levels, dtype=np.float64)
        if values.ndim != 2:
            raise InputError(f"levels has shape {values.shape}: give (steps, tasks)")
        if np.isinf(values).any():
            step, task = map(int, np.argwhere(np.isinf(values))[0])
            raise InputError(f"levels[{step}, {task}] is {values[step, task]}: use NaN for a missing value")
        if graph is None and (self.neighbours or self.gap):
            raise InputError("neighbour lags and the gap need to know the neighbours: give a graph")
        given = tasks if tasks is not None else graph.tasks if graph is not None else range(values.shape[1])
        keys = task_keys(given)
        if len(keys) != values.shape[1]:
            raise InputError(f"{len(keys)} tasks for {values.shape[1]} columns of levels: give one key per column")
        return self._samples(values, keys, graph)

    def _samples(self, levels: Floats, keys: tuple[TaskKey, ...], graph: TaskGraph | None) -> Samples:
        first = max(self.count, self.neighbours) + bool(self.difference)  # the first step with all lags
        n_steps = len(levels)
        if n_steps <= first:
            raise InputError(f"levels has {n_steps} steps: {first + 1} are needed for the lags and one target")
        before = np.full((1, levels.shape[1]), np.nan)
        series = np.vstack([before, np.diff(levels, axis=0)]) if self.difference else levels
        columns = [series[first - k : n_steps - k] for k in range(1, self.count + 1)]
        if graph is not None and (self.neighbours or self.gap):
            shares = _shares(graph.indices(keys), graph)
            around = _mean_of_others(series, shares)
            columns += [around[first - k : n_steps - k] for k in range(1, self.neighbours + 1)]
            if self.gap:
                gap = _mean_of_others(levels, shares) - levels
                gap[:, _alone(shares)] = 0.0
                columns.append(gap[first - 1 : n_steps - 1])
        if self.bias:
            columns.append(np.ones_like(columns[0]))
        X, y = np.stack(columns, axis=2), series[first:]
        complete = ~(np.isnan(X).any(axis=2) | np.isnan(y))
        steps, places = np.nonzero(complete)
        level = levels[first - 1 : n_steps - 1] if self.difference else np.zeros_like(y)
        previous = series[first - 1 : n_steps - 1]
        names = [keys[j] for j in places]
        return Samples(X[complete], y[complete], names, steps + first, level[complete], previous[complete])


def _shares(order: Ints, graph: TaskGraph) -> Matrix:
    """Similarities (T, T) in the order of the series; negative ones are no neighbours."""
    S = graph.similarity[order][:, order]
    return S.maximum(0.0) if graph.is_sparse else np.clip(S, 0.0, None)


def _alone(shares: Matrix) -> Flags:
    alone: Flags = np.asarray(shares.sum(axis=1)) == 0.0
    return alone


def _mean_of_others(values: Floats, shares: Matrix) -> Floats:
    """Weighted mean over the neighbours that have a value; 0 for a task without neighbours, NaN if all are missing."""
    there = ~np.isnan(values)
    weight = (shares @ there.T.astype(np.float64)).T
    total = (shares @ np.where(there, values, 0.0).T).T
    mean = np.divide(total, weight, out=np.full_like(values, np.nan), where=weight > 0.0)
    mean[:, _alone(shares)] = 0.0
    return mean
