"""Forgetting: how fast the past fades, as a part that a recursive learner is given.

| policy                | what the weights are taken to do     | what is forgotten                                  |
|-----------------------|--------------------------------------|----------------------------------------------------|
| `Exponential(σ, per)` | anything, slowly                     | everything alike, the prior too                    |
| `HalfLife(duration)`  | the same, by the clock               | everything alike, by the time that has passed      |
| `Restore(ρ)`          | wander, and come back to the prior   | towards the prior, so that sharing never fades     |
| `Directional(σ)`      | anything, slowly                     | only what the new sample tells about               |
| `Drift(q, graph)`     | wander for ever, alike tasks alike   | as much as they may have wandered                  |

A policy turns a chunk of samples into *steps*: factors by which everything, the sample's own task, or what its input
points to fades before the sample is learned, and motions of all weights at the opening of rounds. The learner applies
them and knows no more of it.

>>> Exponential(0.9, per="round").fades(np.array([True, False, True]))
array([[0.9, 1. ],
       [1. , 1. ],
       [0.9, 1. ]])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, cast, final, runtime_checkable

import numpy as np

from braided.errors import InputError
from braided.graph import TaskGraph, TaskKey, insist_graph
from braided.types import Flags, Floats, Ints
from braided.validate import LEAST, choice, floats, fraction, positive


@runtime_checkable
class Forgetting(Protocol):
    """What a recursive learner asks of a policy of one's own."""

    def fades(self, opens: Flags) -> Floats:
        """Return (n, 2): what everything, and what the sample's task, fades by before each sample.

        `opens` tells which samples are the first of their round.
        """


class Steps(NamedTuple):
    """What compiled code does before each sample of a chunk."""

    fades: Floats  # (n, 3) what everything, the sample's own task, and the direction of its input fades by
    moves: Floats  # (n,) what the information of all filters fades by before they move; 0 where they do not move
    shrink: float  # what the weights are multiplied by when they move
    noise: Floats  # (F, m, m) what is added to the covariance of the tasks' weights then, per filter of m tasks
    relation: Floats  # (F, m, m) the information of the prior, for the guard against wind-up; empty without
    limits: Floats  # (F, m) the prior variances


@final
@dataclass(frozen=True)
class Exponential:
    """Exponential forgetting: the past weighs `factor` times what it did, at every tick of a clock.

    per="sample": the paper's. A tick per sample, of any task, so `factor`^T per round. After i samples, sample j weighs
    σ^(i−j) and the prior σ^i.

    per="round": a tick per round. After n rounds, a sample of round m weighs σ^(n−m) and the prior σ^n. Samples
    learned without a label are a round each.

    per="task": every task has a clock of its own, which ticks when the task is seen and fades what is known of that
    task only: Φ ← D Φ D with √σ on the task's places of the diagonal D, and the estimate stays. Without edges these
    are the independent filters of WRLS.

    *Guard.* Where nothing new comes (a silent task, a constant input), the information fades without end, and P winds
    up. Once a variance exceeds 1e8 times that of the prior, or the arithmetic breaks down, P is made anew from the
    information, with a millionth of the prior put back. Where nothing winds up, nothing is changed. Factors far below
    0.9 per sample wind up all the time, and each rescue costs O((dT)³); `guard=False` stops with a NumericalError
    instead.
    """

    factor: float
    per: Literal["sample", "round", "task"] = "sample"
    guard: bool = field(default=True, repr=False)

    def __post_init__(self) -> None:
        """Check both."""
        object.__setattr__(self, "factor", fraction(self.factor, "factor"))
        choice(self.per, "per", ("sample", "round", "task"))

    def fades(self, opens: Flags) -> Floats:
        """Return what everything, and what the sample's task, fades by before each sample."""
        fades = np.ones((opens.size, 2))
        if self.per == "round":
            fades[opens, 0] = self.factor
        else:
            fades[:, 0 if self.per == "sample" else 1] = self.factor
        return fades


@final
@dataclass(frozen=True)
class HalfLife:
    """Exponential forgetting by the clock: after `duration`, the past weighs half.

    A sample learned t before the last round weighs ½^(t / duration), and so does the prior, counted from the first
    round. `duration` is a timedelta where rounds are time stamps, and a number in their units where they are integers.
    However long the pause, one step leaves at least 1e-9 of what was known.
    """

    duration: float  # microseconds where it was a timedelta

    def __post_init__(self) -> None:
        """Turn a timedelta into microseconds."""
        given: Any = self.duration
        if isinstance(given, np.timedelta64):
            given = given / np.timedelta64(1, "us")
        elif isinstance(given, timedelta):
            given = given / timedelta(microseconds=1)
        object.__setattr__(self, "duration", positive(given, "duration"))

    def factors(self, opens: Flags, labels: Ints, last: int, unlabelled: int) -> Floats:
        """Return what everything fades by at the samples that open a round, and 0 at the others."""
        if (labels == unlabelled).any():
            raise InputError("HalfLife goes by the clock: give the time stamps of the samples as rounds=")
        before = np.append(last if last != unlabelled else labels[:1], labels[:-1])[: labels.size]
        elapsed = np.maximum(labels.astype(np.float64) - before, 0.0)
        return np.where(opens, np.maximum(0.5 ** (elapsed / self.duration), LEAST), 0.0)


