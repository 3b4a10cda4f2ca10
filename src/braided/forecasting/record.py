"""Record: how good the forecasts have been so far, beside those of the baselines."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

import numpy as np

from braided.types import Floats, Ints
from braided.validate import LARGEST_COUNT, count, insist_numbers

CONTENDERS = ("model", "single", "no change", "last change")  # the columns of squares
BINS = 512  # of the curve over time; when all are used, adjacent ones are merged


@final
@dataclass(eq=False)
class Record:
    """Sums of errors per task, in units of the task's scale, and over time.

    `single` is one filter per stream; "no change" repeats the last value, "last change" the last difference.
    """

    counts: Floats  # (T,) forecasts scored
    squares: Floats  # (T, 4), of CONTENDERS
    intervals: Floats  # (T,) forecasts with an interval
    covered: Floats  # (T,) values inside their interval
    curve: Floats = field(default_factory=lambda: np.zeros((BINS, 5)))  # counts and squares, bin by bin
    width: int = 1  # rounds per bin
    rounds: int = 0  # scored

    def __post_init__(self) -> None:
        n_tasks, columns = len(self.counts), len(CONTENDERS)
        shapes = {"counts": (n_tasks,), "squares": (n_tasks, columns), "intervals": (n_tasks,), "covered": (n_tasks,)}
        for name, shape in (shapes | {"curve": (BINS, 1 + columns)}).items():
            insist_numbers(getattr(self, name), name, shape)
        count(self.rounds, "rounds of the record", least=0, most=BINS * count(self.width, "width", most=LARGEST_COUNT))

    @classmethod
    def blank(cls, n_tasks: int) -> Record:
        """Return the record before the first forecast."""
        column, table = (n_tasks,), (n_tasks, len(CONTENDERS))
        return cls(np.zeros(column), np.zeros(table), np.zeros(column), np.zeros(column))

    def join(self) -> None:
        """Make room for one more task."""
        for name in ("counts", "squares", "intervals", "covered"):
            array = getattr(self, name)
            setattr(self, name, np.concatenate([array, np.zeros((1, *array.shape[1:]))]))

    def add(self, errors: Floats, widths: Floats, places: Ints, rounds: Ints, n_rounds: int) -> None:
        """Add errors (n, 4) of samples with their tasks' places and their rounds, counted from 0 in this call."""
        n_tasks = len(self.counts)
        self.counts += np.bincount(places, minlength=n_tasks)
        for column in range(len(CONTENDERS)):
            self.squares[:, column] += np.bincount(places, errors[:, column] ** 2, n_tasks)
        self.intervals += np.bincount(places, ~np.isnan(widths), n_tasks)
        self.covered += np.bincount(places, np.abs(errors[:, 0]) <= widths, n_tasks)
        self._draw(errors, rounds, n_rounds)

    def _draw(self, errors: Floats, rounds: Ints, n_rounds: int) -> None:
        while self.rounds + n_rounds > BINS * self.width:
            half = self.curve.reshape(BINS // 2, 2, -1).sum(axis=1)
            self.curve = np.concatenate([half, np.zeros_like(half)])
            self.width *= 2
        bins = (self.rounds + rounds) // self.width
        self.curve[:, 0] += np.bincount(bins, minlength=BINS)
        for column in range(len(CONTENDERS)):
            self.curve[:, 1 + column] += np.bincount(bins, errors[:, column] ** 2, BINS)
        self.rounds += n_rounds

    @property
    def rmse(self) -> Floats:
        """Root mean square errors (T, 4), in units of each task's scale; NaN for a task without forecasts."""
        counts = np.where(self.counts > 0, self.counts, np.nan)[:, None]
        return np.sqrt(self.squares / counts)
