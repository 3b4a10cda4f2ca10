"""Following: filters for later rounds that share the gains of a member's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np

from braided._compiled.delayed import Followers, follow_inplace, fresh_followers
from braided.learners import Learner
from braided.learners.parts.joining import arrival, expected_weights
from braided.types import Floats
from braided.validate import insist_numbers


@final
class Following:
    """The filters, and the inputs and gains of the last rounds, whose targets are still to come."""

    def __init__(self, filters: Followers, inputs: Floats, gains: Floats) -> None:
        self.filters, self.inputs, self.gains = filters, inputs, gains

    def room(self, n: int) -> Floats:
        """Return room for the gains of n rounds (n, T, m), after those of the last ones."""
        gains = np.zeros((len(self.gains) + n, *self.gains.shape[1:]))
        gains[: len(self.gains)] = self.gains
        return gains

    def advance(self, X: Floats, gains: Floats, changes: Floats, robust: float) -> Floats:
        """Forecast (K, n, T) from inputs (n, T, d), and learn changes (K, n, T); gains are in what `room` returned."""
        X = np.concatenate([self.inputs, X])
        made = np.empty(changes.shape)
        follow_inplace(self.filters, X, gains, changes, robust, True, made)
        n = len(self.inputs)
        self.inputs, self.gains = X[-n:].copy(), gains[-n:].copy()
        return made

    def forecast(self, X: Floats) -> Floats:
        """Forecast (K, 1, T) from the inputs (1, T, d) of one round."""
        n, T = len(self.inputs), X.shape[1]
        X, gains = np.concatenate([self.inputs, X]), np.zeros((n + 1, T, self.gains.shape[2]))
        made = np.empty((n, 1, T))
        follow_inplace(self.filters, X, gains, made.copy(), 0.0, False, made)
        return made

    def join(self, learner: Learner) -> None:
        """Make room for one more stream, the last of the learner's; if tied, it begins as its neighbours suggest."""
        weights, squares = self.filters
        n, n_streams, d = self.inputs.shape
        more = fresh_followers(n, 1, d, 1)
        squares = np.concatenate([squares, more.squares], axis=2)
        grown = learner.gain_size - self.gains.shape[2]
        if grown:  # one filter of all streams
            arrived = arrival(learner.graph)
            all_weights = [expected_weights(arrived, one.reshape(n_streams, d)).reshape(1, -1) for one in weights]
            weights = np.stack(all_weights)
        elif weights.shape[1] < len(learner.tasks):
            weights = np.concatenate([weights, more.weights], axis=1)
        self.filters = Followers(weights, squares)
        self.inputs = np.pad(self.inputs, ((0, 0), (0, 1), (0, 0)))
        self.gains = np.pad(self.gains, ((0, 0), (0, 1), (0, grown)))

    def dump(self) -> dict[str, Any]:
        """Return all arrays."""
        return {**self.filters._asdict(), "inputs": self.inputs, "gains": self.gains}

    def restore(self, dumped: Mapping[str, Any]) -> None:
        """Take over arrays of the same shapes."""
        for name, array in self.dump().items():
            insist_numbers(dumped[name], name, array.shape, missing=name == "gains")
        self.filters = Followers(dumped["weights"], dumped["squares"])
        self.inputs, self.gains = dumped["inputs"], dumped["gains"]
