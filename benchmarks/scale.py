"""How speed grows with the size of the problem: samples per second against dT, against T and against m, and the floor.

Every part prints Markdown tables, with accuracy beside speed where a solver is not exact; all streams are synthetic.
`--figure FILE` draws the curves. One thread, but for `local`, which takes up to four where that pays.

    python benchmarks/scale.py [--part local dense blocked accuracy deviations kernel] [--figure docs/performance.svg]
"""

# ruff: noqa: E402 (the number of threads is set before NumPy is imported)
import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import copy
import resource
import time
from functools import partial
from statistics import median

import numpy as np
from speed import pass_through, plain_numpy, prior, stream

import braided as bd

FEATURES = 10
ROUNDS = 30


def timed(call, *arguments, **options):
    start = time.perf_counter()
    call(*arguments, **options)
    return time.perf_counter() - start


def least(repeats, call, *arguments, **options):
    """The shortest of some repeats: what else runs on the machine only ever adds."""
    return min(timed(call, *arguments, **options) for _ in range(repeats))


def dense_part(results):
    """MTWRLS by both exact solvers, the floor and plain NumPy, against dT: medians, of ratios within a repeat."""
    print(
        "\n| dT | floor, µs | dense, µs | blocked, µs | plain NumPy, µs | auto takes | over the floor | × plain NumPy |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for T in (1, 2, 4, 8, 10, 16, 30, 60, 100, 200):
        size = T * FEATURES
        n, few = max(min(20_000, int(4e8 / size**2)), 300), max(min(20_000, int(2e7 / size**2)), 30)
        X, y, tasks, _ = stream(T, FEATURES, n)
        graph, P, g = bd.TaskGraph.pooled(range(T)), np.eye(size), np.full(size, 1e-12)
        start = prior(graph.relation, 1.0, FEATURES)

        def once(name):
            if name == "floor":
                return timed(pass_through, P, g, g, few) / few  # noqa: B023 (called at once)
            if name == "plain":
                return timed(plain_numpy, start, X[:few], y[:few], tasks[:few]) / few  # noqa: B023
            return timed(bd.MTWRLS(graph, FEATURES, solver=name).progressive, X, y, tasks) / n  # noqa: B023

        names = ("floor", "dense", "blocked", "plain")
        runs = [{name: once(name) for name in names} for _ in range(8)][1:]  # the first compiles, and warms up
        row = {"dT": size} | {name: median(run[name] for run in runs) for name in names}
        uses = bd.MTWRLS(graph, FEATURES).uses
        results["dense"].append(row)
        micros = " | ".join(f"{1e6 * row[name]:.2f}" for name in names)
        over, times = median(run[uses] / run["floor"] for run in runs), median(run["plain"] / run[uses] for run in runs)
        print(f"| {size:,} | {micros} | {uses} | {over:.2f} | {times:.1f} |", flush=True)


def blocked_part(results):
    """The largest P that there is patience for: dT = 6,000."""
    T, n = 600, 64
    X, y, tasks, _ = stream(T, FEATURES, n)
    graph = bd.TaskGraph.pooled(range(T))
    seconds = {}
    for solver in ("dense", "blocked"):
        model = bd.MTWRLS(graph, FEATURES, solver=solver)
        model.progressive(X[:32], y[:32], tasks[:32])
        seconds[solver] = least(3, model.progressive, X, y, tasks) / n
    ratio = seconds["dense"] / seconds["blocked"]
    print(
        f"\ndT = 6,000: dense {1e3 * seconds['dense']:.2f} ms a sample, blocked {1e3 * seconds['blocked']:.2f} ms, ",
        end="",
    )
    print(f"{ratio:.1f} times as fast")


def field(T, d, seed=0):
    """Tasks at random places of a square, with six neighbours each and weights that vary over it."""
    rng = np.random.default_rng(seed)
    places = rng.random((T, 2))
    waves = rng.normal(size=(5, 2, d)) * 4.0
    W = 0.5 * np.cos(np.einsum("tp,wpd->twd", places, waves) + 6.3 * rng.random((5, d))).sum(axis=1)
    return bd.TaskGraph.nearest(places, k=6, ridge=0.1), W + 0.3 * rng.normal(size=(T, d)), rng


def round_of(W, rng):
    X = rng.normal(size=W.shape)
    return X, (X * W).sum(axis=1) + rng.normal(size=len(W))


def by_sample(model, W, rng):
    """Seconds per sample, in random order, each forecast and learned before the next.

    Every repeat goes on from a copy, for at most a sample per task: a model that has learned more has less to do.
    """
    n, seconds = min(len(W), 10_000), []
    for _ in range(9):
        tasks = rng.integers(0, len(W), n)
        X = rng.normal(size=(n, W.shape[1]))
        y = (X * W[tasks]).sum(axis=1) + rng.normal(size=n)
        seconds.append(timed(copy.deepcopy(model).progressive, X, y, tasks) / n)
    return min(seconds)


def local_part(results):
    """solver="local", by round and by sample, against T."""
    print(
        "\n| T | rounds | by round, samples/s | µs a sample | by sample, samples/s | µs a sample | RMSE, last round "
        "| peak, MB |"
    )
    print("|---|---|---|---|---|---|---|---|")
    warm, _, rng = field(200, FEATURES)
    model = bd.MTWRLS(warm, FEATURES, solver="local")
    model.progressive(rng.normal(size=(400, FEATURES)), rng.normal(size=400), np.tile(np.arange(200), 2))
    for T in (1_000, 3_000, 10_000, 30_000, 100_000):
        graph, W, rng = field(T, FEATURES)
        model, seconds, tasks = bd.MTWRLS(graph, FEATURES, solver="local"), 0.0, np.arange(T)
        for label in range(ROUNDS):
            X, y = round_of(W, rng)
            start = time.perf_counter()
            forecasts = model.progressive(X, y, tasks, rounds=np.full(T, label))
            seconds += time.perf_counter() - start
        rmse = float(np.sqrt(np.mean((y - forecasts) ** 2)))
        single = by_sample(model, W, rng)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        row = {"T": T, "by round": seconds / ROUNDS / T, "by sample": single, "rmse": rmse, "peak": peak}
        results["local"].append(row)
        speeds = " | ".join(f"{1 / row[name]:,.0f} | {1e6 * row[name]:.2f}" for name in ("by round", "by sample"))
        print(f"| {T:,} | {ROUNDS} | {speeds} | {rmse:.4f} | {peak:,.0f} |", flush=True)
    first, last = results["local"][0], results["local"][-1]
    for name in ("by round", "by sample"):
        print(f"\n{name}: a sample takes {last[name] / first[name]:.2f} times as long at T = 100,000 as at 1,000")


def accuracy_part(results):
    """How far the RMSE of solver="local" is from that of the exact solution, at every round from the third on.

    By round the exact one is the batch solution, solved anew each time; by sample that of the recursion, "blocked".
    """
    print("\n| T, d | ridge | penalty | level | protocol | largest difference of RMSE, rounds 3 on |")
    print("|---|---|---|---|---|---|")
    both, largest = ("by round", "by sample"), 0.0
    cases = [(2_000, FEATURES, 0.1, 1.0, 0.0, both[:1]), (2_000, 3, 0.1, 1.0, 0.0, both)]
    cases += [(600, 4, *rest, both) for rest in ((0.1, 1.0, 0.0), (0.01, 1.0, 0.0), (1.0, 1.0, 0.0))]
    cases += [(600, 4, *rest, both) for rest in ((0.1, 10.0, 0.0), (0.1, 0.1, 0.0), (0.1, 1.0, 1e2), (0.01, 1.0, 1e2))]
    for seed, (T, d, ridge, penalty, level, protocols) in enumerate(cases, start=3):
        base, W, rng = field(T, d, seed)
        graph = bd.TaskGraph(base.similarity, ridge=ridge)
        for protocol in protocols:
            local = bd.MTWRLS(graph, d, penalty, solver="local")
            exact = bd.GraphRidge if protocol == "by round" else partial(bd.MTWRLS, solver="blocked")
            models, worst, order = (exact(graph, d, penalty), local), 0.0, np.arange(T)
            for label in range(ROUNDS):
                X, y = round_of(W, rng)
                if level:
                    X[:, -1] = 1.0
                    y = (X * W).sum(axis=1) + level + rng.normal(size=T)
                if protocol == "by sample":
                    order = rng.permutation(T)
                labels = np.full(T, label) if protocol == "by round" else None
                errors = [
                    np.sqrt(np.mean((y[order] - model.progressive(X[order], y[order], order, rounds=labels)) ** 2))
                    for model in models
                ]
                if label >= 2:
                    worst = max(worst, abs(errors[1] / errors[0] - 1.0))
            largest = max(largest, worst)
            print(f"| {T:,}, {d} | {ridge} | {penalty} | {level} | {protocol} | {100 * worst:.4f} % |", flush=True)
    print(f"\nThe largest of all is {100 * largest:.3f} %, over {ROUNDS} rounds each.")


def deviations_part(results):
    """Deviations of solver="local", which are too small, over those of the exact solution."""
    graph, W, rng = field(300, 4)
    models = [bd.MTWRLS(graph, 4, solver=solver) for solver in ("blocked", "local")]
    print("\n| after rounds | deviation over the exact one, median | smallest |\n|---|---|---|")
    for label in range(ROUNDS):
        X, y = round_of(W, rng)
        for model in models:
            model.learn_many(X, y, np.arange(300), rounds=np.full(300, label))
        if label + 1 in (1, 3, 10, 30):
            exact, local = (model.predict_many(X, np.arange(300), with_std=True)[1] for model in models)
            print(f"| {label + 1} | {np.median(local / exact):.3f} | {(local / exact).min():.3f} |")


def kernel_part(results):
    """MTOSLSSVR with a full dictionary of m elements, linear and RBF, against m."""
    print("\n| m | linear, µs | RBF, µs |\n|---|---|---|")
    for T in (1, 3, 10, 30):
        m = T * FEATURES
        n = max(min(5_000, int(2e8 / m**2)), 500)
        X, y, tasks, _ = stream(T, FEATURES, n + 4 * m)
        graph, row = bd.TaskGraph.pooled(range(T)), {"m": m}
        linear = bd.MTOSLSSVR(graph, FEATURES, novelty=1e-9)
        rbf = bd.MTOSLSSVR(graph, FEATURES, "rbf", novelty=1e-9, budget=m)
        for name, model in (("linear", linear), ("rbf", rbf)):
            model.learn_many(X[n:], y[n:], tasks[n:])
            weights = np.zeros(n) if name == "rbf" else np.ones(n)  # of weight 0, an input does not join the dictionary
            row[name] = least(5, model.progressive, X[:n], y[:n], tasks[:n], weights=weights) / n
        results["kernel"].append(row)
        print(f"| {m} | {1e6 * row['linear']:.2f} | {1e6 * row['rbf']:.2f} |", flush=True)


def draw(results, path):
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
    rows = results["dense"]
    sizes = [row["dT"] for row in rows]
    for name, label, style in (
        ("plain", "plain NumPy", "o-"),
        ("dense", "dense", "o-"),
        ("blocked", "blocked", "o-"),
        ("floor", "floor: P through memory once", "k--"),
    ):
        axes[0].loglog(sizes, [1 / row[name] for row in rows], style, label=label, markersize=3)
    axes[0].set(xlabel="dT, weights of all tasks", ylabel="samples per second", title="MTWRLS, exact")
    rows = results["local"]
    for name in ("by round", "by sample"):
        axes[1].loglog([row["T"] for row in rows], [1 / row[name] for row in rows], "o-", label=name, markersize=3)
    axes[1].set(xlabel="T, tasks of ten features", title='MTWRLS, solver="local"')
    rows = results["kernel"]
    for name, label in (("linear", "linear"), ("rbf", "RBF")):
        axes[2].loglog([row["m"] for row in rows], [1 / row[name] for row in rows], "o-", label=label, markersize=3)
    axes[2].set(xlabel="m, elements of the dictionary", title="MTOSLSSVR, full dictionary")
    for axis in axes:
        axis.legend(frameon=False, fontsize=8)
        axis.grid(alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
    plt.rcParams["svg.hashsalt"] = "braided"
    figure.savefig(path, metadata={"Date": None})


PARTS = {
    "local": local_part,  # first, as the peak of memory is that of the process
    "dense": dense_part,
    "blocked": blocked_part,
    "accuracy": accuracy_part,
    "deviations": deviations_part,
    "kernel": kernel_part,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--figure")
    options = parser.parse_args()
    results = {name: [] for name in PARTS}
    for name in options.part:
        PARTS[name](results)
    if options.figure:
        draw(results, options.figure)


if __name__ == "__main__":
    main()
