"""Lags: samples from series. The features of a step are the task's own past, and the last changes of its neighbours.

| feature                 | how many     | what                                                             |
|-------------------------|--------------|------------------------------------------------------------------|
| own lags                | `count`      | the last differences (or levels) of the task                     |
| own level               | `level`      | the last level of the task                                       |
| neighbour lags          | `neighbours` | similarity-weighted mean of the neighbours' last differences     |
| gap                     | `gap`        | the weighted mean of the neighbours' levels, less the task's own |
| bias                    | `bias`       | 1                                                                |
| extras                  | as given     | the last known values of further columns                         |

With `difference=True` the target is the next difference; add `samples.level` to a forecast of it for the level. A
sample is left out if a value of its own is missing, or those of all its neighbours.

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
import scipy.sparse as sparse
from numpy.typing import ArrayLike

from braided._compiled.neighbours import mean_of_others
from braided.errors import InputError
from braided.graph import TaskGraph, TaskKey, task_keys
from braided.types import Floats, Ints
from braided.validate import count


class Samples(NamedTuple):
    """Samples of all tasks, sorted by step and then in the order of the tasks."""

    X: Floats  # (n, features)
    y: Floats  # (n,) the target: the next difference, or level
    tasks: list[TaskKey]  # (n,)
    steps: Ints  # (n,) the row of the series that y is from: the round
    level: Floats  # (n,) what to add to a forecast of y for the level
    previous: Floats  # (n,) the task's y one step before

    def between(self, first: int, end: int) -> Samples:
        """Return the samples of steps from `first` to before `end`."""
        own = slice(*np.searchsorted(self.steps, [first, end]).tolist())
        return Samples._make(column[own] for column in self)


class Latest(NamedTuple):
    """Inputs for a forecast of the step after the last, one row per task that has them."""

    X: Floats  # (n, features)
    tasks: list[TaskKey]  # (n,)
    level: Floats  # (n,) what to add to a forecast for the level


@final
@dataclass(frozen=True)
class Lags:
    """Autoregressive features of a panel of series.

    Parameters
    ----------
    count
        Own lags, 1 or more.
    difference
        Work on first differences, or on levels.
    neighbours
        Lags of the neighbours' mean; needs a graph.
    gap
        Whether to add the gap to the neighbours' level; needs a graph.
    bias
        Whether to end with a constant 1.
    fill
        Whether a missing past change counts as no change. Then a sample needs only the level before it, and few
        missing values cost few samples; by default it needs all.
    level
        Whether to add the last level beside differences, for a series that returns to its mean.
    """

    count: int
    difference: bool = True
    neighbours: int = 0
    gap: bool = False
    bias: bool = True
    fill: bool = False
    level: bool = False

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name, why in {"fill": "fills changes", "level": "goes with changes"}.items():
            if getattr(self, name) and not self.difference:
                raise InputError(f"{name}=True {why}: it needs difference=True")
        for name in ("difference", "gap", "bias", "fill", "level"):
            object.__setattr__(self, name, bool(getattr(self, name)))
        object.__setattr__(self, "count", count(self.count, "count"))
        object.__setattr__(self, "neighbours", count(self.neighbours, "neighbours", least=0))

    @property
    def n_features(self) -> int:
        """How many features a sample has."""
        return self.n_own + self.neighbours + self.gap + self.bias

    @property
    def n_own(self) -> int:
        """How many features, the first, are the task's own past."""
        return self.count + self.level

    @property
    def reach(self) -> int:
        """How many steps back a sample looks."""
        return max(self.count, self.neighbours) + self.difference

    def samples(
        self, levels: ArrayLike, tasks: Any = None, graph: TaskGraph | None = None, extras: Floats | None = None
    ) -> Samples:
        """Return the samples of a panel (steps, tasks), NaN where a value is missing; extras are (steps, tasks, E)."""
        first = 1 if self.fill else self.reach  # the first step that can have all features
        values, keys = self._checked(levels, tasks, graph, first + 1, "for the lags and one target")
        series = self.series(values)
        X, y = self.inputs(values, keys, graph, extras)[first:-1], series[first:]
        complete = ~(np.isnan(X).any(axis=2) | np.isnan(y))
        steps, places = np.nonzero(complete)
        level = values[first - 1 : -1] if self.difference else np.zeros_like(y)
        previous = np.nan_to_num(series[first - 1 : -1]) if self.fill else series[first - 1 : -1]
        names = np.array(keys, object)[places].tolist()
        return Samples(X[complete], y[complete], names, steps + first, level[complete], previous[complete])

    def latest(
        self, levels: ArrayLike, tasks: Any = None, graph: TaskGraph | None = None, extras: Floats | None = None
    ) -> Latest:
        """Return the inputs for a forecast of the step after the last; tasks with a missing value are left out.

        >>> ahead = Lags(2).latest(np.array([[0.0], [1.0], [3.0]]), tasks=["a"])
        >>> ahead.X, ahead.level
        (array([[2., 1., 1.]]), array([3.]))
        """
        values, keys = self._checked(levels, tasks, graph, self.reach, "for the lags")
        X = self.inputs(values[-self.reach :], keys, graph, None if extras is None else extras[-self.reach :])[-1]
        level = values[-1] if self.difference else np.zeros(len(keys))
        complete = ~np.isnan(X).any(axis=1)
        return Latest(X[complete], np.array(keys, object)[complete].tolist(), level[complete])

    def series(self, levels: Floats) -> Floats:
        """Return the series to forecast (steps, tasks): the differences, NaN for the first, or the levels."""
        before = np.full((1, levels.shape[1]), np.nan)
        return np.vstack([before, np.diff(levels, axis=0)]) if self.difference else levels

    def inputs(
        self, levels: Floats, keys: tuple[TaskKey, ...], graph: TaskGraph | None, extras: Floats | None = None
    ) -> Floats:
        """Return the features of each step and of the one after the last, (steps + 1, tasks, features).

        They are NaN where a value is missing, or lies before the first step.
        """
        n_steps, n_tasks = levels.shape
        series = self.series(levels)
        X = np.full((n_steps + 1, n_tasks, self.n_features + (0 if extras is None else extras.shape[2])), np.nan)
        for k in range(1, self.count + 1):
            X[k:, :, k - 1] = series[: n_steps + 1 - k]
        if self.level:
            X[1:, :, self.count] = levels
        if graph is not None and (self.neighbours or self.gap):
            neighbours = _neighbours(graph, keys)
            around = mean_of_others(np.ascontiguousarray(series), *neighbours)
            for k in range(1, self.neighbours + 1):
                X[k:, :, self.n_own + k - 1] = around[: n_steps + 1 - k]
            if self.gap:
                gap = mean_of_others(np.ascontiguousarray(levels), *neighbours) - levels
                gap[:, np.diff(neighbours[0], prepend=0) == 0] = 0.0  # of a task without neighbours
                X[1:, :, self.n_own + self.neighbours] = gap
        if self.fill:
            known = np.vstack([np.zeros((1, n_tasks), bool), ~np.isnan(levels)])
            X[np.isnan(X) & known[:, :, None]] = 0.0
            X[~known] = np.nan
        if self.bias:
            X[:, :, self.n_features - 1] = np.where(np.isnan(X[:, :, 0]), np.nan, 1.0) if self.fill else 1.0
        if extras is not None:
            X[1:, :, self.n_features :] = extras
        return X

    def _checked(
        self, levels: Any, tasks: Any, graph: TaskGraph | None, needed: int, why: str
    ) -> tuple[Floats, tuple[TaskKey, ...]]:
        values = np.asarray(levels, dtype=np.float64)
        if values.ndim != 2:
            raise InputError(f"levels has shape {values.shape}: give (steps, tasks)")
        if np.isinf(values).any():
            step, task = map(int, np.argwhere(np.isinf(values))[0])
            raise InputError(f"levels[{step}, {task}] is {values[step, task]}: use NaN for a missing value")
        if graph is None and (self.neighbours or self.gap):
            raise InputError("neighbour lags and the gap need to know the neighbours: give a graph")
        keys = task_keys(tasks if tasks is not None else graph.tasks if graph else range(values.shape[1]))
        if len(keys) != values.shape[1]:
            raise InputError(f"{len(keys)} tasks for {values.shape[1]} columns of levels: give one key per column")
        if len(values) < needed:
            raise InputError(f"levels has {len(values)} steps: {needed} are needed {why}")
        return values, keys


def _neighbours(graph: TaskGraph, keys: tuple[TaskKey, ...]) -> tuple[Ints, Ints, Floats]:
    """Return where the neighbours of each task end, their positions and similarities; negative ones are left out."""
    order = graph.indices(keys)
    S = sparse.csr_array(graph.similarity)[order][:, order].maximum(0.0)
    S.eliminate_zeros()
    return S.indptr[1:].astype(np.int64), S.indices.astype(np.int64), S.data
