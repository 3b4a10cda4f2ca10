"""Speed of the learners beside plain NumPy, in one run: the same stream, the same protocol, one thread.

Prints two Markdown tables. The first has the time per sample, how many times as fast that is as the printed recursion
(Eqs. 15–18) in plain NumPy with its spread over the repeats, and how far the forecasts are from that recursion's; the
second what one call from Python takes. The stream is synthetic.

    python benchmarks/speed.py [--tasks 10] [--features 10] [--repeats 7]
"""

# ruff: noqa: E402 (the number of threads is set before NumPy is imported)
import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import statistics
import time

import numpy as np

import braided as bd
from braided._compiled import compiled
from braided.validate import not_negative, real


def prior(A, penalty, d):
    """P before the first sample."""
    return np.kron(np.linalg.inv(penalty * A), np.eye(d))


def plain_numpy(P, X, y, tasks):
    """Algorithm 1 as printed: stacked vectors and Eqs. 15–18."""
    n, d = len(P), X.shape[1]
    w, mean, forgetting = np.zeros(n), np.empty(len(y)), 1.0
    for i in range(len(y)):
        x = np.zeros(n)
        x[tasks[i] * d : (tasks[i] + 1) * d] = X[i]
        mean[i] = x @ w
        k = P @ x / (forgetting + x @ P @ x)
        w = w + (y[i] - mean[i]) * k
        P = (P - np.outer(k, x @ P)) / forgetting
    return mean


def thrifty_numpy(P, X, y, tasks):
    """The same, written with care: only the columns that matter, each product once, updates in place."""
    P, d = P.copy(), X.shape[1]
    w, mean = np.zeros(len(P)), np.empty(len(y))
    for i in range(len(y)):
        own = slice(tasks[i] * d, (tasks[i] + 1) * d)
        mean[i] = X[i] @ w[own]
        g = P[:, own] @ X[i]
        s = 1.0 + X[i] @ g[own]
        w += g * ((y[i] - mean[i]) / s)
        P -= np.outer(g, g / s)
    return mean


@compiled
def pass_through(P, f, g, repeats):
    """One triangle of P through the cache, with a multiply-add per number, so many times."""
    for _ in range(repeats):
        for i in range(P.shape[0]):
            row, factor = P[i], f[i]
            for j in range(i + 1):
                row[j] -= factor * g[j]


