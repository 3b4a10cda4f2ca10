"""Usual: the size that features usually have, so that wild ones can be limited."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from braided._compiled.tame import tame_inplace
from braided.types import Floats, Ints
from braided.validate import insist_numbers


@final
@dataclass(eq=False)
class Usual:
    """Mean squares of each task's features; one of more than ten times the root of them is limited to that.

    What is usual follows what comes, so a lasting change is let in after some rounds. The first 30 inputs of a task are
    taken as they are.

    >>> usual = Usual.blank(n_tasks=1, n_features=1)
    >>> _ = usual.tamed(np.ones((50, 1)), np.zeros(50, np.int64), learn=True)
    >>> usual.tamed(np.array([[2.0], [1e6]]), np.array([0, 0]))
    array([[ 2.],
           [10.]])
    """

    squares: Floats  # (T, d)
    seen: Floats  # (T,) inputs that they are the means of, as far as they are remembered

    def __post_init__(self) -> None:
        """Check what may come from a file."""
        n_tasks, n_features = np.shape(self.squares)
        insist_numbers(self.squares, "squares", (n_tasks, n_features))
        insist_numbers(self.seen, "seen", (n_tasks,))

    @classmethod
    def blank(cls, n_tasks: int, n_features: int) -> Usual:
        """Return it before the first input."""
        return cls(np.zeros((n_tasks, n_features)), np.zeros(n_tasks))

    def join(self) -> None:
        """Make room for one more task."""
        self.squares, self.seen = (np.concatenate([a, np.zeros((1, *a.shape[1:]))]) for a in (self.squares, self.seen))

    def tamed(self, X: Floats, places: Ints, learn: bool = False) -> Floats:
        """Return inputs (n, d) of the tasks at their places, limited by those before; learn from them if told."""
        X = X.copy()
        tame_inplace(X, self.squares, self.seen, places, learn)
        return X
