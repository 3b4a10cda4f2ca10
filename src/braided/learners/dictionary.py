"""What the two kernel learners share: dictionaries that grow, and kernels compiled or of the user's own."""

from __future__ import annotations

import sys

import numpy as np
import scipy.linalg

from braided._compiled import kernel_rls
from braided._compiled.kernel_rls import Dictionaries, Limits
from braided._compiled.rls import RESIDUAL
from braided.errors import InputError, NumericalError
from braided.graph import TaskGraph
from braided.kernels import Kernel, UserKernel, as_kernel
from braided.learners.base import Learner
from braided.learners.samples import Batch
from braided.validate import Floats, Ints, count, not_negative, positive

UNBOUNDED = sys.maxsize
FIRST_CAPACITY = 16


class KernelLearner(Learner):
    """A learner on one dictionary or several; says how to forecast and learn, not how tasks and dictionaries relate."""

    parameters = ("kernel", "penalty", "novelty", "budget", "novelty_relative")
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
        novelty_relative: bool = False,
    ) -> None:
        self.kernel = kernel
        self.penalty = positive(penalty, "penalty")
        self.novelty = not_negative(novelty, "novelty")
        self.budget = None if budget is None else count(budget, "budget")
        self.novelty_relative = bool(novelty_relative)
        most = UNBOUNDED if self.budget is None else self.budget
        self._limits = Limits(self.penalty, self.novelty, self.novelty_relative, most)
        self._kernel = as_kernel(kernel, count(n_features, "n_features"))
        super().__init__(graph, n_features)

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

    def _predict(self, X: Floats, tasks: Ints, mean: Floats, std: Floats) -> None:
        predict(self.state, self._limits, self._kernel, X, tasks, mean, std)

    def _progressive(self, batch: Batch, mean: Floats, std: Floats) -> int:
        self.state, learned = progressive(self.state, self._limits, self._kernel, batch, mean, std)
        return learned


def empty(n_dictionaries: int, n_features: int, prior: Floats, places: Ints) -> Dictionaries:
    """Return dictionaries without elements."""
    F, capacity = n_dictionaries, FIRST_CAPACITY
    return Dictionaries(
        inputs=np.zeros((F, capacity, n_features)),
        rows=np.zeros((F, capacity), np.int64),
        factor=np.zeros((F, capacity, capacity)),
        weights=np.zeros((F, capacity)),
        covariance=np.zeros((F, capacity, capacity)),
        totals=np.tile([1.0, 0.0, 0.0], (F, 1)),
        sizes=np.zeros(F, np.int64),
        prior=prior.copy(),
        places=places,
    )


def with_room(state: Dictionaries, least: int) -> Dictionaries:
    """Return the same dictionaries with at least twice the capacity."""
    extra = max(state.inputs.shape[1], least - state.inputs.shape[1])
    grown = {}
    for name, sides in {"inputs": 1, "rows": 1, "factor": 2, "weights": 1, "covariance": 2}.items():
        array = getattr(state, name)
        grown[name] = np.pad(array, [(0, 0)] + [(0, extra)] * sides + [(0, 0)] * (array.ndim - 1 - sides))
    return state._replace(**grown)


def predict(
    state: Dictionaries, bounds: Limits, kernel: Kernel | UserKernel, X: Floats, tasks: Ints, mean: Floats, std: Floats
) -> None:
    """Forecast with either kind of kernel."""
    if isinstance(kernel, Kernel):
        kernel_rls.predict(state, bounds, np.array(kernel.program, dtype=np.float64), X, tasks, mean, std)
        return
    for i in range(len(X)):
        phi, delta, _ = _coordinates(state, kernel, X[i], tasks[i])
        f = state.places[tasks[i], 0]
        mean[i] = kernel_rls.forecast(state, f, phi)
        if std.size:
            std[i] = kernel_rls.spread(state, bounds, f, phi, delta)


def progressive(
    state: Dictionaries, bounds: Limits, kernel: Kernel | UserKernel, batch: Batch, mean: Floats, std: Floats
) -> tuple[Dictionaries, int]:
    """Forecast and learn; return the state, in larger arrays where it had to grow, and how many were learned."""
    if not isinstance(kernel, Kernel):
        return _progressive_by_user(state, bounds, kernel, batch, mean, std)
    program = np.array(kernel.program, dtype=np.float64)
    X, y, tasks, weights, *_, ends = batch
    done = 0
    while True:
        learned, full = kernel_rls.progressive_inplace(
            state,
            bounds,
            program,
            X[done:],
            y[done:],
            tasks[done:],
            weights[done:],
            ends[ends > done] - done,
            mean[done:],
            std[done:],
        )
        done += learned
        if not full:
            return state, done
        next_group = int(ends[ends > done][0]) - done
        state = with_room(state, min(int(state.sizes.max()) + next_group, bounds.budget))


