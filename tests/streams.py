"""Random problems that many tests use."""

import numpy as np
import scipy.sparse as sparse

import braided as bd


def random_graph(rng, n_tasks, ridge=0.1, density=0.6, storage="dense", form="laplacian"):
    """Random non-negative similarities, some of them zero."""
    S = rng.uniform(0.1, 1.0, (n_tasks, n_tasks)) * (rng.uniform(size=(n_tasks, n_tasks)) < density)
    if form == "laplacian":
        S = np.triu(S, 1) + np.triu(S, 1).T
    return bd.TaskGraph(S if storage == "dense" else sparse.csr_array(S), ridge=ridge, form=form)


def random_stream(rng, n_tasks, d, n_rounds, noise=0.1, shared=0.7):
    """Rounds in which every task is seen once, in random order: X, y, tasks, rounds."""
    common = rng.normal(size=d)
    W = shared * common + (1 - shared) * rng.normal(size=(n_tasks, d))
    tasks = np.concatenate([rng.permutation(n_tasks) for _ in range(n_rounds)])
    X = rng.normal(size=(len(tasks), d))
    y = (X * W[tasks]).sum(axis=1) + noise * rng.normal(size=len(tasks))
    return X, y, tasks, np.repeat(np.arange(n_rounds), n_tasks)


def worst(a, b):
    """Largest difference relative to the largest value."""
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape
    return np.abs(a - b).max() / max(np.abs(b).max(), 1e-300)