def stream(T, d, n, seed=0):
    """Related tasks, one sample a round each."""
    rng = np.random.default_rng(seed)
    W = rng.normal(size=d) + 0.5 * rng.normal(size=(T, d))
    tasks = np.tile(np.arange(T), n // T + 1)[:n]
    X = rng.normal(size=(n, d))
    return X, (X * W[tasks]).sum(axis=1) + 0.3 * rng.normal(size=n), tasks, np.arange(n) // T


def timed(call):
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=10)
    parser.add_argument("--features", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    T, d = options.tasks, options.features
    n = 20_000
    n_plain = max(min(n, 40_000_000 // (T * d) ** 2), 100)
    X, y, tasks, rounds = stream(T, d, n)
    rng = np.random.default_rng(1)
    S = rng.uniform(0.2, 1.0, (T, T))
    graph = bd.TaskGraph((S + S.T) / 2)

    makers = {
        "MTWRLS, interleaved": (lambda: bd.MTWRLS(graph, d), None),
        "MTWRLS, synchronous": (lambda: bd.MTWRLS(graph, d), rounds),
        "MTWRLS, synchronous, forgetting 0.995": (lambda: bd.MTWRLS(graph, d, forgetting=0.995), rounds),
        "MTOSLSSVR, linear, interleaved": (lambda: bd.MTOSLSSVR(graph, d, novelty=1e-9), None),
        "WRLS, synchronous": (lambda: bd.WRLS(graph, d), rounds),
        "OSLSSVR, linear, synchronous": (lambda: bd.OSLSSVR(graph, d, novelty=1e-9), rounds),
        "MOGD, synchronous": (lambda: bd.MOGD(graph, d, 0.01, 0.05), rounds),
        "MADMM, synchronous": (lambda: bd.MADMM(graph, d), rounds),
        "Persistence, synchronous": (lambda: bd.Persistence(graph, d), rounds),
    }
    for make, labels in makers.values():  # compile, or load what is compiled
        make().progressive(X[:T], y[:T], tasks[:T], rounds=None if labels is None else labels[:T])

    short = prior(graph.relation, 1.0, d), X[:n_plain], y[:n_plain], tasks[:n_plain]
    thrifty = "thrifty NumPy, interleaved"
    plain, times, forecasts = [], {name: [] for name in (thrifty, *makers)}, {}
    for _ in range(options.repeats):
        seconds, expected = timed(lambda: plain_numpy(*short))
        plain.append(seconds / n_plain)
        seconds, forecasts[thrifty] = timed(lambda: thrifty_numpy(*short))
        times[thrifty].append(seconds / n_plain)
        for name, (make, labels) in makers.items():
            model = make()
            seconds, forecasts[name] = timed(lambda m=model, r=labels: m.progressive(X, y, tasks, rounds=r))
            times[name].append(seconds / n)

    def rmse(mean):
        return float(np.sqrt(np.mean((mean - y[: len(mean)])[n_plain // 2 : n_plain] ** 2)))

    print(
        f"T = {T}, d = {d}, {n} samples ({n_plain} for plain NumPy), median of {options.repeats} repeats, one thread\n"
    )
    print("| learner | µs per sample | × plain NumPy (least – most) | RMSE | largest difference from plain NumPy |")
    print("|---|---|---|---|---|")
    print(f"| plain NumPy, Eqs. 15–18 | {1e6 * statistics.median(plain):.2f} | 1 | {rmse(expected):.4f} | |")
    for name, seconds in times.items():
        ratios = [p / s for p, s in zip(plain, seconds, strict=True)]
        spread = f"{statistics.median(ratios):.1f} ({min(ratios):.1f} – {max(ratios):.1f})"
        gap = np.abs(forecasts[name][:n_plain] - expected).max() / np.abs(expected).max()
        same = f"{gap:.0e}" if "interleaved" in name else "another protocol or method"
        micros = 1e6 * statistics.median(seconds)
        print(f"| {name} | {micros:.2f} | {spread} | {rmse(forecasts[name]):.4f} | {same} |")

    one_call(graph, X[0], options.repeats)


def many_tasks(T, d):
    """A model of many tasks on a sparse graph, after some rounds."""
    rng = np.random.default_rng(2)
    model = bd.MTWRLS(bd.TaskGraph.nearest(rng.random((T, 2)), k=6), d, solver="local")
    for label in range(20):
        model.learn_many(rng.normal(size=(T, d)), rng.normal(size=T), np.arange(T), rounds=np.full(T, label))
    return model


def one_call(graph, x, repeats):
    """What a call from Python takes, and which part of it is checking what is given."""
    model, many = bd.MTWRLS(graph, len(x)), many_tasks(1_000, len(x))
    rng = np.random.default_rng(3)
    anywhere = iter(rng.integers(0, 1_000, 100_000).tolist())

    def check():
        model._one_input(x)
        model.graph.index(0)
        real(1.0, "y")
        not_negative(1.0, "weight")

    calls = {
        "learn_one": lambda: model.learn_one(x, 1.0, task=0),
        "predict_one": lambda: model.predict_one(x, task=0),
        "predict_one, with_std": lambda: model.predict_one(x, task=0, with_std=True),
        "of learn_one, checking the arguments": check,
        "learn_one, 1,000 tasks, local, in random order": lambda: many.learn_one(x, rng.normal(), task=next(anywhere)),
        "predict_one, 1,000 tasks, local": lambda: many.predict_one(x, task=7),
    }
    print("\n| MTWRLS, one call from Python | µs, fastest of the repeats |\n|---|---|")
    for name, call in calls.items():
        batches = [timed(lambda c=call: [c() for _ in range(1000)])[0] for _ in range(3 * repeats)]
        print(f"| {name} | {1e3 * min(batches):.1f} |")


if __name__ == "__main__":
    main()
