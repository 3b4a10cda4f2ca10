"""Mixture of rules: Bernstein online aggregation, per stream and once for all; the forecast is the mean of both.

A weight learns from the errors of the rounds before. A rule without a forecast sleeps: the others share its weight.

Reference: Wintenberger, Optimal learning with Bernstein online aggregation, Machine Learning 106, 2017.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

import numpy as np

from braided.types import Flags, Floats

FROM_ROUND = 2  # the third: before that, errors teach nothing
CLIP_ERRORS_AT = 5.0  # times the running error
KEEP = 0.99  # of the running square of the error, per value


@final
@dataclass
class Aggregation:
    """Weights of K forecasts for each of T streams (or for one, in common)."""

    shape: tuple[int, int]  # (K, T)
    largest: Floats = field(init=False)  # the largest |r| so far
    squares: Floats = field(init=False)  # the sum of r²
    losses: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.largest, self.squares, self.losses = (np.zeros(self.shape) for _ in range(3))

    def weights(self, awake: Flags) -> Floats:
        """Return the weights (K, T) of those that are awake; they sum to 1."""
        rate = self._rates()
        score = np.where(awake, np.log(rate) - rate * self.losses, -np.inf)
        weights = np.exp(score - score.max(axis=0))
        made: Floats = weights / weights.sum(axis=0)
        return made

    def _rates(self) -> Floats:
        with np.errstate(divide="ignore"):
            return np.minimum(
                np.minimum(0.5 / self.largest, np.sqrt(np.log(self.shape[0]) / self.squares)), 1e6
            )  # bounded while nothing is known

    def learn(self, regrets: Floats) -> None:
        """Take in one r for each forecast (K, T); 0 for those that slept."""
        awake = regrets != 0.0
        self.largest = np.maximum(self.largest, np.abs(regrets))
        self.squares += regrets**2
        self.losses += np.where(awake, regrets * (1.0 + self._rates() * regrets), 0.0)


def mixture_of(forecasts: Floats, target: Floats) -> Floats:
    """Return the mixture (n, T) of forecasts (K, n, T), NaN where one sleeps; targets (n, T) are NaN where missing.

    >>> target = np.full((50, 1), 1.0)
    >>> mixed = mixture_of(np.stack([np.zeros((50, 1)), target]), target)
    >>> bool(mixed[0, 0] == 0.5), bool(mixed[-1, 0] > 0.98)
    (True, True)
    """
    K, n, T = forecasts.shape
    alone, common = Aggregation((K, T)), Aggregation((K, 1))
    typical = np.ones(T)  # the running square of the error
    mixed = np.zeros((n, T))
    seen = 0
    for row in range(n):
        awake = ~np.isnan(forecasts[:, row])
        made = np.nan_to_num(forecasts[:, row])
        both = [np.broadcast_to(part.weights(awake), made.shape) for part in (alone, common)]
        parts = [(weights * made).sum(axis=0) for weights in both]
        mixed[row] = (parts[0] + parts[1]) / 2.0
        there = ~np.isnan(target[row])
        if not there.any():
            continue
        size = np.sqrt(typical)
        limit = CLIP_ERRORS_AT * size
        for part, own in zip((alone, common), parts, strict=True):
            error = np.where(there, np.clip(own - np.nan_to_num(target[row]), -limit, limit), 0.0)
            regrets = 2.0 * error * np.clip(made - own, -limit, limit) / typical
            regrets = np.where(awake, regrets, 0.0)
            if part is common:
                regrets = regrets[:, there].mean(axis=1, keepdims=True)
            if seen >= FROM_ROUND:
                part.learn(regrets)
        error = np.where(there, np.clip(mixed[row] - np.nan_to_num(target[row]), -limit, limit), 0.0)
        typical = np.where(there, np.maximum(KEEP * typical + (1.0 - KEEP) * error**2, 1e-300), typical)
        seen += 1
    return mixed
