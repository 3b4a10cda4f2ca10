"""Linear algebra that fails is reported as a NumericalError or an InputError, and the model is as it was before.

Samples of any size, graphs whose ridge is nearly lost, and penalties from one end of the range to the other; tasks join
and leave in between. SciPy's and NumPy's own errors never reach the caller.
"""

import warnings
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sparse

import braided as bd
from braided.errors import BraidedError
from braided.forgetting import Directional, Drift, Exponential, HalfLife, Restore
from braided.kernels import linear, polynomial, rbf
from braided.state import dumps
from tests.soak import either

SIZES = (1e-100, 1e-6, 1.0, 1e6, 1e12, 1e15, 1e100, 1e140)
PENALTIES = (1e-150, 1e-10, 1e-3, 1.0, 1e10, 1e150)
RIDGES = (1e-12, 1e-6, 0.1, 1e6)
SIMILARITIES = (0.0, 1e-9, 0.5, 1.0, 1e6, 1e12)
EVERYWHERE = (1.0, Exponential(0.2, per="round"), HalfLife(1.0))
OWN = (1.0, Exponential(0.2, per="task"), HalfLife(1.0), Restore(0.2), Directional(0.2), Drift(4.0))
SHARED = (*OWN, Exponential(0.2), Exponential(0.9), Exponential(0.2, guard=False))
READ = ("coef", "covariance", "dual_coef", "health", "noise_variance", "optimality")


def _filters(kind, policies, rng, graph, penalty, **given):
    policy = policies[rng.integers(len(policies))]
    return kind(graph, 2, penalty, policy, robust=rng.choice([None, 4.0]), **given)


def _kernels(kind, rng, graph, penalty):
    kernel = (linear(), rbf(), polynomial(3))[rng.integers(3)]
    policy = (1.0, Restore(0.2), Directional(0.2))[rng.integers(3)]
    budget, novelty = (None, 4)[rng.integers(2)], float(rng.choice([0.0, 1e-9, 1e-3]))
    return kind(graph, 2, kernel, penalty, novelty, budget, forgetting=policy)


LEARNERS = {
    "MTWRLS dense": partial(_filters, bd.MTWRLS, SHARED, solver="dense"),
    "MTWRLS blocked": partial(_filters, bd.MTWRLS, SHARED, solver="blocked"),
    "MTWRLS local": partial(_filters, bd.MTWRLS, EVERYWHERE, solver="local"),
    "WRLS": partial(_filters, bd.WRLS, OWN),
    "MTOSLSSVR": partial(_kernels, bd.MTOSLSSVR),
    "OSLSSVR": partial(_kernels, bd.OSLSSVR),
    "MOGD": lambda rng, graph, penalty: bd.MOGD(graph, 2, penalty),
    "GraphRidge": lambda rng, graph, penalty: bd.GraphRidge(graph, 2, penalty),
    "Composed": lambda rng, graph, penalty: bd.ELM(hidden=3) | bd.MTWRLS(graph, 2, penalty),
}
SLOW = {  # to compile, or to converge
    "MADMM": lambda rng, graph, penalty: bd.MADMM(graph, 2, penalty, rho=float(rng.choice(PENALTIES))),
    "L21": lambda rng, graph, penalty: bd.L21(graph, 2, penalty),
    "TraceNorm": lambda rng, graph, penalty: bd.TraceNorm(graph, 2, penalty),
}


def _attempt(call, model=None):
    """Return the result, or None after one of braided's errors, which must have left the model as it was."""
    before = None if model is None else dumps(model)
    try:
        return call()
    except BraidedError:
        assert model is None or dumps(model) == before
        return None


def _graph(rng):
    S = np.triu(rng.uniform(size=(3, 3)) * rng.choice(SIMILARITIES), 1)
    S = (S + S.T) * (rng.choice([-1, 1]) if rng.integers(4) == 0 else 1)
    form, sign = rng.choice(["laplacian", "penalty"]), rng.choice(["reject", "clip", "absolute"])
    given = sparse.csr_array(S) if rng.integers(2) else S
    return bd.TaskGraph(given, ridge=float(rng.choice(RIDGES)), form=str(form), sign=str(sign))


def _samples(rng, model, size):
    n = int(rng.integers(1, 9))
    X = rng.normal(size=(n, 2)) * (size if rng.integers(2) else rng.choice(SIZES, size=(n, 2)))
    if rng.integers(3) == 0:
        X[:, 1] = X[:, 0]
    return X, rng.normal(size=n) * rng.choice(SIZES), [model.tasks[k] for k in rng.integers(len(model.tasks), size=n)]


def _trial(make, rng):
    graph = _attempt(partial(_graph, rng))
    if graph is None:
        return
    _attempt(lambda: graph.inverse)
    model = _attempt(lambda: make(rng, graph, float(rng.choice(PENALTIES))))
    if model is None:
        return
    size = float(rng.choice(SIZES))
    for step in range(6):
        action, samples = rng.integers(4), _samples(rng, model, size)
        if action == 0 and len(model.tasks) < 6:
            similar = {task: float(rng.choice(SIMILARITIES)) for task in model.tasks}
            _attempt(lambda key=f"new {step}", links=similar: model.add_task(key, links), model)
        elif action == 1 and len(model.tasks) > 1:
            gone = model.tasks[rng.integers(len(model.tasks))]
            _attempt(lambda key=gone: model.remove_task(key), model)
        elif action == 2:
            _attempt(lambda given=samples: model.progressive(*given, with_std=model.has_std))
        else:
            _attempt(lambda given=samples: model.learn_many(*given))
        X, _, tasks = _samples(rng, model, size)
        _attempt(lambda given=(X, tasks): model.predict_many(*given, with_std=model.has_std), model)
        for name in READ:
            _attempt(lambda read=name: getattr(model, read, None), model)


@pytest.mark.parametrize("name", [*LEARNERS, *either((), SLOW)])
def test_only_errors_of_braided_reach_the_caller(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of overflow, which forecasts are checked for
        for seed in range(either(100, 300 if name in SLOW else 10_000)):
            _trial((LEARNERS | SLOW)[name], np.random.default_rng(seed))
