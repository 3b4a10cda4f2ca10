"""Samples as callers give them: weights and rounds checked, and divided into groups."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import numpy as np

from braided._compiled.batch import NO_ROUND, Batch
from braided.errors import InputError
from braided.types import Flags, Floats, Ints
from braided.validate import floats

LARGEST_LABEL = int(np.iinfo(np.int64).max)
ONE_GROUP, NO_LABEL, OPENS = np.array([1]), np.array([NO_ROUND]), (np.array([False]), np.array([True]))


def as_weights(values: Any) -> Floats:
    """Check that no weight is negative."""
    weights = floats(values, "weights", ndim=1)
    if (weights < 0).any():
        place = int(np.argmax(weights < 0))
        raise InputError(f"weights[{place}] is {weights[place]:g}: give weights of 0 or more")
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
        missing, lost = np.zeros(labels.shape, np.bool_), (given > LARGEST_LABEL) | (labels == NO_ROUND)
    faults = {
        "is missing: every sample needs its round": missing,
        "is finer than a microsecond, or does not fit 64 bits: use integers that fit": lost,
        "is below the one before: sort the samples by round": np.append(False, labels[1:] < labels[:-1])[: labels.size],
    }
    for fault, places in faults.items():
        if places.any():
            place = int(np.argmax(places))
            raise InputError(f"rounds[{place}], {given[place]}, {fault}")
    return labels


def as_label(round: Any) -> int:
    """Turn the label or time stamp of one round into an integer."""
    if type(round) is int and NO_ROUND < round <= LARGEST_LABEL:  # the fast path of most calls
        return round
    return int(as_labels([round])[0])


def plain_time(label: Any) -> Any:
    """Convert a time stamp of Python or pandas to NumPy, in UTC; return anything else unchanged."""
    if isinstance(label, datetime) and label.tzinfo is not None:
        label = label.astimezone(UTC).replace(tzinfo=None)
    return np.datetime64(label, "us") if isinstance(label, date) else label


def batch_of_one(x: Floats, y: float, task: int, weight: float, opens: bool, label: int, last: int) -> Batch:
    """Return one checked sample as a batch."""
    labels = NO_LABEL if label == NO_ROUND else np.array([label])
    sample = x.reshape(1, -1), np.array([y]), np.array([task]), np.array([weight])
    return Batch(*sample, ONE_GROUP, OPENS[opens], labels, last)


def grouping(labels: Ints, last_round: int, grouped: bool) -> tuple[Ints, Flags]:
    """Return the ends of the groups (rounds if `grouped`, else single samples), and which samples open a round."""
    opens = labels == NO_ROUND
    opens[:1] |= labels[:1] != last_round
    opens[1:] |= labels[1:] != labels[:-1]
    if not grouped or not labels.size:
        return np.arange(1, labels.size + 1), opens
    return np.append(np.flatnonzero(opens[1:]) + 1, labels.size), opens
