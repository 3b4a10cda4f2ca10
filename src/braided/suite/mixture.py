"""Mixture of the rules, weighted as in Auto: half by each stream's own weights, half by those of all streams."""

from __future__ import annotations

import numpy as np

from braided._compiled.mixture import Mixed, fresh_mixture, progressive_inplace
from braided.types import Floats


def mixture_of(forecasts: Floats, target: Floats) -> Floats:
    """Return the mixture (n, T) of forecasts (K, n, T), NaN where one sleeps; targets (n, T) are NaN where missing.

    >>> target = np.full((50, 1), 1.0)
    >>> mixed = mixture_of(np.stack([np.zeros((50, 1)), target]), target)
    >>> bool(mixed[0, 0] == 0.5), bool(mixed[-1, 0] > 0.98)
    (True, True)
    """
    K, n, T = forecasts.shape
    mean = np.zeros((n, T))
    mixed = Mixed(mean, np.zeros((n, K)), np.zeros((T, K)))
    members = np.ascontiguousarray(np.moveaxis(forecasts, 0, 2))
    progressive_inplace(fresh_mixture(np.full(K, 1.0 / K), T), members, np.ascontiguousarray(target), mixed)
    return mean
