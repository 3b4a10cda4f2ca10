"""Forgetting towards the prior."""

from dataclasses import dataclass
from typing import final

import numpy as np

from braided.forgetting.steps import Clock, Policy, Prior, Steps
from braided.validate import fraction


@final
@dataclass(frozen=True)
class Restore(Policy):
    """Forgetting towards the prior: once a round w ← ρ w, P ← ρ² P + (1 − ρ²) P₀.

    These are the steps of a Kalman filter for weights that wander but come back: w_n = ρ w_{n−1} + noise, with the
    prior P₀ as their covariance before any sample, so Cov(w_n, w_m) = ρ^|n−m| P₀. P never exceeds P₀, and the
    coupling between the tasks never fades.
    """

    factor: float

    keeps_prior = True
    moves_weights = True
    has_gains = False

    def __post_init__(self) -> None:
        """Check the factor."""
        object.__setattr__(self, "factor", fraction(self.factor, "factor"))

    def steps(self, clock: Clock, prior: Prior) -> Steps:
        """Move the weights towards the prior when a round opens."""
        moves, noise = clock.opens.astype(np.float64), (1.0 - self.factor**2) * prior.covariance
        return self._no_steps(moves.size, prior)._replace(moves=moves, shrink=self.factor, noise=noise)