@final
@dataclass(frozen=True)
class Restore:
    """Forgetting towards the prior: once a round w ← ρ w, P ← ρ² P + (1 − ρ²) P₀.

    These are the steps of a Kalman filter for weights that wander but come back: w_n = ρ w_{n−1} + noise, with the
    prior P₀ as what they are when nothing is known, so Cov(w_n, w_m) = ρ^|n−m| P₀. P never exceeds P₀, and the
    coupling between the tasks never fades.
    """

    factor: float

    def __post_init__(self) -> None:
        """Check it."""
        object.__setattr__(self, "factor", fraction(self.factor, "factor"))


@final
@dataclass(frozen=True)
class Directional:
    """Forgetting only in the direction that the new sample tells about (Kulhavý's restricted exponential forgetting).

    With r = z'Pz, the information about z fades to σ / r before the sample adds to it; of all else nothing is
    forgotten: Φ ← Φ + (1 − (1 − σ)/r) z z'. Where the input does not go, P does not grow, so nothing winds up.

    Reference: R. Kulhavý, Restricted exponential forgetting in real-time identification, Automatica 23 (1987).
    """

    factor: float

    def __post_init__(self) -> None:
        """Check it."""
        object.__setattr__(self, "factor", fraction(self.factor, "factor"))


@final
@dataclass(frozen=True, eq=False)
class Drift:
    """Weights that wander, alike tasks alike: once a round P ← P + q A_Q⁻¹ ⊗ I.

    A Kalman filter for a coupled random walk: Cov(w_n, w_m) = P₀ + min(n, m) q A_Q⁻¹ ⊗ I. `graph` gives A_Q, and
    need not be the one of the prior; without it the learner's own is taken (one filter per task: none).
    """

    variance: float
    graph: TaskGraph | None = None

    def __post_init__(self) -> None:
        """Check both."""
        object.__setattr__(self, "variance", positive(self.variance, "variance"))
        if self.graph is not None:
            insist_graph(self.graph)


OfAllClocks: TypeAlias = HalfLife | Restore | Directional | Drift  # of any learner with a covariance
Policy: TypeAlias = Forgetting | OfAllClocks


class Prior(NamedTuple):
    """What the weights of F filters, of m tasks each, start from."""

    covariance: Floats  # (F, m, m)
    information: Floats  # (F, m, m) its inverse
    coupling: Floats  # (F, m, m) the covariance that they drift with, without a graph for that
    variances: Floats  # (F, m)

    @classmethod
    def of(cls, coupling: Floats, relation: Floats, penalty: float) -> Prior:
        """Return (λA)⁻¹ and all that goes with it, from A⁻¹ and A."""
        covariance = coupling / penalty
        return cls(covariance, penalty * relation, coupling, covariance.diagonal(axis1=1, axis2=2).copy())


def steps_of(
    policy: Policy, prior: Prior, tasks: Sequence[TaskKey], opens: Flags, labels: Ints, last: int, unlabelled: int
) -> Steps:
    """Return the steps of a chunk of samples.

    `labels` are the rounds, `last` the one learned before, `unlabelled` what stands for none.
    """
    n = opens.size
    fades, moves, shrink, noise = np.ones((n, 3)), np.zeros(n), 1.0, prior.covariance
    relation, limits = prior.information[:0], prior.variances[:0]
    if isinstance(policy, HalfLife):
        moves, noise = policy.factors(opens, labels, last, unlabelled), np.zeros_like(prior.covariance)
    elif isinstance(policy, Restore):
        moves, shrink, noise = opens.astype(np.float64), policy.factor, (1.0 - policy.factor**2) * prior.covariance
    elif isinstance(policy, Drift):
        moves, noise = opens.astype(np.float64), policy.variance * _coupling(policy.graph, prior.coupling, tasks)
    elif isinstance(policy, Directional):
        fades[:, 2] = policy.factor
    else:
        fades[:, :2] = checked_fades(policy, opens)
    if _is_guarded(policy):
        relation, limits = prior.information, prior.variances
    return Steps(fades, moves, shrink, noise, relation, limits)


