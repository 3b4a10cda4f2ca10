"""Batch: the samples of one call, checked by the learner and passed whole to compiled functions; and their steps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from braided.types import Flags, Floats, Ints

NO_GAINS: Floats = np.empty((0, 0))

NO_ROUND = int(np.iinfo(np.int64).min)  # the label of a sample without a round; NaT has it too, so no label equals it


class Clock(NamedTuple):
    """The rounds of n samples: all that a policy of forgetting knows about time."""

    opens: Flags  # (n,) whether a sample is the first of its round
    labels: Ints  # (n,) the label of its round, or NO_ROUND
    last: int  # the label of the round learned before the batch, or NO_ROUND

    @classmethod
    def of_one(cls, opens: bool) -> Clock:
        """Return the clock of one sample without a label."""
        return cls(np.array([opens]), np.array([NO_ROUND]), NO_ROUND)


class Steps(NamedTuple):
    """What happens before each of n samples is learned, as a policy of forgetting says."""

    fades: Floats  # (n, 3) factors by which everything, the sample's own task, and the direction of its input fade
    moves: Floats  # (n,) factor by which the information of all filters fades before they move; 0 if they do not move
    shrink: float  # factor of the weights when they move
    noise: Floats  # (F, m, m) added to the covariance of the tasks' weights then, per filter of m tasks
    relation: Floats  # (F, m, m) the information of the prior, for the guard against wind-up; empty without a guard
    limits: Floats  # (F, m) the prior variances; empty without a guard


class Batch(NamedTuple):
    """Checked samples, in groups that are forecast before any of their samples is learned, and their clock."""

    X: Floats  # (n, d)
    y: Floats  # (n,)
    tasks: Ints  # (n,) positions in the graph
    weights: Floats  # (n,)
    ends: Ints  # end of each group
    opens: Flags  # (n,) whether a sample is the first of its round
    labels: Ints  # (n,) the label of its round, or NO_ROUND
    last: int  # the label of the round learned before the batch, or NO_ROUND
    gains: Floats = NO_GAINS  # (n, size of a filter), to be filled with the gains of the samples; or empty

    @property
    def clock(self) -> Clock:
        """The rounds of the samples."""
        return Clock(self.opens, self.labels, self.last)

    def before(self, stop: int) -> Batch:
        """Return the first `stop` samples; the last group may be cut short."""
        ends = np.append(self.ends[self.ends < stop], stop)[: max(stop, 0)]
        return self._cut(slice(stop), ends, self.last)

    def after(self, done: int) -> Batch:
        """Return the samples after the first `done`, which end a group."""
        last = int(self.labels[done - 1]) if done else self.last
        return self._cut(slice(done, None), self.ends[self.ends > done] - done, last)

    def _cut(self, part: slice, ends: Ints, last: int) -> Batch:
        X, y, tasks, weights = self.X[part], self.y[part], self.tasks[part], self.weights[part]
        return Batch(X, y, tasks, weights, ends, self.opens[part], self.labels[part], last, self.gains[part])
