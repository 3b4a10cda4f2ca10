"""Online gradient descent on the graph-regularised loss (MOGD)."""

from typing import NamedTuple

import numpy as np

from braided._compiled import compiled
from braided._compiled.batch import Batch
from braided._compiled.linear import dot, forecast_inplace
from braided.types import Floats, Ints


class Descent(NamedTuple):
    """State of the gradient learner."""

    weights: Floats  # (T, d)
    steps: Ints  # (1,) number of samples, i


class Relation(NamedTuple):
    """λ A in compressed rows, so that a step costs O(d · neighbours)."""

    starts: Ints
    columns: Ints
    values: Floats


@compiled
def progressive_inplace(descent: Descent, relation: Relation, step: float, batch: Batch, mean: Floats) -> int:
    """Forecast, then learn, group by group; return the number of samples learned."""
    W, X, y, tasks, weights = descent.weights, batch.X, batch.y, batch.tasks, batch.weights
    gradient = np.empty(X.shape[1])
    first = 0
    for end in batch.ends:
        forecast_inplace(mean[first:end], W, X[first:end], tasks[first:end])
        for i in range(first, end):
            t = tasks[i]
            e = y[i] - dot(W[t], X[i])
            for k in range(gradient.size):
                gradient[k] = -weights[i] * e * X[i, k]
            for p in range(relation.starts[t], relation.starts[t + 1]):
                neighbour = W[relation.columns[p]]
                for k in range(gradient.size):
                    gradient[k] += relation.values[p] * neighbour[k]
            length = 2.0 * step / np.sqrt(descent.steps[0] + 1.0)
            largest = 0.0
            for k in range(gradient.size):
                gradient[k] = W[t, k] - length * gradient[k]
                largest = max(largest, abs(gradient[k]))
            if not (largest < np.inf and abs(e) < np.inf):
                return i
            for k in range(gradient.size):
                W[t, k] = gradient[k]
            descent.steps[0] += 1
        first = end
    return first
