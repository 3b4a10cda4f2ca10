"""KernelLearner: base of the kernel learners; dictionaries that grow, and kernels compiled or in Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.linalg

from braided._compiled.batch import Batch, Clock
from braided._compiled.dictionary import (
    UNBOUNDED,
    Dictionaries,
    Limits,
    Sample,
    absorb_inplace,
    evict_least_inplace,
    restore_inplace,
    spread,
    whiten_inplace,
)
from braided._compiled.kernel_rls import forecast_inplace, progressive_inplace
from braided._compiled.kernels import coherent
from braided._compiled.rls_step import RESIDUAL, SCALE, fresh_errors, fresh_totals, noise_variance, symmetric
from braided.errors import InputError
from braided.forgetting import Forgetting, Policy
from braided.forgetting.custom import as_policy
from braided.forgetting.steps import NO_PRIOR
from braided.graph import TaskGraph
from braided.kernels import Kernel, UserKernel, as_kernel
from braided.learners.base import Health, Learner
from braided.matrices import inverse, numerical_errors
from braided.types import Floats, Ints
from braided.validate import LARGEST_COUNT, count, fraction, insist_integers, insist_numbers, not_negative, positive

FIRST_CAPACITY = 16  # elements that a new dictionary has room for
DICTIONARY_PARAMETERS = ("kernel", "penalty", "novelty", "budget", "novelty_relative", "coherence")


class KernelLearner(Learner):
    """A learner on one dictionary or several; subclasses assign tasks to dictionaries."""

    parameters = (*DICTIONARY_PARAMETERS, "forgetting", "robust", "noise")
    has_std = True
    state: Dictionaries

    def __init__(
        self,
        graph: TaskGraph,
        n_features: int,
        kernel: str | Kernel | UserKernel = "linear",
        penalty: float = 1.0,
        novelty: float = 1e-3,
        budget: int | None = None,
        *,
        novelty_relative: bool = False,
        coherence: float = 1.0,
        forgetting: float | Policy | Forgetting = 1.0,
        robust: float | None = None,
        noise: float | None = None,
    ) -> None:
        self.kernel = kernel
        self.penalty = positive(penalty, "penalty")
        self.novelty = not_negative(novelty, "novelty")
        self.budget = None if budget is None else count(budget, "budget")
        self.novelty_relative = bool(novelty_relative)
        self.coherence = fraction(coherence, "coherence")
        self.forgetting = as_policy(forgetting, type(self).__name__, has_dictionary=True)
        self.robust = None if robust is None else positive(robust, "robust")
        self.noise = None if noise is None else positive(noise, "noise")
        steps = self.forgetting.steps(Clock.of_one(opens=True), NO_PRIOR)
        most, along = UNBOUNDED if self.budget is None else self.budget, float(steps.fades[0, 2])
        joining = self.novelty, self.novelty_relative, most, self.coherence
        self._limits = Limits(self.penalty, *joining, along, steps.shrink, self.robust or 0.0)
        self._kernel = as_kernel(kernel, count(n_features, "n_features"))
        program = self._kernel.program if isinstance(self._kernel, Kernel) else ()  # a Python function has none
        self._program = np.array(program, dtype=np.float64)
        super().__init__(graph, n_features)

    @property
    def health(self) -> Health:
        """Samples learned, numerical condition, and the total size of the dictionaries."""
        state = self.state
        used = np.arange(state.inputs.shape[1]) < state.sizes[:, None]
        each = (state.covariance.diagonal(axis1=1, axis2=2) * state.totals[:, SCALE, None])[used]
        return Health.of(self.samples, 0, each, state.errors, int(state.sizes.sum()))

    @property
    def coef(self) -> Floats:
        """The weights (T, d), with the linear kernel."""
        if not (isinstance(self._kernel, Kernel) and self._kernel.is_linear):
            raise AttributeError(f"no coef with kernel {self._kernel!r}: only the linear kernel has one")
        state = self.state
        coef = np.zeros((self.graph.n_tasks, self.n_features))
        for t, (f, row) in enumerate(state.places):
            m = state.sizes[f]
            coef[t] = (dual_weights(state, f) * state.prior[row, state.rows[f, :m]]) @ state.inputs[f, :m]
        return coef

    @property
    def noise_variance(self) -> Floats:
        """The estimated variance of each dictionary's noise; infinite before its first sample."""
        return noise_variance(self.state.totals)

    def _predict(self, X: Floats, tasks: Ints, mean: Floats, std: Floats) -> None:
        if self._program.size:
            forecast_inplace(mean, std, self.state, self._limits, self._program, X, tasks)
            return
        state = self.state
        for i in range(len(X)):
            phi, (delta, *_) = self._coordinates(X[i], tasks[i])
            f, phi = state.places[tasks[i], 0], phi[:-1]
            mean[i] = state.weights[f, : phi.size] @ phi
            if std.size:
                std[i] = spread(state.totals[f], state.covariance[f], phi, delta / self.penalty)

    def _progressive(self, batch: Batch, mean: Floats, std: Floats) -> int:
        if not self._program.size:
            return self._progressive_in_python(batch, mean, std)
        if self._limits.shrink < 1.0:
            return self._run_or_replay(self._run, batch, mean, std)
        return self._run(batch, mean, std)

    def _run(self, batch: Batch, mean: Floats, std: Floats) -> int:
        rest, done = batch, 0
        while True:
            learned, full = progressive_inplace(self.state, self._limits, self._program, rest, mean[done:], std[done:])
            done += learned
            if not full:
                return done
            rest = batch.after(done)
            self._make_room(int(rest.ends[0]))

    def _progressive_in_python(self, batch: Batch, mean: Floats, std: Floats) -> int:
        """Sample by sample, on a copy, as a Python kernel may raise an error at any moment."""
        before = self.state
        self.state = Dictionaries._make(array.copy() for array in before)
        try:
            return self._run_or_replay(self._loop, batch, mean, std)
        except BaseException:
            self.state = before
            raise

    def _loop(self, batch: Batch, mean: Floats, std: Floats) -> int:
        first = 0
        for end in batch.ends:
            self._predict(batch.X[first:end], batch.tasks[first:end], mean[first:end], std[first:end])
            for i in range(first, end):
                self._make_room(1)
                x, y, task, weight = batch.X[i], batch.y[i], batch.tasks[i], batch.weights[i]
                phi, (delta, kxx, coherence) = self._coordinates(x, task)
                if batch.opens[i] and self._limits.shrink < 1.0:
                    restore_inplace(self.state, self._limits)
                sample = Sample(x, task, y, weight, phi, delta, kxx, coherence)
                if not absorb_inplace(self.state, self._limits, sample):
                    return i
                f = self.state.places[task, 0]
                if self.state.sizes[f] > self._limits.budget:
                    evict_least_inplace(self.state, f)
            first = int(end)
        return first

    def _coordinates(self, x: Floats, task: int) -> tuple[Floats, tuple[float, float, float]]:
        """φ(x) with room for one more; its novelty, k(x, x) and coherence; by a Python kernel."""
        state = self.state
        f, row = state.places[task]
        m = int(state.sizes[f])
        points = np.vstack([state.inputs[f, :m], x])
        kappa = np.asarray(self._kernel(points.copy(), x.copy()))
        if kappa.shape != (m + 1,) or kappa.dtype.kind not in "fiu" or not np.isfinite(kappa).all():
            raise InputError(f"the kernel gave {kappa!r} for X {points.shape}: it must give a finite number per row")
        phi = state.prior[row, np.append(state.rows[f, :m], row)] * kappa
        kxx = float(phi[m])
        coherence = coherent(phi, state.norms[f, :m], kxx)
        explained = whiten_inplace(phi, state.factor[f], m)
        return phi, (max(kxx - explained, 0.0), kxx, coherence)

    def _empty(self, n: int, prior: Floats, places: Ints, capacity: int = FIRST_CAPACITY) -> Dictionaries:
        """Return n dictionaries without elements."""
        return Dictionaries(
            **{name: np.zeros(shape) for name, shape in _shapes(n, capacity, self.n_features).items()},
            rows=np.zeros((n, capacity), np.int64),
            totals=fresh_totals(n, self.noise or 0.0),
            sizes=np.zeros(n, np.int64),
            prior=prior.copy(),
            places=places,
            errors=fresh_errors(len(places), self.noise or 0.0),
            evicted=np.zeros(n, np.int64),
        )

    def _make_room(self, arriving: int) -> None:
        """Make room for that many more samples in every dictionary, at least doubling the capacity if it grows."""
        capacity = self.state.inputs.shape[1]
        needed = min(int(self.state.sizes.max()) + arriving, self._limits.budget + 1)
        if needed > capacity:
            n, (prior, places) = len(self.state.sizes), (self.state.prior, self.state.places)
            larger = self._empty(n, prior, places, max(2 * capacity, needed))
            for array, room in zip(self.state, larger, strict=True):
                room[tuple(map(slice, array.shape))] = array
            self.state = larger

    @classmethod
    def _check_arrays(cls, arrays: Mapping[str, Any], n_tasks: int, d: int) -> None:
        """Dictionaries may have any capacity, and the prior may have rows of tasks that left."""
        n = 1 if cls.shares else n_tasks
        n_rows, capacity = len(arrays["prior"]), np.shape(arrays["inputs"])[1]
        shapes = {"totals": (n, 3), "prior": (n_rows, n_rows), "errors": (n_tasks + 1, 3)} | _shapes(n, capacity, d)
        for name, shape in shapes.items():
            insist_numbers(arrays[name], name, shape)
        sizes, places = arrays["sizes"], arrays["places"]
        insist_integers(sizes, "sizes", (n,), 0, capacity)
        insist_integers(arrays["rows"], "rows", (n, capacity), 0, n_rows - 1)
        insist_integers(places, "places", (n_tasks, 2), 0, max(n, n_rows) - 1)
        insist_integers(places[:, 0], "dictionaries", (n_tasks,), 0, n - 1)
        insist_integers(places[:, 1], "rows of tasks", (n_tasks,), 0, n_rows - 1)
        insist_integers(arrays["evicted"], "evicted", (n,), 0, LARGEST_COUNT)
        used = np.arange(capacity) < sizes[:, None]
        diagonals = (arrays["factor"].diagonal(axis1=1, axis2=2), arrays["norms"], arrays["precision"])
        if not all((diagonal[used] > 0.0).all() for diagonal in diagonals):
            raise InputError(
                "an element of a dictionary has a norm, precision or pivot that is not positive: load an intact file"
            )

    def _fits(self, state: Dictionaries) -> bool:
        return bool((state.sizes <= self._limits.budget).all())


