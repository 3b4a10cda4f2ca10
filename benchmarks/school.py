"""The batch learners on the School data: exam scores of 15,362 pupils of 139 schools from 28 features.

The data are MALSAR's school.mat, which braided does not carry: name the file, or the folder it is in.

    python benchmarks/school.py FOLDER

Ten random splits, three quarters of each school's pupils to learn from. A third of those are set aside to choose the
penalty; then the model learns from all of them. Features are standardised, and scores centred, as the pupils to learn
from have them. Explained variance is 1 − SSE / SST over all test pupils, SST around their mean. Prints a Markdown
table: mean and standard deviation over the splits, the penalties chosen, the seconds of the slowest solve, and the
worst violation of the optimality conditions (`optimality`) of any model. About a minute, with one thread.
"""

# ruff: noqa: E402 (the number of threads is set before NumPy is imported)
import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import time
from pathlib import Path

import numpy as np
import scipy.io

import braided as bd

SPLITS = 10
METHODS = {  # with the penalties to choose among
    "single-task ridge": (
        lambda T, *args: bd.GraphRidge(bd.TaskGraph.independent(range(T)), *args),
        (1, 3, 10, 30, 100),
    ),
    "GraphRidge, pooled": (lambda T, *args: bd.GraphRidge(bd.TaskGraph.pooled(range(T)), *args), (0.1, 0.3, 1, 3, 10)),
    "L21": (lambda T, *args: bd.L21(range(T), *args), (30, 100, 300, 1000, 3000)),
    "TraceNorm": (lambda T, *args: bd.TraceNorm(range(T), *args), (100, 300, 1000, 3000, 10000)),
}


def school(path):
    """X, y and the position of each pupil's school."""
    content = scipy.io.loadmat(path / "school.mat" if path.is_dir() else path)
    X, y = ([np.asarray(part, float) for part in content[name].ravel()] for name in ("X", "Y"))
    return np.vstack(X), np.concatenate(y).ravel(), np.repeat(np.arange(len(X)), [len(part) for part in X])


def drawn(rng, tasks, rows, share):
    """A mask of all pupils: this share of each school's among `rows`."""
    mask = np.zeros(len(tasks), bool)
    for t in np.unique(tasks):
        own = rng.permutation(rows[tasks[rows] == t])
        mask[own[: round(share * len(own))]] = True
    return mask


def fitted(make, penalty, X, y, tasks, rows):
    """What a model of these rows predicts for all pupils, the seconds to solve it, and its optimality."""
    mean, deviation = X[rows].mean(axis=0), X[rows].std(axis=0)
    X = np.where(deviation > 0, (X - mean) / np.where(deviation > 0, deviation, 1.0), X)
    model = make(tasks.max() + 1, X.shape[1], penalty)
    model.learn_many(X[rows], y[rows] - y[rows].mean(), tasks[rows])
    start = time.perf_counter()
    model.coef  # noqa: B018 (solves)
    seconds = time.perf_counter() - start
    return y[rows].mean() + model.predict_many(X, tasks), seconds, model.optimality


def explained(y, mean):
    return 1.0 - ((y - mean) ** 2).sum() / ((y - y.mean()) ** 2).sum()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path, help="school.mat, or the folder it is in")
    X, y, tasks = school(parser.parse_args().path)
    print("| method | explained variance, % | penalties chosen | slowest solve, s | worst optimality |")
    print("|---|---|---|---|---|")
    for name, (make, penalties) in METHODS.items():
        scores, chosen, costs = [], [], []
        for seed in range(SPLITS):
            rng = np.random.default_rng(seed)
            train = drawn(rng, tasks, np.arange(len(y)), 0.75)
            inner = drawn(rng, tasks, np.flatnonzero(train), 2 / 3)
            aside = train & ~inner
            runs = {p: fitted(make, p, X, y, tasks, inner) for p in penalties}
            chosen.append(max(penalties, key=lambda p: explained(y[aside], runs[p][0][aside])))
            mean, *cost = fitted(make, chosen[-1], X, y, tasks, train)
            scores.append(100 * explained(y[~train], mean[~train]))
            costs += [cost, *(run[1:] for run in runs.values())]
        seconds, violation = np.max(costs, axis=0)
        spread = f"{np.mean(scores):.1f} ± {np.std(scores, ddof=1):.1f}"
        among = ", ".join(f"{p:g}" for p in sorted(set(chosen)))
        print(f"| {name} | {spread} | {among} | {seconds:.1f} | {violation:.0e} |", flush=True)


if __name__ == "__main__":
    main()
