"""Curve: sums over time in a fixed number of bins, however many rounds there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from braided.types import Floats, Ints
from braided.validate import LARGEST_COUNT, count, insist_numbers

BINS = 512  # when all are used, adjacent ones are merged


@final
@dataclass(eq=False)
class Curve:
    """Sums of K columns, by bins of equally many rounds; the last bin in use may still be filling.

    Sums do not depend on how rounds are cut into calls of `add`.

    >>> curve = Curve.blank(n_columns=1)
    >>> curve.add(np.ones((1000, 1)), np.arange(1000), n_rounds=1000)
    >>> curve.width, curve.ends[:3], curve.ends[-1], curve.sums[:3, 0]
    (2, array([2, 4, 6]), np.int64(1000), array([2., 2., 2.]))
    """

    sums: Floats  # (BINS, K)
    width: int = 1  # rounds per bin
    rounds: int = 0

    def __post_init__(self) -> None:
        n_columns = self.sums.shape[1] if np.ndim(self.sums) == 2 else 0
        insist_numbers(self.sums, "curve", (BINS, n_columns))
        width = count(self.width, "width of the curve", most=LARGEST_COUNT)
        count(self.rounds, "rounds of the curve", least=0, most=BINS * width)

    @classmethod
    def blank(cls, n_columns: int) -> Curve:
        """Return the curve before the first round."""
        return cls(np.zeros((BINS, n_columns)))

    @property
    def ends(self) -> Ints:
        """The number of rounds up to the end of each bin in use."""
        n_used = -(-self.rounds // self.width)
        return np.minimum(self.width * np.arange(1, n_used + 1), self.rounds)

    def add(self, rows: Floats, rounds: Ints, n_rounds: int) -> None:
        """Add rows (n, K) that belong to some of the next rounds, counted from 0 in this call."""
        while self.rounds + n_rounds > BINS * self.width:
            half = self.sums.reshape(BINS // 2, 2, -1).sum(axis=1)
            self.sums = np.concatenate([half, np.zeros_like(half)])
            self.width *= 2
        bins = (self.rounds + rounds) // self.width
        for column in range(rows.shape[1]):
            self.sums[:, column] += np.bincount(bins, rows[:, column], BINS)
        self.rounds += n_rounds
