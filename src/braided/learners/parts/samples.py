"""Samples: how they come to a learner, checked and in groups."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any, NamedTuple

import numpy as np

from braided.errors import InputError
from braided.types import Flags, Floats, Ints
from braided.validate import floats

NO_ROUND = int(np.iinfo(np.int64).min)  # also what NaT is, so no label can equal it
LARGEST = int(np.iinfo(np.int64).max)


class Batch(NamedTuple):
    """Checked samples, ready for compiled code."""

    X: Floats  # (n, d)
    y: Floats  # (n,)
    tasks: Ints  # (n,) positions in the graph
    weights: Floats  # (n,)
    ends: Ints  # ends of the groups that are forecast before any of them is learned
    opens: Flags  # (n,) whether a sample is the first of its round
    labels: Ints  # (n,) their rounds, or NO_ROUND
    last: int  # label of the round learned before, or NO_ROUND

    @property
    def columns(self) -> tuple[Floats, Floats, Ints, Floats, Ints]:
        """What compiled functions take, one by one: it is faster for them than the whole."""
        return self[:5]

    @property
    def clock(self) -> tuple[Flags, Ints, int]:
        """What tells the time: which samples open a round, their labels, and the label before the first."""
        return self.opens, self.labels, self.last

    def before(self, stop: int) -> Batch:
        """Return the first `stop` samples; the group that is cut there ends there."""
        ends = np.append(self.ends[self.ends < stop], stop)[: max(stop, 0)]
        X, y, tasks, weights, opens, labels = (column[:stop] for column in self._per_sample)
        return Batch(X, y, tasks, weights, ends, opens, labels, self.last)

    def after(self, done: int) -> Batch:
        """Return the samples that follow the first `done`, which end a group."""
        last = int(self.labels[done - 1]) if done else self.last
        X, y, tasks, weights, opens, labels = (column[done:] for column in self._per_sample)
        return Batch(X, y, tasks, weights, self.ends[self.ends > done] - done, opens, labels, last)

    @property
    def _per_sample(self) -> tuple[Any, ...]:
        return self.X, self.y, self.tasks, self.weights, self.opens, self.labels


def as_weights(values: Any) -> Floats:
    """Check that no weight is negative."""
    weights = floats(values, "weights", ndim=1)
    if (weights < 0).any():
        place = int(np.argmax(weights < 0))
        raise InputError(f"weights[{place}] is {weights[place]:g}: a weight is 0 or more")
    return weights


def as_labels(rounds: Any) -> Ints:
    """Turn labels or time stamps of rounds into integers, and check that they are in order."""
    given = np.asarray(rounds)
    if given.dtype.kind == "O":
        given = np.array([plain_time(label) for label in given.ravel()]).reshape(given.shape)
    if (given.dtype.kind not in "iuM" and given.size) or given.ndim != 1:
        found = f"dtype {given.dtype} and shape {given.shape}"
        raise InputError(f"rounds has {found}: give one integer, datetime or datetime64 per sample")
    if given.dtype.kind == "M":
        stamps = given.astype("datetime64[us]")
        missing, lost, labels = np.isnat(given), stamps.astype(given.dtype) != given, stamps.astype(np.int64)
    else:
        labels = given.astype(np.int64)
        missing, lost = np.zeros(labels.shape, np.bool_), (given > LARGEST) | (labels == NO_ROUND)
    faults = {
        "is missing: every sample needs its round": missing,
        "is finer than a microsecond, or does not fit 64 bits: use integers that do": lost,
        "is below the one before: sort the samples by round": np.append(False, labels[1:] < labels[:-1])[: labels.size],
    }
    for fault, places in faults.items():
        if places.any():
            place = int(np.argmax(places))
            raise InputError(f"rounds[{place}], {given[place]}, {fault}")
    return labels


def as_label(round: Any) -> int:
    """Turn the label or time stamp of one round into an integer."""
    if type(round) is int and NO_ROUND < round <= LARGEST:  # at once, what many calls have
        return round
    return int(as_labels([round])[0])


def plain_time(label: Any) -> Any:
    """Return time stamps of Python and pandas as NumPy's, in UTC; anything else as it is."""
    if isinstance(label, datetime) and label.tzinfo is not None:
        label = label.astimezone(UTC).replace(tzinfo=None)
    return np.datetime64(label, "us") if isinstance(label, date) else label


def grouping(labels: Ints, last_round: int, grouped: bool) -> tuple[Ints, Flags]:
    """Return the ends of the groups, rounds if `grouped` and else single samples, and which samples open a round."""
    opens = labels == NO_ROUND
    opens[:1] |= labels[:1] != last_round
    opens[1:] |= labels[1:] != labels[:-1]
    if not grouped or not labels.size:
        return np.arange(1, labels.size + 1), opens
    return np.append(np.flatnonzero(opens[1:]) + 1, labels.size), opens
