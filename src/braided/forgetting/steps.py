"""Policy: it turns a chunk of samples and its clock into steps, and declares what it needs of a learner."""

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from braided._compiled.batch import Clock as Clock
from braided._compiled.batch import Steps as Steps
from braided.graph import TaskKey
from braided.types import Floats


class Prior(NamedTuple):
    """The prior of the weights of F filters, of m tasks each."""

    covariance: Floats  # (F, m, m)
    information: Floats  # (F, m, m) its inverse
    coupling: Floats  # (F, m, m) the covariance that the weights drift with by default
    variances: Floats  # (F, m)
    tasks: tuple[TaskKey, ...]

    @classmethod
    def of(cls, coupling: Floats, relation: Floats, penalty: float, tasks: tuple[TaskKey, ...]) -> "Prior":
        """Return the prior (λA)⁻¹, from A⁻¹ and A."""
        covariance = coupling / penalty
        return cls(covariance, penalty * relation, coupling, covariance.diagonal(axis1=1, axis2=2).copy(), tasks)


EMPTY = np.empty((0, 0, 0))
NO_PRIOR = Prior(EMPTY, EMPTY, EMPTY, np.empty((0, 0)), ())  # for learners that only use the factors of the steps


class Policy(ABC):
    """How a recursive learner forgets. Learners read these capabilities and never ask which policy they have."""

    is_uniform: bool = False  # everything fades alike, whichever task is seen
    fades_unseen: bool = False  # a sample makes tasks fade that it is not of
    has_own_clocks: bool = False  # a task fades when it is seen, and only then
    needs_guard: bool = False  # P can wind up, so that the information is kept beside it
    needs_covariance: bool = True  # acts on P, beyond factors by which the past fades
    keeps_prior: bool = False  # never fades the prior: the condition of kernel learners
    moves_weights: bool = False  # changes all filters at the opening of a round, before the sample is learned
    has_fixed_steps: bool = False  # the steps of a sample depend only on whether it opens a round
    has_objective: bool = True  # the weights minimise an objective, to which a task that joins adds its part
    needs_graph: bool = False  # couples tasks by a graph of its own
    has_gains: bool = True  # weights are moved by samples alone, along what P loses

    @abstractmethod
    def steps(self, clock: Clock, prior: Prior) -> Steps:
        """Return what to do before each sample of a chunk."""

    def insist_tasks(self, tasks: tuple[TaskKey, ...]) -> None:  # noqa: B027 (most policies work for any tasks)
        """Refuse tasks that the policy can't start with."""

    def for_any_tasks(self) -> "Policy":
        """Return the policy for any tasks: those that it was made for may have left a loaded model."""
        return self

    def _no_steps(self, n: int, prior: Prior) -> Steps:
        """Return the steps of n samples before which nothing happens, with the guard where it is needed."""
        guarded = slice(None) if self.needs_guard else slice(0)
        guard = prior.information[guarded], prior.variances[guarded]
        return Steps(np.ones((n, 3)), np.zeros(n), 1.0, prior.covariance, *guard)
