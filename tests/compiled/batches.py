"""Batches for tests of compiled functions."""

import numpy as np

from braided._compiled.batch import NO_ROUND, Batch


def as_batch(X, y, tasks, ends, weights=None, opens=None):
    """Return the samples as a batch; every weight is 1 and every sample opens a round where not given."""
    n = len(y)
    weights = np.ones(n) if weights is None else np.asarray(weights)
    opens = np.ones(n, np.bool_) if opens is None else np.array(opens)
    return Batch(X, y, tasks, weights, np.array(ends), opens, np.full(n, NO_ROUND), NO_ROUND)
