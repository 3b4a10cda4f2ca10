"""What a solver is: it makes the state of a learner by recursive least squares, and does all that is done to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from braided._compiled.batch import Batch
from braided.forgetting import Policy
from braided.graph import TaskGraph
from braided.types import Floats, Ints


@dataclass(frozen=True)
class Setting:
    """What a solver solves: the tasks, and the parameters of the learner."""

    graph: TaskGraph
    n_features: int
    penalty: float
    forgetting: Policy
    robust: float  # 0 for none
    noise: float  # 0 for none
    tolerance: float = 0.0


class Solver(Protocol):
    """The methods of a solver; `state` is what `start`, `join` or `leave` returned, or a loaded copy of it."""

    has_fixed_shapes: bool  # a loaded state has the shapes of a fresh one

    def start(self) -> Any:
        """Return the state before the first sample."""

    def predict(self, state: Any, X: Floats, tasks: Ints, mean: Floats, std: Floats) -> None:
        """Predict into `mean`, and into `std` unless that is empty."""

    def can_move(self, batch: Batch) -> bool:
        """Whether a sample that is refused may already have moved all weights."""

    def progressive(self, state: Any, batch: Batch, mean: Floats, std: Floats) -> int:
        """Predict and learn group by group; return how many samples could be learned."""

    def learn_one(self, state: Any, x: Floats, y: float, task: int, weight: float, opens: bool) -> bool:
        """Fast path for one sample; returns False, with the state unchanged, where it is not enough."""

    def join(self, state: Any, graph: TaskGraph) -> Any:
        """Return the state after the last task of `graph` has joined."""

    def leave(self, state: Any, position: int) -> Any:
        """Return the state after the task at `position` has left."""

    def coef(self, state: Any) -> Floats:
        """Return the weights (T, d)."""

    def covariance(self, state: Any) -> Floats:
        """Return the covariance of the weights, where it is kept."""

    def variances(self, state: Any) -> Floats:
        """Return the variance of each weight."""

    def guarded(self, state: Any) -> int:
        """Return how often the arithmetic had to be rescued."""
