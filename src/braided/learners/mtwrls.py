"""MTWRLS: multi-task weighted recursive least squares, Algorithm 1 of the paper.

One recursive least squares filter on the stacked weights of all tasks, whose starting covariance carries the graph:
after every sample it holds the exact solution of the graph-regularised problem.

| symbol | name         | shape    | meaning                                                      |
|--------|--------------|----------|--------------------------------------------------------------|
| λ      | `penalty`    |          | weight of the graph and its ridge against the data           |
| σ      | `forgetting` |          | what the past fades by, per sample (or a policy)             |
| A      | `relation`   | (T, T)   | of the graph                                                 |
| w      | `coef`       | (T, d)   | the tasks' weights, Eq. 17                                   |
| P      | `covariance` | (dT, dT) | inverse of the information, starts as (λA)⁻¹ ⊗ I, Eq. 18     |
| s²     | `noise_variance` |      | minimum of the objective over the effective number of samples|

Costs O(d²T²) per sample, and as much memory; for many tasks on a sparse graph there is solver="local", which holds the
same weights within a tolerance at O(d² + d · neighbours) for each task that has to move, however many there are. A
forecast's variance is s² (1 + z'Pz); while samples are few, s² is as good as the prior.

>>> import braided as bd
>>> graph = bd.TaskGraph([[0, 1], [1, 0]], tasks=["north", "south"], ridge=0.1)
>>> model = bd.MTWRLS(graph, n_features=2, penalty=0.5)
>>> model.learn_one([1.0, 2.0], 5.0, task="north")
>>> round(model.predict_one([1.0, 2.0], task="south"), 3)  # never seen, and yet no longer zero
4.46
>>> model.coef.round(3)
array([[0.981, 1.963],
       [0.892, 1.784]])

Reference: Lencione & Von Zuben, arXiv 2308.01938, Algorithm 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, final, get_args

import numpy as np
import scipy.linalg

from braided._compiled.batch import Batch
from braided._compiled.filters import Filters, covariances, fresh_filters
from braided._compiled.local import forecast_inplace
from braided._compiled.solve import Local
from braided._compiled.step import COUNT, FLOOR, RESIDUAL, SCALE, noise_variance, symmetric
from braided.errors import InputError
from braided.forgetting import NO_PRIOR, Forgetting, Policy, Prior, as_policy, uniform_fades
from braided.graph import TaskGraph
from braided.learners.base import Health
from braided.learners.parts.filters import FilterLearner
from braided.learners.parts.joining import arrival, enlarge, errors_with_one_more
from braided.learners.solvers import local
from braided.learners.solvers.local import Runner
from braided.matrices import insist_it_fits, inverse
from braided.types import Floats, Ints
from braided.validate import choice, fraction

Solver: TypeAlias = Literal["auto", "dense", "blocked", "local"]
CONCRETE_SOLVERS = ("dense", "blocked", "local")  # what "auto" chooses among
BLOCKED_FROM = 64  # weights of all tasks
LOCAL_FROM = 2000
ROOM = ((4000, 64), (1000, 32), (0, 8))  # weights from which so many samples go into P at once


@final
class MTWRLS(FilterLearner):
    """Multi-task weighted recursive least squares.

    Parameters
    ----------
    graph
        How alike the tasks are.
    n_features
        d, the length of every input.
    penalty
        λ, above 0; how much the graph weighs against the data. It depends on the units and the noise of the data, so
        choose it by a progressive run over past data, among powers of ten.
    forgetting
        A number in (0, 1] means the paper's: the past fades by it at every sample, of any task, so by its T-th power
        per round. A policy of `braided.forgetting` says otherwise: by round, by the clock, or without losing the prior
        (`Restore`, `Directional`, `Drift`). Strong exponential forgetting also fades the prior, and with it the
        coupling between the tasks; a guard (see `Exponential`) keeps the arithmetic sound.
    robust
        k, above 0: an innovation of more than k standard deviations, by those of its task so far, is given the weight
        that makes it one of k. Then no sample, however wild, moves any forecast by more than k of that forecast's own
        standard deviations (without the noise). 4 or 5 is usual; None takes every value as it is. The very first sample
        has nothing to be compared with, unless `noise` is given.
    noise
        The standard deviation that the noise is expected to have, until samples tell.
    solver
        "dense" touches P at every sample; "blocked" once for several, which is faster from about dT = 64 on and gives
        the same forecasts to rounding. "local" is for thousands of tasks on a sparse graph: it keeps no P of all tasks,
        only that of each given its neighbours, and finds the weights anew by iteration. All fades alike there
        (`Exponential` per sample or round, `HalfLife`), and deviations are a little too small, as they take neighbours'
        neighbours as known (but too large where a loose tolerance leaves error in the noise). "auto" takes "local" on a
        sparse graph from 2,000 weights on, where the policy allows it, "blocked" from 64 on unless tasks forget by
        clocks of their own, which would let nothing wait, and else "dense"; `uses` tells which.
    tolerance
        Of solver="local": iterations go on until the forecasts of all tasks would move, in the mean square and at usual
        inputs, by no more than this share of the usual innovation. How far they then are from the exact solution's is
        of that order once what is usual has settled: not after the first round, whose innovations are those of a model
        that knows nothing (then they can be off by hundreds of times that, and after the next by ten).
    """

    parameters = (*FilterLearner.parameters, "solver", "tolerance")
    state: Filters | Local
    uses: str  # the solver that was chosen: "dense", "blocked" or "local"

    def __init__(
        self,
        graph: TaskGraph,
        n_features: int,
        penalty: float = 1.0,
        forgetting: float | Policy | Forgetting = 1.0,
        robust: float | None = None,
        noise: float | None = None,
        solver: Solver = "auto",
        tolerance: float = 2e-4,
    ) -> None:
        self.solver = choice(solver, "solver", get_args(Solver))
        self.tolerance = fraction(tolerance, "tolerance")
        self.uses = ""
        super().__init__(graph, n_features, penalty, as_policy(forgetting, "MTWRLS"), robust, noise)
        self.forgetting.insist_tasks(self.tasks)

    @property
    def coef(self) -> Floats:
        """w, the weights (T, d)."""
        if isinstance(self.state, Local):
            return local.coef(self.state)
        return self.state.weights.reshape(-1, self.n_features).copy()

    @property
    def covariance(self) -> Floats:
        """P, the covariance (dT, dT) of the stacked weights, up to the noise."""
        if isinstance(self.state, Local):
            raise AttributeError('no covariance with solver="local", which keeps none: use "blocked"')
        return symmetric(covariances(self.state)[0])

    @property
    def noise_variance(self) -> float:
        """s², the estimated variance of the noise; infinite before the first sample."""
        return float(noise_variance(self.state.totals)[0])

    @property
    def health(self) -> Health:
        """What it has learned, and how its arithmetic is; with solver="local", variances are given the neighbours."""
        if isinstance(self.state, Local):
            return Health.of(self.samples, 0, local.variances(self.state), self.state.errors)
        return super().health

    def _derive(self, graph: TaskGraph) -> None:
        self.uses = self.uses or self._choice(graph)  # for good, though tasks may join and leave
        if self.uses != "local":
            remedy = 'use solver="local", by a sparse graph and forgetting that fades all alike, or fewer tasks'
            insist_it_fits(graph.n_tasks * self.n_features, f"solver={self.uses!r}: P", remedy)
            super()._derive(graph)
        elif self.forgetting.is_uniform:
            self._runner = Runner(self.tolerance, self.robust or 0.0)
        else:
            raise InputError(
                f'solver="local" can only fade all alike, not by {self.forgetting!r}: use Exponential or HalfLife, or '
                '"blocked" for few tasks'
            )

    def _choice(self, graph: TaskGraph) -> str:
        n_weights = graph.n_tasks * self.n_features
        if self.solver != "auto":
            return self.solver
        if graph.is_sparse and n_weights >= LOCAL_FROM and self.forgetting.is_uniform:
            return "local"
        return "blocked" if n_weights >= BLOCKED_FROM and not self.forgetting.has_own_clocks else "dense"

    def _prior_of(self, graph: TaskGraph) -> Prior:
        return Prior.of(graph.inverse[None], graph.dense_relation[None], self.penalty)

    def _start(self) -> Filters | Local:
        if self.uses == "local":
            return local.start(self.graph, self.n_features, self.penalty, self.noise or 0.0)
        each = np.eye(self.n_features)
        covariance, information = (np.kron(part[0], each) for part in self._prior[:2])
        return self._filter(np.zeros((self.graph.n_tasks, self.n_features)), covariance, information)

    def _predict(self, X: Floats, tasks: Ints, mean: Floats, std: Floats) -> None:
        if isinstance(self.state, Local):
            forecast_inplace(mean, std, self.state, X, self.state.places[tasks], 0, len(X))
        else:
            super()._predict(X, tasks, mean, std)

    def _progressive(self, batch: Batch, mean: Floats, std: Floats) -> int:
        if isinstance(self.state, Local):
            steps = self.forgetting.steps(batch.clock, NO_PRIOR, self.tasks)
            if (steps.fades[:, 1] != 1.0).any():
                known = f"{self.forgetting!r} fades what is known of one task only"
                raise InputError(f'{known}: solver="local" can only fade all alike')
            fades = uniform_fades(steps)
            return self._runner.progressive(self.state, batch, fades, mean, std)
        return super()._progressive(batch, mean, std)

    def _learn_at_once(self, x: Floats, y: float, position: int, weight: float, opens: bool) -> bool:
        return not isinstance(self.state, Local) and super()._learn_at_once(x, y, position, weight, opens)

    def _joined(self, graph: TaskGraph) -> Filters | Local:
        """The new task's edges and ridge enter at full strength, however much of the first prior has faded."""
        if isinstance(self.state, Local):
            state = local.joined(self.state, graph, self.penalty)
            self._runner.settle(state)
            return state
        P, weights, grown = enlarge(self.covariance, self.coef, arrival(graph), self.penalty)
        d = self.n_features
        added = graph.dense_relation - np.pad(self.graph.dense_relation, (0, 1))
        information = np.pad(information_of(self.state), (0, d)) + self.penalty * np.kron(added, np.eye(d))
        errors = errors_with_one_more(self.state.errors)
        return self._changed(
            self.state, weights, P, information, errors, grown if self.forgetting.has_objective else 0.0
        )

    def _left(self, graph: TaskGraph, position: int) -> Filters | Local:
        """Marginalise: what the task has taught the others stays, and so do their forecasts."""
        if isinstance(self.state, Local):
            return local.left(self.state, position)
        d, information = self.n_features, information_of(self.state)
        gone = np.arange(position * d, (position + 1) * d)
        stay = np.delete(np.arange(len(information)), gone)
        shared, own = information[np.ix_(stay, gone)], information[np.ix_(gone, gone)]
        own += FLOOR * self._prior.information[0, position, position] * np.eye(d)
        P = self.covariance[np.ix_(stay, stay)]
        try:
            information = information[np.ix_(stay, stay)] - shared @ np.linalg.solve(own, shared.T)
        except np.linalg.LinAlgError:  # inputs so large that the task's own information drowns the prior in rounding
            information = inverse(P)
        weights, errors = (np.delete(rows, position, axis=0) for rows in (self.coef, self.state.errors))
        return self._changed(self.state, weights, P, information, errors)

    def _changed(
        self, before: Filters, weights: Floats, P: Floats, information: Floats, errors: Floats, grown: float = 0.0
    ) -> Filters:
        state = self._filter(weights, P, information)
        state.totals[0, [RESIDUAL, COUNT]] = before.totals[0, [RESIDUAL, COUNT]] + [grown, 0.0]
        return state._replace(errors=errors, guarded=before.guarded.copy())

    def _filter(self, weights: Floats, P: Floats, information: Floats) -> Filters:
        given = weights.reshape(1, -1), P[None], information[None]
        room = 0 if self.uses == "dense" else next(room for least, room in ROOM if weights.size >= least)
        return fresh_filters(*given, self.n_features, self.noise or 0.0, room)

    @classmethod
    def _check_arrays(cls, arrays: Mapping[str, Any], n_tasks: int, d: int) -> None:
        if arrays.keys() == set(Local._fields):
            local.check(arrays, n_tasks, d)
        else:
            super()._check_arrays(arrays, n_tasks, d)

    def _fits(self, state: Filters | Local) -> bool:
        return isinstance(state, Local) or super()._fits(state)  # tasks that left are still in there

    def __repr__(self) -> str:
        """Say what this is, what it has seen, and which solver is in use."""
        return f"{super().__repr__()}, {self.uses}"

    def dump(self) -> dict[str, Any]:
        """Return all that makes this learner, with the solver that was chosen."""
        return super().dump() | {"uses": self.uses}

    @classmethod
    def restore(cls, dumped: Mapping[str, Any]) -> MTWRLS:
        """Return the learner that `dump` came from, with the same solver, whatever would be chosen now."""
        parameters = dumped["parameters"]
        solver, uses = (
            choice(parameters["solver"], "solver", get_args(Solver)),
            choice(dumped["uses"], "uses", CONCRETE_SOLVERS),
        )
        policy = as_policy(parameters["forgetting"], "MTWRLS")
        changed = {"solver": uses, "forgetting": policy.for_any_tasks()}
        model = super().restore({**dumped, "parameters": parameters | changed})
        model.solver, model.forgetting = solver, policy
        return model


def information_of(state: Filters) -> Floats:
    """The inverse of P where the policy is guarded; elsewhere `base` is not kept up, nor used."""
    information: Floats = (state.base[0] + scipy.linalg.block_diag(*state.gained)) / state.totals[0, SCALE]
    return information
