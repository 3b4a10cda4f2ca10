"""What every linear learner needs: inner products and forecasts from one row of weights per task."""

from braided._compiled import compiled
from braided.types import Floats, Ints


@compiled
def dot(a: Floats, b: Floats) -> float:
    """Inner product."""
    total = 0.0
    for k in range(a.size):
        total += a[k] * b[k]
    return total


@compiled
def forecast_inplace(mean: Floats, W: Floats, X: Floats, tasks: Ints) -> None:
    """mean ← w_t' x of each sample."""
    for i in range(tasks.size):
        mean[i] = dot(W[tasks[i]], X[i])
