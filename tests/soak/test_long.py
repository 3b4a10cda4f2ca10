"""A long stream against the batch solution of its moments, accumulated chunk by chunk in plain NumPy."""

import numpy as np
import pytest

import braided as bd
from tests.soak import either
from tests.streams import random_graph, worst

T, D = 4, 3
SAMPLES = either(10**5, 10**7)
CHUNK = 10**5 // T * T
PENALTY = 0.3
SLOW = 1.0 - 1e-5
TOLERANCE = 1e-12  # rounding leaves 2e-13, after a hundred thousand samples as after ten million


class Moments:
    """Sums of x x' and y x per task, in which the past fades."""

    def __init__(self):
        self.inputs, self.targets, self.prior = np.zeros((T, D, D)), np.zeros((T, D)), 1.0

    def add(self, X, y, weights, fade):
        """Add rounds (n, T, D) with their weights (n, T), after all that is there has faded."""
        self.inputs = fade * self.inputs + np.einsum("nt,nti,ntj->tij", weights, X, X, optimize=True)
        self.targets = fade * self.targets + np.einsum("nt,nti,nt->ti", weights, X, y, optimize=True)
        self.prior *= fade

    def solution(self, relation):
        """The weights (T, d), and the inverse of the information."""
        information = self.prior * PENALTY * np.kron(relation, np.eye(D))
        for t in range(T):
            information[t * D : (t + 1) * D, t * D : (t + 1) * D] += self.inputs[t]
        return np.linalg.solve(information, self.targets.ravel()).reshape(T, D), np.linalg.inv(information)


@pytest.mark.parametrize("factor", [1.0, SLOW, 0.999])
@pytest.mark.parametrize("kind", [bd.MTWRLS, bd.WRLS])
def test_a_long_stream_ends_at_the_batch_solution(kind, factor):
    """With forgetting and without, to twelve digits."""
    rng = np.random.default_rng(0)
    shared = kind is bd.MTWRLS
    graph = random_graph(rng, T) if shared else bd.TaskGraph.independent(range(T))
    model = kind(graph, D, PENALTY, bd.Exponential(factor, per="sample" if shared else "task"))
    moments, W = Moments(), rng.normal(size=(T, D))
    n = CHUNK // T
    ticks = np.arange(CHUNK).reshape(n, T) if shared else np.repeat(np.arange(n), T).reshape(n, T)
    last = ticks[-1, -1]
    for _ in range(SAMPLES // CHUNK):
        X = rng.normal(size=(n, T, D)) @ np.diag([1.0, 3.0, 0.1]) + [0.0, 0.0, 1.0]
        y = (X * W).sum(axis=2) + 0.1 * rng.normal(size=(n, T))
        model.learn_many(X.reshape(-1, D), y.ravel(), np.tile(np.arange(T), n))
        moments.add(X, y, factor ** (last - ticks).astype(np.float64), factor ** (last + 1.0))
    w, P = moments.solution(graph.dense_relation)
    assert model.samples == SAMPLES
    assert worst(model.coef, w) < TOLERANCE
    made = model.covariance
    expected = P if shared else np.array([P[t * D : (t + 1) * D, t * D : (t + 1) * D] for t in range(T)])
    assert worst(made, expected) < TOLERANCE
