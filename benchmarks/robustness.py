"""What bounded dictionaries and the robust step do: novelty from 1e-2 to 1e-9, inputs that move on, and wild values.

Prints Markdown tables. The streams of the kernel learners are synthetic; wild values are put into real ones.
About three minutes, one thread.

    python benchmarks/robustness.py [--part novelty|budget|wild]
"""

# ruff: noqa: E402 (the number of threads is set before NumPy is imported)
import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
from dataclasses import replace
from time import perf_counter

import numpy as np
from rich.console import Console
from rich.progress import Progress

import braided as bd
from braided.datasets import open_panel
from braided.kernels import rbf
from braided.runs import Settings, run_in_memory

GRAPH = bd.TaskGraph.pooled(range(3), ridge=0.1)
LAST = 2000  # forecasts that count where inputs move on


def smooth(n, travel=0.0, seed=0):
    """Three tasks on two inputs, N(0, 1) about a centre that may travel: X, y, tasks, rounds. The noise is 0.1."""
    rng = np.random.default_rng(seed)
    tasks = np.arange(n) % 3
    X = rng.normal(size=(n, 2))
    X[:, 0] += np.linspace(0.0, travel, n)
    y = np.sin(X[:, 0]) * (1.0 + 0.2 * tasks) + 0.5 * np.cos(X[:, 1]) + 0.1 * rng.normal(size=n)
    return X, y, tasks, np.arange(n) // 3


def rmse(errors):
    return float(np.sqrt(np.mean(np.square(errors))))


def novelty(bar):
    """The error and the dictionary of an RBF kernel, whatever counts as news."""
    print("\n## Novelty: MT-OSLSSVR with an RBF kernel, 3,000 samples (synthetic)\n")
    print("| ν | RMSE | elements | RMSE with a budget of 60 | smallest δ of an element |\n|---|---|---|---|---|")
    X, y, tasks, rounds = smooth(3000)
    found = []
    for nu in bar.track([1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9], description="novelty"):
        cells = []
        for budget in (None, 60):
            model = bd.MTOSLSSVR(GRAPH, 2, rbf(1.5), 0.05, nu, budget)
            cells.append(rmse((model.progressive(X, y, tasks, rounds=rounds) - y)[600:]))
            if budget is None:
                size = model.health.dictionary
                least = float((model.state.factor[0].diagonal()[:size] ** 2).min())
        found.append(cells[0])
        print(f"| {nu:g} | {cells[0]:.4f} | {size} | {cells[1]:.4f} | {least:.1g} |")
    print(f"\nLargest over smallest RMSE: {max(found) / min(found):.4f}.")


def budget(bar):
    """100,000 samples whose inputs move on: a budget of 200 beside a dictionary without one."""
    n = 100_000
    print(f"\n## Inputs that move on: {n:,} samples, the centre travels 60 widths of them (synthetic)\n")
    print("| budget | elements | state, MB, at half way | at the end | RMSE of the last 2,000 | seconds |")
    print("|---|---|---|---|---|---|")
    X, y, tasks, rounds = smooth(n, travel=60.0, seed=1)
    found = []
    for most in (None, 200):
        model = bd.MTOSLSSVR(GRAPH, 2, rbf(1.5), 0.05, 1e-2, most)
        model.with_features(2).learn_many(X[:300], y[:300], tasks[:300])  # compile
        made, sizes, began = [], [], perf_counter()
        for part in bar.track(np.array_split(np.arange(n), 100), description=f"budget {most}"):
            made.append(model.progressive(X[part], y[part], tasks[part], rounds=rounds[part]))
            sizes.append(sum(array.nbytes for array in model.state) / 1e6)
        took = perf_counter() - began
        found.append(rmse((np.concatenate(made) - y)[-LAST:]))
        print(
            f"| {most} | {model.health.dictionary} | {sizes[49]:.2f} | {sizes[-1]:.2f} | {found[-1]:.4f} | {took:.0f} |"
        )
    print(f"\nWith the budget, {found[1] / found[0]:.3f} times the RMSE without.")


def wild(bar):
    """A value of 1e6, another of −1e4 and five of −999 in two streams: what it does to the forecasts of the others."""
    print("\n## Wild values in two streams: errors of all others over those of “no change” (real data)\n")
    print("| streams | rounds | clean, as is | clean | wild, as is | wild |\n|---|---|---|---|---|---|")
    for name, most in bar.track([("la-haute-borne", 10_000), ("us-incomes", None)], description="wild values"):
        panel = open_panel(name)
        panel = replace(panel, values=panel.values[:most], times=panel.times[:most])
        half = len(panel.times) // 2
        values = panel.values.copy()
        values[half, 0], values[half + 20, 0], values[half + 10 : half + 15, 1] = 1e6, -1e4, -999.0
        cells = []
        for table in (panel, replace(panel, values=values)):
            for robust in (False, True):
                record = run_in_memory(table, Settings((), robust=robust))[0].record
                cells.append(float((record.rmse_of("model") / record.rmse_of("no change"))[2:].mean()))
        print(f"| {name} | {len(panel.times):,} | " + " | ".join(f"{cell:.4g}" for cell in cells) + " |")


PARTS = {"novelty": novelty, "budget": budget, "wild": wild}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--part", action="append", choices=PARTS, help="what to run, may be repeated; else all")
    chosen = parser.parse_args().part or PARTS
    with Progress(console=Console(stderr=True), transient=True) as bar:
        for part in chosen:
            PARTS[part](bar)


if __name__ == "__main__":
    main()
