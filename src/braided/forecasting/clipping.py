"""Clipping: the typical size of each stream's features, at a multiple of which they are clipped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from braided._compiled.clip import clip_features_inplace
from braided.types import Floats, Ints
from braided.validate import insist_numbers


@final
@dataclass(eq=False)
class Clipping:
    """Mean squares of each task's features; a feature is clipped at ten times the root of its mean square.

    The mean squares follow the inputs, so a lasting change passes after some rounds. The first 30 inputs of a task are
    not clipped.

    >>> clipping = Clipping.blank(n_tasks=1, n_features=1)
    >>> _ = clipping.clipped(np.ones((50, 1)), np.zeros(50, np.int64), learn=True)
    >>> clipping.clipped(np.array([[2.0], [1e6]]), np.array([0, 0]))
    array([[ 2.],
           [10.]])
    """

    squares: Floats  # (T, d)
    seen: Floats  # (T,) inputs they are the means of, up to the length of the window

    def __post_init__(self) -> None:
        n_tasks, n_features = np.shape(self.squares)
        insist_numbers(self.squares, "squares", (n_tasks, n_features))
        insist_numbers(self.seen, "seen", (n_tasks,))

    @classmethod
    def blank(cls, n_tasks: int, n_features: int) -> Clipping:
        """Return the state before the first input."""
        return cls(np.zeros((n_tasks, n_features)), np.zeros(n_tasks))

    def join(self) -> None:
        """Make room for one more task."""
        self.squares, self.seen = (np.concatenate([a, np.zeros((1, *a.shape[1:]))]) for a in (self.squares, self.seen))

    def clipped(self, X: Floats, places: Ints, learn: bool = False) -> Floats:
        """Return inputs (n, d) of the tasks at these places, clipped by the sizes so far; update these if `learn`."""
        X = X.copy()
        self.clip_inplace(X, places, learn)
        return X

    def clip_inplace(self, X: Floats, places: Ints, learn: bool = False) -> None:
        """Clip inputs where they are, as `clipped` does."""
        clip_features_inplace(X, self.squares, self.seen, places, learn)
