"""Exponential forgetting: the paper's, per sample, and by round or by task."""

from dataclasses import dataclass, field
from typing import Literal, final

import numpy as np

from braided.forgetting.steps import Clock, Policy, Prior, Steps
from braided.types import Flags, Floats
from braided.validate import choice, fraction


@final
@dataclass(frozen=True)
class Exponential(Policy):
    """Exponential forgetting: the weight of the past is multiplied by `factor` at every tick of a clock.

    per="sample": the paper's. A tick per sample, of any task, so `factor`^T per round. After i samples, sample j weighs
    σ^(i−j) and the prior σ^i.

    per="round": a tick per round. After n rounds, a sample of round m weighs σ^(n−m) and the prior σ^n. Samples
    learned without a label are a round each.

    per="task": every task has its own clock, which ticks when the task is seen and fades what is known about that
    task only: Φ ← D Φ D with √σ on the task's places of the diagonal D, and the estimate stays. Without edges these
    are the independent filters of WRLS.

    *Guard.* Where no new information arrives (a silent task, a constant input), the information fades without end, and
    P winds up. Once a variance exceeds 1e8 times that of the prior, or the arithmetic breaks down, P is rebuilt from
    the information, with a millionth of the prior put back. Where nothing winds up, nothing is changed. Factors far
    below 0.9 per sample wind up all the time, and each rescue costs O((dT)³); `guard=False` stops with a
    NumericalError instead.
    """

    factor: float
    per: Literal["sample", "round", "task"] = "sample"
    guard: bool = field(default=True, repr=False)

    needs_covariance = False
    has_fixed_steps = True

    def __post_init__(self) -> None:
        """Check the factor and the clock, and declare what they imply."""
        factor, per_task = fraction(self.factor, "factor"), self.per == "task"
        choice(self.per, "per", ("sample", "round", "task"))
        vars(self).update(
            factor=factor,
            is_uniform=not per_task,
            fades_unseen=not per_task,
            has_own_clocks=per_task and factor < 1.0,
            needs_guard=self.guard and factor < 1.0,
            keeps_prior=factor == 1.0,
        )

    def fades(self, opens: Flags) -> Floats:
        """Return the factors (n, 2) by which everything, and the sample's task, fade before each sample."""
        fades = np.ones((opens.size, 2))
        if self.per == "round":
            fades[opens, 0] = self.factor
        else:
            fades[:, 0 if self.per == "sample" else 1] = self.factor
        return fades

    def steps(self, clock: Clock, prior: Prior) -> Steps:
        """Fade before samples, by the clock that is chosen."""
        steps = self._no_steps(clock.opens.size, prior)
        steps.fades[:, :2] = self.fades(clock.opens)
        return steps
