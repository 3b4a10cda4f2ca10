"""Forgetting in the direction of the new sample only."""

from dataclasses import dataclass
from typing import final

from braided.forgetting.steps import Clock, Policy, Prior, Steps
from braided.validate import fraction


@final
@dataclass(frozen=True)
class Directional(Policy):
    """Forgetting only in the direction that the new sample informs about (Kulhavý's restricted exponential forgetting).

    With r = z'Pz, the information about z fades to σ / r before the sample adds to it; nothing else is forgotten:
    Φ ← Φ + (1 − (1 − σ)/r) z z'. In directions that no input takes, P does not grow, so nothing winds up.

    Reference: R. Kulhavý, Restricted exponential forgetting in real-time identification, Automatica 23 (1987).
    """

    factor: float

    keeps_prior = True
    has_fixed_steps = True
    has_objective = False
    has_gains = False

    def __post_init__(self) -> None:
        """Check the factor."""
        object.__setattr__(self, "factor", fraction(self.factor, "factor"))

    def steps(self, clock: Clock, prior: Prior) -> Steps:
        """Fade the direction of each sample's input."""
        steps = self._no_steps(clock.opens.size, prior)
        steps.fades[:, 2] = self.factor
        return steps
