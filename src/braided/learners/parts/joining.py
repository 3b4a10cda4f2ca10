"""A task joins: its edges and its ridge are new information about all tasks, absorbed exactly.

The new row of the relation matrix is [−f', g] and the old diagonal grows by E. Given the others, the new task's
weights are Σ_j (f_j / g) w_j with precision λg; and the others alone gain the information λM, M = E − ff'/g. So the
others are updated first, by Woodbury's identity on the new task's neighbours, and then the new task is appended. The
result is the solution on the enlarged graph, and no step uses a nearly singular prior.
"""

from typing import Any, NamedTuple, TypeVar

import numpy as np

from braided.graph import TaskGraph
from braided.types import Floats, Ints

State = TypeVar("State", bound=tuple[Any, ...])


class Arrival(NamedTuple):
    """What the last task of a graph adds."""

    near: Ints  # (k,) positions of its neighbours
    pull: Floats  # (k,) f / g, the share of each neighbour in its expected weights
    precision: float  # g
    coupling: Floats  # (k, k) M, information that the neighbours gain about each other


def arrival(enlarged: TaskGraph) -> Arrival:
    """Return what the last task of the graph adds; its edges are symmetric, so E = diag(f)."""
    last = enlarged.relation[[-1]]
    row = (last.toarray() if enlarged.is_sparse else last)[0]
    near = np.flatnonzero(row[:-1])
    f = -row[near]
    rest = enlarged.ridge + np.array([np.delete(f, j).sum() for j in range(len(f))])  # g − f_j, without cancellation
    g = enlarged.ridge + f.sum()
    coupling = -np.outer(f, f) / g
    np.fill_diagonal(coupling, f * rest / g)
    return Arrival(near, f / g, float(g), coupling)


def appended(state: State, new: State) -> State:
    """Return a state whose arrays have one row per task, with the new task's row at the end."""
    return type(state)(*map(np.concatenate, zip(state, new, strict=True)))


def without(state: State, position: int) -> State:
    """Return a state whose arrays have one row per task, without the row of the task that leaves."""
    return type(state)(*(np.delete(array, position, axis=0) for array in state))


def errors_with_one_more(errors: Floats) -> Floats:
    """Return the errors (T + 1, 3) of tasks, and of all at the end, with room for another task."""
    return np.insert(errors, len(errors) - 1, 0.0, axis=0)


def expected_weights(arrived: Arrival, weights: Floats) -> Floats:
    """Return the weights (T, d) with the row that the new task's neighbours suggest."""
    return np.vstack([weights, arrived.pull @ weights[arrived.near]])


def enlarge(P: Floats, weights: Floats, arrived: Arrival, penalty: float) -> tuple[Floats, Floats, float]:
    """Return covariance and weights with one more task, and the increase of the minimum of the objective.

    P is the full covariance (dT, dT), weights (T, d).
    """
    n, d = P.shape[0], weights.shape[1]
    blocks = (arrived.near[:, None] * d + np.arange(d)).ravel()
    M = np.kron(penalty * arrived.coupling, np.eye(d))
    core = np.linalg.solve(np.eye(len(M)) + M @ P[np.ix_(blocks, blocks)], M)
    old = weights.ravel()
    w = old - P[:, blocks] @ (core @ old[blocks])
    P = P - P[:, blocks] @ core @ P[blocks]
    pull = np.kron(arrived.pull, np.eye(d))  # (d, kd)
    larger = np.empty((n + d, n + d))
    larger[:n, :n] = (P + P.T) / 2.0
    larger[n:, :n] = pull @ P[blocks]
    larger[:n, n:] = larger[n:, :n].T
    corner = larger[n:, blocks] @ pull.T
    larger[n:, n:] = (corner + corner.T) / 2.0 + np.eye(d) / (penalty * arrived.precision)
    return larger, expected_weights(arrived, w.reshape(-1, d)), float(old[blocks] @ core @ old[blocks])
