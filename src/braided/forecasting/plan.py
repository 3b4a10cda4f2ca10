"""Plan: what is known of rounds before they come, such as prices and promotions.

A `Plan` has a row for each round of which something is known. What a forecast may see of it is `Planned`: for each of
the H rounds expected next, its row, if there is one within half a step of when that round is expected and among the
next H rows. So a forecast depends on no row further ahead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self, final

import numpy as np

from braided.errors import InputError
from braided.forecasting.clock import LARGEST_STAMP
from braided.graph import TaskKey, task_keys
from braided.types import Flags, Floats, Ints
from braided.validate import insist_integers, insist_numbers

ROUNDS_KEPT_AHEAD = 1000
ROWS_AHEAD = 2  # rows for each round ahead that are searched, as some may be of days that never come
PLAN_FEATURES = 3  # of each column, for later rounds


@final
@dataclass(frozen=True, eq=False)
class Plan:
    """Values that are known ahead, in order of time; NaN where one is not known.

    >>> plan = Plan.none(1).with_rows(("a",), np.array([3, 4]), np.array([[[0.0]], [[1.0]]]))
    >>> plan = plan.with_rows(("b",), np.array([4, 5]), np.array([[[7.0]], [[8.0]]]))
    >>> plan.stamps, plan.table(["b", "a"])[:, :, 0]
    (array([3, 4, 5]), array([[nan,  0.],
           [ 7.,  1.],
           [ 8., nan],
           [nan, nan]]))
    """

    tasks: tuple[TaskKey, ...]
    stamps: Ints  # (m,)
    values: Floats  # (m, tasks, P)

    def __post_init__(self) -> None:
        if self.tasks:
            task_keys(self.tasks)
        if not isinstance(self.tasks, tuple) or np.ndim(self.values) != 3:
            raise InputError("the plan has no tuple of tasks, or values of the wrong dimensions")
        insist_integers(self.stamps, "times of the plan", (len(self.stamps),), -LARGEST_STAMP, LARGEST_STAMP)
        shape = len(self.stamps), len(self.tasks), self.n_known
        insist_numbers(self.values, "values of the plan", shape, missing=True)
        if (np.diff(self.stamps) <= 0).any():
            raise InputError("the rounds of the plan are not in order of time")

    @classmethod
    def none(cls, n_known: int) -> Self:
        """Return a plan of P columns in which nothing is known."""
        return cls((), np.empty(0, np.int64), np.empty((0, 0, n_known)))

    @property
    def n_known(self) -> int:
        """The number of columns that are known ahead, P."""
        return self.values.shape[2]

    def with_rows(self, tasks: Sequence[TaskKey], stamps: Ints, values: Floats) -> Plan:
        """Return the plan with more rows (n, tasks, P); new values replace old ones, unless they are NaN."""
        known = {task: place for place, task in enumerate(self.tasks)}
        places = np.array([known.setdefault(task, len(known)) for task in tasks], np.int64)
        every = np.union1d(self.stamps, stamps)
        table = np.full((len(every), len(known), self.n_known), np.nan)
        table[np.searchsorted(every, self.stamps), : len(self.tasks)] = self.values
        where = np.ix_(np.searchsorted(every, stamps), places)
        table[where] = np.where(np.isnan(values), table[where], values)
        return Plan(tuple(known), every, table)

    def between(self, first: int, last: int) -> Plan:
        """Return the rows from the first time to the last, and as many of those after it as are kept."""
        begin, end = np.searchsorted(self.stamps, [first, last + 1]).tolist()
        rows = slice(begin, end + ROUNDS_KEPT_AHEAD)
        return Plan(self.tasks, self.stamps[rows].copy(), self.values[rows].copy())

    def at(self, stamps: Ints, tasks: Sequence[TaskKey]) -> Floats:
        """Return the values (n, tasks, P) of rows at these times, which there are."""
        return self.table(tasks)[np.searchsorted(self.stamps, stamps)]

    def table(self, tasks: Sequence[TaskKey]) -> Floats:
        """Return the values of these tasks (m + 1, tasks, P), the last row of which is all NaN."""
        if not self.n_known:
            return np.empty((len(self.stamps) + 1, len(tasks), 0))
        known = {task: place for place, task in enumerate(self.tasks)}
        places = np.array([known.get(task, len(known)) for task in tasks], np.int64)
        return np.pad(self.values, ((0, 1), (0, 1), (0, 0)), constant_values=np.nan)[:, places]

    def rows_of(self, before: Ints, expected: Ints, step: int) -> Ints:
        """Return the rows (n, H) of the rounds expected at these times (n, H); m where there is none.

        `before` (n,) is the time of the round before each.
        """
        m, n_ahead = len(self.stamps), expected.shape[1]
        if not m:
            return np.zeros(expected.shape, np.int64)
        first = np.searchsorted(self.stamps, np.maximum(before + 1, expected[:, 0] - step // 2))[:, None]
        last = np.minimum(first + ROWS_AHEAD * n_ahead, m) - 1
        after = np.searchsorted(self.stamps, expected)
        before, after = np.clip(after - 1, 0, last), np.minimum(after, last)
        early, late = expected - self.stamps[before], self.stamps[after] - expected
        rows = np.where((late < 0) | (early < late), before, after)
        is_near = np.abs(self.stamps[rows] - expected) <= step // 2
        return np.where(is_near & (rows >= first), rows, m)


class Planned(NamedTuple):
    """What is known ahead when each of n rounds is forecast, in units."""

    table: Floats  # (m + 1, T, P) by row of the plan; NaN where unknown, as all of the last row is
    rows: Ints  # (n, H) in the table, of the rounds expected next
    before: Floats  # (n, T, P) last known value before each round; 0 where there is none
    flags: Floats  # (n, 1 + H, F) the same for all streams: of the round before, and of those expected next

    def part(self, which: slice) -> Planned:
        """Return the same for some of the rounds."""
        return Planned(self.table, self.rows[which], self.before[which], self.flags[which])

    @property
    def is_known(self) -> Flags:
        """Whether everything is known of the next round (n, T)."""
        return ~is_any_missing(self.table[self.rows[:, 0]])

    @property
    def unknown(self) -> Ints:
        """How many forecasts (1 + P, H) of each horizon are made without knowing everything, and each column."""
        every = [is_any_missing(self.table), *np.isnan(self.table).transpose(2, 0, 1)]
        return np.stack([missing.sum(axis=1)[self.rows].sum(axis=0) for missing in every])

    def features(self) -> Floats:
        """Return what is known of the next round and of the last one (n, T, 2 P); 0 where a value is unknown."""
        return np.concatenate([np.nan_to_num(self.table[self.rows[:, 0]]), self.before], axis=2)

    def later_features(self) -> Floats:
        """Return features of later rounds (H − 1, n, T, 3 (P + F)); those of the target are NaN where unknown.

        These are what is known of the target, what was known of the last round, and the sum over the rounds up to the
        target.
        """
        path = self.table[self.rows.T]  # (H, n, T, P)
        (n_ahead, n, T, _), n_flags = path.shape, self.flags.shape[2]
        flags = np.broadcast_to(self.flags.transpose(1, 0, 2)[:, :, None], (1 + n_ahead, n, T, n_flags))
        path = np.concatenate([path, flags[1:]], axis=3)
        before = np.broadcast_to(np.concatenate([self.before, flags[0]], axis=2), path.shape)
        sums = np.nan_to_num(path).cumsum(axis=0)
        return np.concatenate([path, before, sums], axis=3)[1:]


def is_any_missing(values: Floats) -> Flags:
    """Whether any of the values (…, P) is missing."""
    missing: Flags = np.asarray(np.isnan(values).any(axis=-1))
    return missing