def _shapes(n: int, capacity: int, d: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the arrays of n dictionaries that grow with their capacity."""
    each, square = (n, capacity), (n, capacity, capacity)
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(("norms", "precision", "usage", "age", "weights"), each)
    return shapes | {"inputs": (*each, d), "factor": square, "covariance": square}


def with_prior(
    state: Dictionaries, penalty: float, kernel: Kernel | UserKernel, prior: Floats, places: Ints, errors: Floats
) -> Dictionaries:
    """Return the one dictionary of a multi-task learner, refitted under another prior between the tasks.

    The samples stay as the dictionary represents them: φ = Uα, so φ' = U'U⁻¹φ.
    """
    m = int(state.sizes[0])
    state = Dictionaries._make(array.copy() for array in state)._replace(prior=prior, places=places, errors=errors)
    if m == 0:
        return state
    inputs, rows = state.inputs[0, :m], state.rows[0, :m]
    K = prior[np.ix_(rows, rows)] * np.array([kernel(inputs.copy(), x.copy()) for x in inputs])
    with numerical_errors("the dictionary is singular with the enlarged graph", "raise novelty"):
        U: Floats = scipy.linalg.cholesky((K + K.T) / 2.0)
    information = inverse(symmetric(state.covariance[0, :m, :m]) * state.totals[0, SCALE])
    beta = state.weights[0, :m]
    turn = scipy.linalg.solve_triangular(state.factor[0, :m, :m], U.T, trans="T").T  # U' U⁻¹
    data = turn @ (information - penalty * np.eye(m)) @ turn.T
    target = information @ beta
    P = inverse(data + penalty * np.eye(m))
    weights = P @ (turn @ target)
    state.totals[0, SCALE] = 1.0
    state.totals[0, RESIDUAL] += target @ beta - (turn @ target) @ weights
    state.norms[0, :m] = K.diagonal()
    state.factor[0, :m, :m] = U
    state.precision[0, :m] = (scipy.linalg.solve_triangular(U, np.eye(m)) ** 2).sum(axis=1)
    state.covariance[0, :m, :m] = np.tril(P)
    state.weights[0, :m] = weights
    return state


def dual_weights(state: Dictionaries, f: int) -> Floats:
    """α = U⁻¹ β, the weights of the dictionary's elements."""
    m = int(state.sizes[f])
    if m == 0:
        return np.zeros(0)
    with numerical_errors("the weights of the dictionary can't be found", "raise novelty"):
        alpha: Floats = scipy.linalg.solve_triangular(state.factor[f, :m, :m], state.weights[f, :m])
    return alpha