def _progressive_by_user(
    state: Dictionaries, bounds: Limits, kernel: UserKernel, batch: Batch, mean: Floats, std: Floats
) -> tuple[Dictionaries, int]:
    """Sample by sample in Python, on a copy: a kernel of the user's may raise at any moment."""
    state = Dictionaries._make(array.copy() for array in state)
    first = 0
    for end in batch.ends:
        group = slice(first, end)
        predict(state, bounds, kernel, batch.X[group], batch.tasks[group], mean[group], std[group])
        for i in range(first, end):
            if min(int(state.sizes.max()) + 1, bounds.budget) > state.inputs.shape[1]:
                state = with_room(state, 0)
            phi, delta, kxx = _coordinates(state, kernel, batch.X[i], batch.tasks[i])
            g = np.empty(len(phi))
            if not kernel_rls.absorb_inplace(
                state, bounds, g, batch.X[i], batch.tasks[i], phi, delta, kxx, batch.y[i], batch.weights[i]
            ):
                return state, i
        first = end
    return state, first


def _coordinates(state: Dictionaries, kernel: UserKernel, x: Floats, task: int) -> tuple[Floats, float, float]:
    """φ(x) with room for one more, its novelty and k(x, x), for a kernel of the user's own."""
    f, row = state.places[task]
    m = int(state.sizes[f])
    points = np.vstack([state.inputs[f, :m], x])
    kappa = np.asarray(kernel(points.copy(), x.copy()), dtype=np.float64)
    if kappa.shape != (m + 1,) or not np.isfinite(kappa).all():
        raise InputError(f"the kernel gave {kappa!r} for X of shape {points.shape}: it must give a finite value a row")
    phi = state.prior[row, np.append(state.rows[f, :m], row)] * kappa
    kxx = float(phi[m])
    explained = kernel_rls.whiten_inplace(phi, state.factor[f], m)
    return phi, max(kxx - explained, 0.0), kxx


def with_prior(
    state: Dictionaries, penalty: float, kernel: Kernel | UserKernel, prior: Floats, places: Ints
) -> Dictionaries:
    """Return the one dictionary of a multi-task learner under another prior between the tasks.

    The samples stay as the dictionary represents them (φ = Uα, so φ' = U'U⁻¹φ), and are fitted anew.
    """
    m = int(state.sizes[0])
    state = Dictionaries._make(array.copy() for array in state)._replace(prior=prior, places=places)
    if m == 0:
        return state
    inputs, rows = state.inputs[0, :m], state.rows[0, :m]
    K = prior[np.ix_(rows, rows)] * np.array([kernel(inputs, x) for x in inputs])
    try:
        U: Floats = scipy.linalg.cholesky((K + K.T) / 2.0)
    except np.linalg.LinAlgError as error:
        raise NumericalError("the dictionary is singular under the enlarged graph: raise novelty") from error
    P = np.tril(state.covariance[0, :m, :m])
    information = _inverse(P + np.tril(P, -1).T)
    beta = state.weights[0, :m]
    turn = scipy.linalg.solve_triangular(state.factor[0, :m, :m], U.T, trans="T").T  # U' U⁻¹
    data = turn @ (information - penalty * np.eye(m)) @ turn.T
    target = information @ beta
    P = _inverse(data + penalty * np.eye(m))
    weights = P @ (turn @ target)
    state.totals[0, RESIDUAL] += target @ beta - (turn @ target) @ weights
    state.factor[0, :m, :m] = U
    state.covariance[0, :m, :m] = np.tril(P)
    state.weights[0, :m] = weights
    return state


def dual_weights(state: Dictionaries, f: int) -> Floats:
    """α = U⁻¹ β, the weights of the dictionary's elements."""
    m = int(state.sizes[f])
    if m == 0:
        return np.zeros(0)
    alpha: Floats = scipy.linalg.solve_triangular(state.factor[f, :m, :m], state.weights[f, :m])
    return alpha


def _inverse(matrix: Floats) -> Floats:
    inverse = scipy.linalg.cho_solve(scipy.linalg.cho_factor(matrix, lower=True), np.eye(len(matrix)))
    symmetric: Floats = (inverse + inverse.T) / 2.0
    return symmetric
