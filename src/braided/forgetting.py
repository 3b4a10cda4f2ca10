"""Forgetting: how fast the past fades, as a part that a recursive learner is given.

A policy turns a chunk of samples into two factors each: what everything fades by before the sample is learned, and
what the sample's own task fades by on top of that. The learner applies them and knows no more of it.

>>> import numpy as np
>>> Exponential(0.9, per="round").fades(np.array([True, False, True]))
array([[0.9, 1. ],
       [1. , 1. ],
       [0.9, 1. ]])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, final, runtime_checkable

import numpy as np

from braided.errors import InputError
from braided.types import Flags, Floats
from braided.validate import choice, floats, fraction


@runtime_checkable
class Forgetting(Protocol):
    """What a recursive learner asks of a policy."""

    def fades(self, opens: Flags) -> Floats:
        """Return (n, 2): what everything, and what the sample's task, fades by before each sample.

        `opens` tells which samples are the first of their round.
        """


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
    """

    factor: float
    per: Literal["sample", "round", "task"] = "sample"

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


def checked_fades(policy: Forgetting, opens: Flags) -> Floats:
    """Ask the policy, and see that compiled code can rely on the answer where it is not our own."""
    if isinstance(policy, Exponential):
        return policy.fades(opens)
    fades = floats(policy.fades(opens), "fades", ndim=2)
    if fades.shape != (opens.size, 2) or not ((fades > 0.0) & (fades <= 1.0)).all():
        raise InputError(f"{policy!r} gave fades of shape {fades.shape}: give (samples, 2) values above 0, at most 1")
    return fades


def as_forgetting(value: float | Forgetting) -> Forgetting:
    """Return the policy; a number means the paper's, a factor per sample."""
    if isinstance(value, Forgetting):
        return value
    return Exponential(fraction(value, "forgetting"))


def own_clock(value: float | Forgetting, learner: str) -> Forgetting:
    """Return the policy of a learner whose tasks each forget when they are seen; a number is the factor."""
    if isinstance(value, Exponential) and value.per != "task":
        raise InputError(f'forgetting is per={value.per!r}: each task of {learner} has its own clock, per="task"')
    if isinstance(value, Forgetting):
        return value
    return Exponential(fraction(value, "forgetting"), per="task")
