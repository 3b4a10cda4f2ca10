"""Weights that drift, similar tasks together."""

from dataclasses import dataclass
from typing import final

import numpy as np

from braided.errors import InputError
from braided.forgetting.steps import Clock, Policy, Prior, Steps
from braided.graph import TaskGraph, TaskKey, insist_graph
from braided.types import Floats
from braided.validate import positive


@final
@dataclass(frozen=True, eq=False)
class Drift(Policy):
    """Weights that wander, similar tasks together: once a round P ← P + q A_Q⁻¹ ⊗ I.

    A Kalman filter for a coupled random walk: Cov(w_n, w_m) = P₀ + min(n, m) q A_Q⁻¹ ⊗ I. `graph` gives A_Q, and
    may differ from that of the prior; it defaults to the learner's graph (one filter per task: none). A task that the
    graph does not know drifts by itself.
    """

    variance: float
    graph: TaskGraph | None = None

    moves_weights = True

    def __post_init__(self) -> None:
        """Check the variance and the graph."""
        vars(self).update(variance=positive(self.variance, "variance"), needs_graph=self.graph is not None)
        if self.graph is not None:
            insist_graph(self.graph)

    def steps(self, clock: Clock, prior: Prior) -> Steps:
        """Move the weights when a round opens."""
        moves, noise = clock.opens.astype(np.float64), self.variance * self._coupling(prior)
        return self._no_steps(moves.size, prior)._replace(moves=moves, noise=noise)

    def _coupling(self, prior: Prior) -> Floats:
        graph, tasks = self.graph, prior.tasks
        if graph is None:
            return prior.coupling
        known = [place for place, task in enumerate(tasks) if task in graph.tasks]
        covariance = np.diag(np.full(len(tasks), float(np.diag(graph.inverse).mean())))
        order = graph.indices([tasks[place] for place in known])
        covariance[np.ix_(known, known)] = graph.inverse[np.ix_(order, order)]
        return covariance[None]

    def insist_tasks(self, tasks: tuple[TaskKey, ...]) -> None:
        """Refuse tasks of which the graph knows none; those that it knows may leave later."""
        if self.graph is not None and not set(self.graph.tasks) & set(tasks):
            raise InputError(
                f"the graph of Drift knows none of the tasks, such as {tasks[0]!r}: give one of the same tasks"
            )

    def for_any_tasks(self) -> "Drift":
        """Return the policy without its graph."""
        return Drift(self.variance)