def insist_own_graph(policy: Policy, tasks: Sequence[TaskKey]) -> None:
    """Refuse a policy whose graph knows none of the tasks that a learner starts with; they may leave later."""
    if isinstance(policy, Drift) and policy.graph is not None and not set(policy.graph.tasks) & set(tasks):
        raise InputError(
            f"the graph of Drift knows none of the tasks, such as {tasks[0]!r}: give one of the same tasks"
        )


def has_own_clocks(policy: Policy) -> bool:
    """Whether each task forgets when it is seen, and only then."""
    return isinstance(policy, Exponential) and policy.per == "task" and policy.factor < 1.0


def is_uniform(policy: Policy) -> bool:
    """Whether everything fades alike, whoever is seen: all that a learner without a covariance of all tasks can do."""
    if isinstance(policy, Exponential):
        return policy.per != "task"
    return isinstance(policy, HalfLife) or not isinstance(policy, OfAllClocks)


def uniform_fades(policy: Policy, opens: Flags, labels: Ints, last: int, unlabelled: int) -> Floats:
    """Return what everything fades by before each sample, for a policy that is uniform."""
    if isinstance(policy, HalfLife):
        factors = policy.factors(opens, labels, last, unlabelled)
        return np.where(opens, factors, 1.0)
    fades = checked_fades(cast(Forgetting, policy), opens)
    if (fades[:, 1] != 1.0).any():
        raise InputError(f'{policy!r} fades what is known of one task only: solver="local" can only fade all alike')
    return fades[:, 0].copy()


def _is_guarded(policy: Policy) -> bool:
    """Whether the information is kept beside P, so that P can be made anew; not where nothing winds up."""
    if isinstance(policy, Exponential):
        return policy.guard and policy.factor < 1.0
    return not isinstance(policy, Restore | Directional | Drift)


def _coupling(graph: TaskGraph | None, own: Floats, tasks: Sequence[TaskKey]) -> Floats:
    """The covariance that the weights drift with; a task that the graph does not know drifts by itself."""
    if graph is None:
        return own
    known = [place for place, task in enumerate(tasks) if task in graph.tasks]
    covariance = np.diag(np.full(len(tasks), float(np.diag(graph.inverse).mean())))
    order = graph.indices([tasks[place] for place in known])
    covariance[np.ix_(known, known)] = graph.inverse[np.ix_(order, order)]
    return covariance[None]


def checked_fades(policy: Forgetting, opens: Flags) -> Floats:
    """Ask the policy, and see that compiled code can rely on the answer where it is not our own."""
    if isinstance(policy, Exponential):
        return policy.fades(opens)
    fades = floats(policy.fades(opens), "fades", ndim=2)
    if fades.shape != (opens.size, 2) or not ((fades >= LEAST) & (fades <= 1.0)).all():
        raise InputError(f"{policy!r} gave fades of shape {fades.shape}: give (samples, 2) values of {LEAST:g} to 1")
    return fades


def as_forgetting(value: float | Policy) -> Policy:
    """Return the policy; a number means the paper's, a factor per sample."""
    if isinstance(value, Forgetting | OfAllClocks):
        return value
    return Exponential(fraction(value, "forgetting"))


def own_clock(value: float | Forgetting, learner: str) -> Forgetting:
    """Return the policy of a learner whose tasks each forget when they are seen; a number is the factor."""
    if isinstance(value, Exponential) and value.per != "task":
        raise InputError(f'forgetting is per={value.per!r}: each task of {learner} has its own clock, per="task"')
    if isinstance(value, OfAllClocks):
        raise InputError(f"forgetting is a {type(value).__name__}, which needs a covariance: give {learner} a number")
    if isinstance(value, Forgetting):
        return value
    return Exponential(fraction(value, "forgetting"), per="task")


def kernel_policy(value: float | Policy, learner: str) -> Exponential | Restore | Directional:
    """Return the policy of a learner with a dictionary: one that keeps to its prior, or 1 for none."""
    if isinstance(value, Restore | Directional):
        return value
    if (value.factor if isinstance(value, Exponential) else value) == 1:
        return Exponential(1.0)
    raise InputError(f"forgetting is {value!r}: give {learner} a Restore or Directional, which keep to its prior, or 1")


def own_policy(value: float | Policy, learner: str) -> Policy:
    """Return the policy of a learner with one filter per task: of its own clock, or one of all clocks."""
    if isinstance(value, Drift) and value.graph is not None:
        raise InputError(f"the tasks of {learner} share nothing: give Drift without a graph")
    return value if isinstance(value, OfAllClocks) else own_clock(value, learner)
