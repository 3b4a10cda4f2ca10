"""MomentLearner: base of the batch learners, which keep moments, never samples, and solve when asked."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from braided._compiled.admm import LARGEST_ADDEND
from braided._compiled.batch import Batch
from braided.errors import NumericalError
from braided.graph import TaskGraph
from braided.learners.base import RESCALE, Learner
from braided.learners.parts.joining import appended, without
from braided.matrices import numerical_errors
from braided.types import Floats, Ints
from braided.validate import insist_numbers, positive


class Moments(NamedTuple):
    """State of a batch learner."""

    inputs: Floats  # (T, d, d) Φ
    targets: Floats  # (T, d) ψ
    totals: Floats  # (T, 2) sums of weights and of weighted y²


class MomentLearner(Learner):
    """A linear learner whose weights are a function of the moments, `_solve`."""

    parameters = ("penalty",)
    state: Moments
    _solution: tuple[Moments, Floats] | None = None

    def __init__(self, graph: TaskGraph, n_features: int, penalty: float = 1.0) -> None:
        self.penalty = positive(penalty, "penalty")
        super().__init__(graph, n_features)

    @abstractmethod
    def _solve(self) -> Floats:
        """Return the weights (T, d)."""

    @property
    def coef(self) -> Floats:
        """w, the weights (T, d)."""
        return self._weights().copy()

    def _weights(self) -> Floats:
        """Return the weights, kept until the next sample."""
        if self._solution is None or self._solution[0] is not self.state:
            with numerical_errors(f"{type(self).__name__} can't be solved", RESCALE):
                self._solution = self.state, self._solve()
        return self._solution[1]

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the solution: a sparse factorisation can't be pickled."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_solution", "_system")}

    def _slope(self, W: Floats) -> Floats:
        """Return the gradient of the loss, Φ_t w_t − ψ_t in row t."""
        slope: Floats = np.einsum("tjk,tk->tj", self.state.inputs, W) - self.state.targets
        return slope

    def _start(self) -> Moments:
        return self._empty(self.graph.n_tasks)

    def _empty(self, n_tasks: int) -> Moments:
        d = self.n_features
        return Moments(np.zeros((n_tasks, d, d)), np.zeros((n_tasks, d)), np.zeros((n_tasks, 2)))

    def _predict(self, X: Floats, tasks: Ints, mean: Floats, std: Floats) -> None:
        mean[:] = (X * self._weights()[tasks]).sum(axis=1)

    def _progressive(self, batch: Batch, mean: Floats, std: Floats) -> int:
        first = 0
        for end in batch.ends:
            try:
                self._predict(batch.X[first:end], batch.tasks[first:end], mean[first:end], std[first:end])
            except NumericalError:
                return first
            learned = self._add(batch, first, end)
            if learned < end:
                return learned
            first = int(end)
        return first

    def _absorb(self, batch: Batch) -> int:
        return self._add(batch, 0, len(batch.X))

    def _add(self, batch: Batch, first: int, end: int) -> int:
        """Add samples to the moments up to one whose squares overflow; return the position of the first not added."""
        with np.errstate(over="ignore"):
            largest = np.maximum(np.abs(batch.X[first:end]).max(axis=1), np.abs(batch.y[first:end]))
            overflows = largest * largest * np.maximum(batch.weights[first:end], 1.0) > LARGEST_ADDEND
        end = first + int(np.argmax(overflows)) if overflows.any() else end
        X, y, v, tasks = batch.X[first:end], batch.y[first:end], batch.weights[first:end], batch.tasks[first:end]
        if len(tasks) <= self.graph.n_tasks:  # typically a round: all samples in one step
            weighted = v[:, None] * X
            np.add.at(self.state.inputs, tasks, weighted[:, :, None] * X[:, None, :])
            np.add.at(self.state.targets, tasks, weighted * y[:, None])
            np.add.at(self.state.totals, tasks, v[:, None] * np.stack([np.ones_like(y), y * y], axis=1))
        else:
            for t in np.unique(tasks):
                own = tasks == t
                weighted = v[own, None] * X[own]
                self.state.inputs[t] += weighted.T @ X[own]
                self.state.targets[t] += weighted.T @ y[own]
                self.state.totals[t] += v[own].sum(), v[own] @ y[own] ** 2
        self.state = Moments(*self.state)  # a new tuple marks the solution as out of date
        return int(end)

    @classmethod
    def _check_arrays(cls, arrays: Mapping[str, Any], n_tasks: int, d: int) -> None:
        for name, shape in {"inputs": (n_tasks, d, d), "targets": (n_tasks, d), "totals": (n_tasks, 2)}.items():
            insist_numbers(arrays[name], name, shape)

    def _joined(self, graph: TaskGraph) -> Moments:
        return appended(self.state, self._empty(1))

    def _left(self, graph: TaskGraph, position: int) -> Moments:
        """Its samples leave with the task: the solution is that of the other tasks alone."""
        return without(self.state, position)
