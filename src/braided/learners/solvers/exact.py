"""The exact solver of MT-WRLS: one filter on the stacked weights of all tasks, with the graph in its prior."""

from typing import final

import numpy as np
import scipy.linalg

from braided._compiled.filters import Filters, fresh_filters
from braided._compiled.rls_step import COUNT, PRIOR_FLOOR, RESIDUAL, SCALE
from braided.forgetting.steps import Prior
from braided.graph import TaskGraph
from braided.learners.parts.joining import arrival, enlarge, errors_with_one_more
from braided.learners.solvers.filter_solver import FilterSolver, Setting
from braided.matrices import insist_it_fits, inverse
from braided.types import Floats

ROOM = ((4000, 64), (1000, 32), (0, 8))  # number of weights from which a blocked P takes up that many samples together


@final
class ExactSolver(FilterSolver):
    """One filter of size dT; a blocked P takes up several samples together, with the same forecasts up to rounding."""

    is_joint = True

    def __init__(self, setting: Setting, is_blocked: bool) -> None:
        """Refuse a P that does not fit in memory."""
        graph, self.is_blocked = setting.graph, is_blocked
        remedy = 'use solver="local", with a sparse graph and forgetting that fades all tasks alike, or fewer tasks'
        kind = "blocked" if is_blocked else "dense"
        insist_it_fits(graph.n_tasks * setting.n_features, f"solver={kind!r}: P", remedy)
        prior = Prior.of(graph.inverse[None], graph.dense_relation[None], setting.penalty, graph.tasks)
        super().__init__(setting, prior)

    def start(self) -> Filters:
        """Return the state before the first sample."""
        each = np.eye(self.setting.n_features)
        covariance, information = (np.kron(part[0], each) for part in (self.prior.covariance, self.prior.information))
        return self._filter(np.zeros((self.setting.graph.n_tasks, self.setting.n_features)), covariance, information)

    def _filter(self, weights: Floats, P: Floats, information: Floats) -> Filters:
        room = next(room for least, room in ROOM if weights.size >= least) if self.is_blocked else 0
        given = weights.reshape(1, -1), P[None], information[None]
        return fresh_filters(*given, self.setting.n_features, self.setting.noise, room)

    def covariance(self, state: Filters) -> Floats:
        """Return P (dT, dT)."""
        P: Floats = super().covariance(state)[0]
        return P

    def join(self, state: Filters, graph: TaskGraph) -> Filters:
        """Let the new task's edges and ridge enter at full strength, however much of the first prior has faded."""
        d, penalty, before = self.setting.n_features, self.setting.penalty, self.setting.graph
        P, weights, grown = enlarge(self.covariance(state), self.coef(state), arrival(graph), penalty)
        added = graph.dense_relation - np.pad(before.dense_relation, (0, 1))
        information = np.pad(information_of(state), (0, d)) + penalty * np.kron(added, np.eye(d))
        changed = self._changed(state, weights, P, information)._replace(errors=errors_with_one_more(state.errors))
        changed.totals[0, RESIDUAL] += grown if self.setting.forgetting.has_objective else 0.0
        return changed

    def leave(self, state: Filters, position: int) -> Filters:
        """Marginalise: what the task has taught the others stays, and so do their forecasts."""
        d, information = self.setting.n_features, information_of(state)
        gone = np.arange(position * d, (position + 1) * d)
        stay = np.delete(np.arange(len(information)), gone)
        shared, own = information[np.ix_(stay, gone)], information[np.ix_(gone, gone)]
        own += PRIOR_FLOOR * self.prior.information[0, position, position] * np.eye(d)
        P = self.covariance(state)[np.ix_(stay, stay)]
        try:
            information = information[np.ix_(stay, stay)] - shared @ np.linalg.solve(own, shared.T)
        except np.linalg.LinAlgError:  # inputs so large that the task's own information drowns the prior in rounding
            information = inverse(P)
        weights, errors = (np.delete(rows, position, axis=0) for rows in (self.coef(state), state.errors))
        return self._changed(state, weights, P, information)._replace(errors=errors)

    def _changed(self, before: Filters, weights: Floats, P: Floats, information: Floats) -> Filters:
        state = self._filter(weights, P, information)
        state.totals[0, [RESIDUAL, COUNT]] = before.totals[0, [RESIDUAL, COUNT]]
        return state._replace(guarded=before.guarded.copy())


def information_of(state: Filters) -> Floats:
    """Return the inverse of P where the policy is guarded; elsewhere `base` is neither maintained nor used."""
    information: Floats = (state.base[0] + scipy.linalg.block_diag(*state.gained)) / state.totals[0, SCALE]
    return information
