"""Samples: what rounds were forecast from, and what came in them, kept for a member that is refitted periodically."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from braided.errors import InputError
from braided.types import Floats
from braided.validate import insist_numbers

AXES = {"far": 1, "came": 1}  # the axis of the rounds, where it is not the first


class Samples(NamedTuple):
    """n rounds in order."""

    X: Floats  # (n, T, d) features, in single precision; NaN where something is not known ahead, as in `far`
    far: Floats  # (H − 1, n, T, f) those as of later rounds, in single precision
    moments: Floats  # (n, H, K) what the clock says of each round and of those after it
    came: Floats  # (H, n, T) changes over the last 1, 2, … H rounds, NaN where there is none

    def part(self, first: int, end: int | None = None) -> Samples:
        """Return some of the rounds."""
        here = np.s_[first:end]
        return Samples(self.X[here], self.far[:, here], self.moments[here], self.came[:, here])

    def inputs(self, k: int) -> Floats:
        """Return the inputs (n, T, …) for forecasts of the round k after the next; the last is the stream's number."""
        n, T = self.X.shape[:2]
        moments = np.broadcast_to(self.moments[:, None, k], (n, T, self.moments.shape[2]))
        streams = np.broadcast_to(np.arange(T, dtype=np.float64)[:, None], (n, T, 1))
        return np.concatenate([self.X, *self.far[k - 1 : k], moments, streams], axis=2, dtype=np.float64)

    def complete(self, k: int) -> tuple[Floats, Floats]:
        """Return inputs (m, …) without NaN, and the changes (m,) that came, for the round k after the next."""
        n = max(len(self.X) - k, 0)
        X, y = self.part(0, n).inputs(k), self.came[k, len(self.X) - n :]
        there = ~np.isnan(y) & ~np.isnan(X).any(axis=2)
        return X[there], y[there]

    def with_stream(self) -> Samples:
        """Return the same with one more stream, of which nothing is known."""
        near, far = ((0, 0), (0, 1), (0, 0)), ((0, 0), (0, 0), (0, 1), (0, 0))
        came = np.pad(self.came, ((0, 0), (0, 0), (0, 1)), constant_values=np.nan)
        return self._replace(X=np.pad(self.X, near), far=np.pad(self.far, far), came=came)

    @classmethod
    def joined(cls, parts: Sequence[Samples]) -> Samples:
        """Return parts one after the other."""
        arrays = zip(cls._fields, *parts, strict=True)
        return cls(*(np.concatenate(held, AXES.get(name, 0)) for name, *held in arrays))

    def insist_like(self, n: int, n_streams: int, horizon: int, d: int) -> None:
        """Refuse samples that do not have n rounds, n_streams streams, these horizons and d features."""
        for name, array in self._asdict().items():
            if not isinstance(array, np.ndarray):
                raise InputError(f"{name} of samples is a {type(array).__name__}")
        f, K = self.far.shape[-1], self.moments.shape[-1]
        for name, shape in {"X": (n, n_streams, d), "far": (horizon - 1, n, n_streams, f)}.items():
            if getattr(self, name).dtype != np.float32:
                raise InputError(f"{name} of samples is not in single precision")
            insist_numbers(getattr(self, name).astype(np.float64), name, shape, missing=True)
        insist_numbers(self.moments, "moments", (n, horizon, K))
        insist_numbers(self.came, "changes that came", (horizon, n, n_streams), missing=True)


def in_single_precision(numbers: Floats, limit: float) -> Any:
    """Return numbers in single precision, clipped at ± the limit."""
    return np.clip(numbers, -limit, limit).astype(np.float32)
