"""Record: how good the forecasts have been so far, beside those of the baselines."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from braided._compiled.scores import Errors, Losses, add_errors_inplace, add_losses_inplace
from braided.errors import InputError
from braided.forecasting.curve import BINS, Curve
from braided.types import Floats, Ints
from braided.validate import insist_kinds, insist_numbers

MODEL, NO_CHANGE = "model", "no change"  # in every record
CONTENDERS = (MODEL, "single", NO_CHANGE, "last change")  # of a learner's record


@final
@dataclass(eq=False)
class Record:
    """Sums of errors per task, and over time; of the model and what it is compared with.

    An error is (actual − forecast) / scale, both in the user's units, with one constant scale per task: so tasks of any
    size can be added up.

    The pinball loss of a quantile of level q is q times the error of a value above it, or 1 − q times that of a value
    below, in the same units; on average, it is least for the true quantile. The ends of an interval are quantiles, too.

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
    over_time: Curve = field(default_factory=lambda: Curve.blank(1 + len(CONTENDERS)))  # counts and squares
    contenders: tuple[str, ...] = CONTENDERS  # the model first
    scale: Floats = field(default_factory=lambda: np.empty(0))  # (T,) in the user's units; empty in older files
    levels: tuple[float, ...] = ()  # (L,) of both ends of the interval, then of the quantiles; () in older files
    measured: Floats = field(default_factory=lambda: np.empty(0))  # (T,) forecasts with losses
    losses: Floats = field(default_factory=lambda: np.empty((0, 0)))  # (T, L) pinball losses
    below: Floats = field(default_factory=lambda: np.empty((0, 0)))  # (T, L) number of values below

    def __post_init__(self) -> None:
        _insist_contenders(self.contenders)
        n_tasks, columns, n_levels = len(self.counts), len(self.contenders), len(self.levels)
        if not n_levels:
            self.expect(())
        shapes = {"counts": (n_tasks,), "squares": (n_tasks, columns), "intervals": (n_tasks,), "covered": (n_tasks,)}
        shapes |= {"measured": (n_tasks,), "losses": (n_tasks, n_levels), "below": (n_tasks, n_levels)}
        if len(self.scale):
            shapes["scale"] = (n_tasks,)
        for name, shape in shapes.items():
            insist_numbers(getattr(self, name), name, shape)
        insist_kinds(self, over_time=Curve)
        insist_numbers(self.curve, "curve", (BINS, 1 + columns))
        if not (self.scale > 0.0).all():
            raise InputError(f"scale of the record holds {self.scale.min():g}: it must be above 0")

    @classmethod
    def blank(cls, scale: Floats, contenders: tuple[str, ...] = CONTENDERS, levels: tuple[float, ...] = ()) -> Record:
        """Return the record before the first forecast, of tasks with these scales."""
        _insist_contenders(contenders)
        n_tasks = len(scale)
        counts, intervals, covered = (np.zeros(n_tasks) for _ in range(3))
        squares, over_time = np.zeros((n_tasks, len(contenders))), Curve.blank(1 + len(contenders))
        made = cls(counts, squares, intervals, covered, over_time, contenders, scale.copy())
        made.expect(levels)
        return made

    def expect(self, levels: tuple[float, ...]) -> None:
        """Start new sums of losses, for these levels."""
        n_tasks = len(self.counts)
        self.levels, self.measured = levels, np.zeros(n_tasks)
        self.losses, self.below = np.zeros((2, n_tasks, len(levels)))

    def join(self, scale: Floats) -> None:
        """Make room for more tasks, with these scales."""
        self.scale = np.append(self.scale, scale)
        for name in ("counts", "squares", "intervals", "covered", "measured", "losses", "below"):
            array = getattr(self, name)
            setattr(self, name, np.concatenate([array, np.zeros((len(scale), *array.shape[1:]))]))

    def add(self, errors: Floats, inside: Floats, places: Ints, rounds: Ints, n_rounds: int) -> None:
        """Add errors (n, K) of samples with their tasks' places and their rounds, counted from 0 in this call.

        `inside` (n,) is 1 for a value in its interval, 0 for one outside, NaN where there is no interval.
        """
        sums = Errors(self.counts, self.squares, self.intervals, self.covered)
        add_errors_inplace(sums, errors, inside.astype(np.float64), places)
        self.over_time.add(np.column_stack([np.ones(len(errors)), errors**2]), rounds, n_rounds)

    def add_losses(self, ends: Floats, actual: Floats, places: Ints) -> None:
        """Add the pinball losses of `ends` (n, L), the quantiles of the levels; NaN where there are none."""
        sums = Losses(self.measured, self.losses, self.below)
        add_losses_inplace(sums, np.array(self.levels), self.scale, np.ascontiguousarray(ends), actual, places)

    @property
    def rounds(self) -> int:
        """The number of rounds scored."""
        return self.over_time.rounds

    @property
    def curve(self) -> Floats:
        """The number of forecasts, and the squared errors of each contender, summed by bin (BINS, 1 + K)."""
        return self.over_time.sums

    @property
    def rmse(self) -> Floats:
        """Root mean square errors (T, K), in units of each task's scale; NaN for a task without forecasts."""
        counts = np.where(self.counts > 0, self.counts, np.nan)[:, None]
        return np.sqrt(self.squares / counts)

    @property
    def coverage(self) -> Floats:
        """The share of the values (T,) inside their interval; NaN for a task without."""
        return self.covered / np.where(self.intervals > 0, self.intervals, np.nan)

    @property
    def pinball(self) -> Floats:
        """The mean pinball loss (T,) of the ends of the intervals, in units of each task's scale; NaN without any."""
        return self._mean(self.losses[:, :2].sum(axis=1) / 2.0)

    @property
    def quantile_pinball(self) -> Floats:
        """The mean pinball loss (T, Q) of each quantile, in the same units."""
        return self._mean(self.losses[:, 2:])

    @property
    def quantile_coverage(self) -> Floats:
        """The share of the values (T, Q) below each quantile."""
        return self._mean(self.below[:, 2:])

    def _mean(self, sums: Floats) -> Floats:
        known = np.where(self.measured > 0, self.measured, np.nan)
        return sums / known.reshape(-1, *[1] * (sums.ndim - 1))

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
