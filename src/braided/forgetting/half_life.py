"""Exponential forgetting by the time that has passed."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, final

import numpy as np

from braided._compiled.batch import NO_ROUND
from braided.errors import InputError
from braided.forgetting.steps import Clock, Policy, Prior, Steps
from braided.validate import SMALLEST_FRACTION, positive


@final
@dataclass(frozen=True)
class HalfLife(Policy):
    """Exponential forgetting by the clock: after `duration`, the past weighs half.

    A sample learned t before the last round weighs ½^(t / duration), and so does the prior, counted from the first
    round. `duration` is a timedelta where rounds are time stamps, and a number in their units where they are integers.
    However long the pause, one step leaves at least 1e-9 of the information.
    """

    duration: float  # microseconds where it was a timedelta

    is_uniform = True
    needs_guard = True
    moves_weights = True

    def __post_init__(self) -> None:
        """Turn a timedelta into microseconds."""
        given: Any = self.duration
        if isinstance(given, np.timedelta64):
            given = given / np.timedelta64(1, "us")
        elif isinstance(given, timedelta):
            given = given / timedelta(microseconds=1)
        object.__setattr__(self, "duration", positive(given, "duration"))

    def steps(self, clock: Clock, prior: Prior) -> Steps:
        """Fade all information when a round opens, by the time since the last one."""
        labels = clock.labels
        if (labels == NO_ROUND).any():
            raise InputError("HalfLife goes by the clock: give the time stamps of the samples as rounds=")
        before = np.append(clock.last if clock.last != NO_ROUND else labels[:1], labels[:-1])[: labels.size]
        elapsed = np.maximum(labels.astype(np.float64) - before, 0.0)
        moves = np.where(clock.opens, np.maximum(0.5 ** (elapsed / self.duration), SMALLEST_FRACTION), 0.0)
        return self._no_steps(labels.size, prior)._replace(moves=moves, noise=np.zeros_like(prior.covariance))
