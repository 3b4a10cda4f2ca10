"""LiveRounds: the rounds that a live run has received and no model has learned yet.

They are saved with the model, or instead of it during the warm-up, so that a run that was stopped goes on seamlessly.
As a file may come from anywhere, all fields are checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from braided.errors import InputError
from braided.forecasting.plan import Plan
from braided.tables import Columns
from braided.tables.lines import LARGEST_TIME
from braided.types import Floats, Ints
from braided.validate import count, insist_integers, insist_kinds, insist_numbers

MAX_FAILED_STARTS = 40  # each doubles the warm-up


@final
@dataclass(frozen=True, eq=False)
class LiveRounds:
    """Rounds in order of time: complete ones of the warm-up, the open one if there is one, and those set aside.

    >>> LiveRounds(
    ...     times=np.array([1, 2]),
    ...     tasks=("a", "b"),
    ...     values=np.array([[5.0, 7.0], [6.0, np.nan]]),
    ...     extras=np.empty((2, 2, 0)),
    ...     came=np.array([[True, True], [True, False]]),
    ...     n_complete=1,
    ...     is_open=True,
    ... ).describe()
    'a warm-up of 1 round of 2 streams'
    """

    times: Ints  # (n,) microseconds or whole numbers
    tasks: tuple[str, ...]
    values: Floats  # (n, T) NaN where one is missing
    extras: Floats  # (n, T, features)
    came: NDArray[np.bool_]  # (n, T) whether the task had a line, perhaps without a value
    n_complete: int = 0
    is_open: bool = False  # whether the round after the complete ones is open
    expected: tuple[str, ...] = ()  # tasks that make the open round complete
    is_dated: bool = False
    is_utc: bool = False
    columns: Columns | None = None  # of the lines
    failed_starts: int = 0  # how often no model could be made of the warm-up
    latest_lines: int = 0  # the number of lines that the latest round arrived in
    plan: Plan | None = None  # what is known ahead, while there is no model

    def __post_init__(self) -> None:
        if np.ndim(self.came) != 2 or np.ndim(self.extras) != 3:
            raise InputError("the arrays of live rounds have other dimensions")
        (n, n_tasks), n_extras = self.came.shape, self.extras.shape[2]
        insist_integers(self.times, "times", (n,), -LARGEST_TIME, LARGEST_TIME)
        insist_numbers(self.values, "values", (n, n_tasks), missing=True)
        insist_numbers(self.extras, "extras", (n, n_tasks, n_extras), missing=True)
        if self.came.dtype != np.bool_ or not self.came.any(axis=1).all() or (np.diff(self.times) <= 0).any():
            raise InputError("a live round has no task, or is not after the one before it")
        for names in (self.tasks, self.expected):
            if not isinstance(names, tuple) or not all(type(one) is str for one in names) or len({*names}) < len(names):
                raise InputError("the tasks of live rounds are not unique names")
        insist_kinds(self, is_open=bool, is_dated=bool, is_utc=bool, columns=Columns | None, plan=Plan | None)
        count(self.n_complete, "complete live rounds", least=0, most=n - self.is_open)
        count(self.failed_starts, "failed starts", least=0, most=MAX_FAILED_STARTS)
        count(self.latest_lines, "lines of the latest live round", least=0, most=n_tasks)
        if len(self.tasks) != n_tasks:
            raise InputError("live rounds do not have one name per task")

    def describe(self) -> str:
        """Describe a file that holds this instead of a model."""
        rounds, streams = self.n_complete, len(self.tasks)
        return f"a warm-up of {rounds:,} round{'s' * (rounds != 1)} of {streams:,} stream{'s' * (streams != 1)}"
