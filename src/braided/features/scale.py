"""Scale: standardise inputs with means and deviations measured beforehand, on past data.

>>> scale = Scale.fit([[0.0, 10.0], [2.0, 10.0], [4.0, 10.0]])
>>> scale.mean, scale.deviation
(array([2., 0.]), array([1.63299316, 1. ]))
>>> scale.transform([[2.0, 11.0]])
array([[ 0., 11.]])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from braided.errors import InputError
from braided.features.base import FeatureMap
from braided.types import Floats
from braided.validate import floats


@final
@dataclass(frozen=True, eq=False)
class Scale(FeatureMap):
    """(x − mean) / deviation, column by column."""

    mean: Floats
    deviation: Floats

    def __post_init__(self) -> None:
        """Check and copy both."""
        mean, deviation = floats(self.mean, "mean", 1).copy(), floats(self.deviation, "deviation", 1).copy()
        if mean.size != deviation.size or (deviation <= 0).any():
            raise InputError(f"deviation is {deviation}: give a value above 0 for each of {mean.size} columns")
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "deviation", deviation)

    @classmethod
    def fit(cls, X: Any) -> Scale:
        """Measure the columns of X; a constant column, such as a bias, stays unchanged."""
        X = floats(X, "X", 2)
        if len(X) == 0:
            raise InputError("X has no rows: means and deviations need at least one")
        deviation = X.std(axis=0)
        constant = (np.ptp(X, axis=0) == 0) | (deviation == 0)
        return cls(np.where(constant, 0.0, X.mean(axis=0)), np.where(constant, 1.0, deviation))

    def width(self, n_features: int) -> int:
        """Return the same width, if it is the one measured."""
        if n_features != self.mean.size:
            raise InputError(f"n_features is {n_features}, but this Scale was measured on {self.mean.size} columns")
        return n_features

    def transform(self, X: Floats) -> Floats:
        """Return the standardised columns."""
        with np.errstate(over="ignore"):  # the learner checks that features are finite
            return (np.asarray(X, dtype=np.float64) - self.mean) / self.deviation
