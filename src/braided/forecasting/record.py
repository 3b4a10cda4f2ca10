"""Record: how good the forecasts have been so far, beside those of the baselines."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from braided.errors import InputError
from braided.types import Floats, Ints
from braided.validate import LARGEST_COUNT, count, insist_numbers

MODEL, NO_CHANGE = "model", "no change"  # are in every record
CONTENDERS = (MODEL, "single", NO_CHANGE, "last change")  # of a learner's record
BINS = 512  # of the curve over time; when all are used, adjacent ones are merged


@final
@dataclass(eq=False)
class Record:
    """Sums of errors per task, and over time; of the model and what it is compared with.

    An error is (actual − forecast) / scale, both in the user's units, with one constant scale per task: so tasks of any
    size can be added up.

    "single" is one filter per stream; "no change" repeats the last value, "last change" the last difference.

    >>> record = Record.blank(np.ones(2), ("model", "no change"))
    >>> errors, inside = np.array([[1.0, 2.0], [2.0, 2.0]]), np.array([np.nan, 1.0])
    >>> record.add(errors, inside, places=np.array([0, 1]), rounds=np.array([0, 0]), n_rounds=1)
    >>> record.rmse_of("model") / record.rmse_of("no change")
    array([0.5, 1. ])
    """

    counts: Floats  # (T,) forecasts scored
    squares: Floats  # (T, K), of the contenders
    intervals: Floats  # (T,) forecasts with an interval
    covered: Floats  # (T,) values inside their interval
    curve: Floats = field(default_factory=lambda: np.zeros((BINS, 1 + len(CONTENDERS))))  # counts and squares, by bin
    width: int = 1  # rounds per bin
    rounds: int = 0  # scored
    contenders: tuple[str, ...] = CONTENDERS  # the model first
    scale: Floats = field(default_factory=lambda: np.empty(0))  # (T,) in the user's units; none in older files

    def __post_init__(self) -> None:
        _insist_contenders(self.contenders)
        n_tasks, columns = len(self.counts), len(self.contenders)
        shapes = {"counts": (n_tasks,), "squares": (n_tasks, columns), "intervals": (n_tasks,), "covered": (n_tasks,)}
        if len(self.scale):
            shapes["scale"] = (n_tasks,)
        for name, shape in (shapes | {"curve": (BINS, 1 + columns)}).items():
            insist_numbers(getattr(self, name), name, shape)
        if not (self.scale > 0.0).all():
            raise InputError(f"scale of the record holds {self.scale.min():g}: it must be above 0")
        count(self.rounds, "rounds of the record", least=0, most=BINS * count(self.width, "width", most=LARGEST_COUNT))

    @classmethod
    def blank(cls, scale: Floats, contenders: tuple[str, ...] = CONTENDERS) -> Record:
        """Return the record before the first forecast, of tasks with these scales."""
        _insist_contenders(contenders)
        n_tasks = len(scale)
        counts, intervals, covered = (np.zeros(n_tasks) for _ in range(3))
        squares, curve = (np.zeros((rows, more + len(contenders))) for rows, more in ((n_tasks, 0), (BINS, 1)))
        return cls(counts, squares, intervals, covered, curve, contenders=contenders, scale=scale.copy())

    def join(self, scale: Floats) -> None:
        """Make room for more tasks, with these scales."""
        self.scale = np.append(self.scale, scale)
        for name in ("counts", "squares", "intervals", "covered"):
            array = getattr(self, name)
            setattr(self, name, np.concatenate([array, np.zeros((len(scale), *array.shape[1:]))]))

    def add(self, errors: Floats, inside: Floats, places: Ints, rounds: Ints, n_rounds: int) -> None:
        """Add errors (n, K) of samples with their tasks' places and their rounds, counted from 0 in this call.

        `inside` (n,) is 1 for a value in its interval, 0 for one outside, NaN where there is no interval.
        """
        n_tasks = len(self.counts)
        self.counts += np.bincount(places, minlength=n_tasks)
        for column in range(len(self.contenders)):
            self.squares[:, column] += np.bincount(places, errors[:, column] ** 2, n_tasks)
        self.intervals += np.bincount(places, ~np.isnan(inside), n_tasks)
        self.covered += np.bincount(places, np.nan_to_num(inside), n_tasks)
        self._draw(errors, rounds, n_rounds)

    def _draw(self, errors: Floats, rounds: Ints, n_rounds: int) -> None:
        while self.rounds + n_rounds > BINS * self.width:
            half = self.curve.reshape(BINS // 2, 2, -1).sum(axis=1)
            self.curve = np.concatenate([half, np.zeros_like(half)])
            self.width *= 2
        bins = (self.rounds + rounds) // self.width
        self.curve[:, 0] += np.bincount(bins, minlength=BINS)
        for column in range(len(self.contenders)):
            self.curve[:, 1 + column] += np.bincount(bins, errors[:, column] ** 2, BINS)
        self.rounds += n_rounds

    @property
    def rmse(self) -> Floats:
        """Root mean square errors (T, K), in units of each task's scale; NaN for a task without forecasts."""
        counts = np.where(self.counts > 0, self.counts, np.nan)[:, None]
        return np.sqrt(self.squares / counts)

    def has(self, contender: str) -> bool:
        """Whether the errors of a contender are recorded."""
        return contender in self.contenders

    def rmse_of(self, contender: str) -> Floats:
        """Root mean square errors (T,) of one contender, as `rmse` gives those of all."""
        return self.rmse[:, self._place(contender)]

    def curve_of(self, contender: str) -> Floats:
        """Sums of the squared errors (BINS,) of one contender, over all tasks, bin by bin."""
        return self.curve[:, 1 + self._place(contender)]

    def _place(self, contender: str) -> int:
        if contender not in self.contenders:
            raise InputError(f"no contender {contender!r}: there are {', '.join(self.contenders)}")
        return self.contenders.index(contender)


def _insist_contenders(contenders: Any) -> None:
    are_names = isinstance(contenders, tuple) and all(type(name) is str for name in contenders)
    is_unique = are_names and len({*contenders}) == len(contenders)
    if not is_unique or contenders[:1] != (MODEL,) or NO_CHANGE not in contenders:
        raise InputError(
            f"contenders are {contenders!r:.200}: give a tuple of names, {MODEL!r} first and {NO_CHANGE!r} among them"
        )
