"""Speed and accuracy beside other packages, in one run: the same stream, the same protocol, one thread.

Prints a Markdown table. Every repeat runs each contender once, and ratios are formed within a repeat, of processor
time, which other processes disturb less than the wall's. Each sample is forecast, then learned; what can take the
whole stream in one call does (braided, polars-ols), and braided is timed call by call, too. Inputs have the form
that a peer asks for (a frame, dictionaries, stacked vectors) before its clock starts. Errors are those on the prefix
that all run on; "from exact" is the largest difference from the printed recursion in plain NumPy, over the largest
forecast. The floor goes once over one triangle of P, with a multiplication and a subtraction per number. Penalty and
steps were chosen on another stream; all streams are synthetic.

    make bench-peers    # in an environment of their own; krls without torch, which is large and not needed here
    .venv-bench/bin/python benchmarks/peers.py [--samples 20000] [--repeats 7] [--only NAME ...]
"""

# ruff: noqa: E402 (the number of threads is set before anything is imported)
import os

for library in ("OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "POLARS_MAX", "RAYON_NUM"):
    os.environ[f"{library}_THREADS"] = "1"

import argparse
import importlib.metadata
import statistics
import sys
import time
import types
import unittest.mock
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from speed import pass_through, plain_numpy, prior, stream, thrifty_numpy

import braided as bd

FEATURES = 10
PENALTY = 0.1
SHORT = 2_000  # samples of the prefix on which all are compared, and all that the slow ones get
FILLED = 200  # samples after which a linear dictionary of 10 tasks is full
LEAST = 0.2  # seconds that a contender is timed for in a repeat: the fast ones run more than once
BASES = {10: "braided MTWRLS", 30: "braided MTWRLS, T = 30", 100: "braided MTWRLS, T = 100"}


# A contender takes (graph, X, y, tasks), gets ready, yields how many samples it has learned by then (the clock starts),
# and yields the forecasts (the clock stops).


def braided(make, graph, X, y, tasks, first=0):
    model, head = make(graph, X.shape[1], penalty=PENALTY), np.empty(0)
    if first:
        head = model.progressive(X[:first], y[:first], tasks[:first])
    yield first
    yield np.concatenate([head, model.progressive(X[first:], y[first:], tasks[first:])])


def one_by_one(make, graph, X, y, tasks):
    model, mean, keys, targets = make(graph, X.shape[1], penalty=PENALTY), np.empty(len(y)), tasks.tolist(), y.tolist()
    yield 0
    for i, task in enumerate(keys):
        mean[i] = model.predict_one(X[i], task=task)
        model.learn_one(X[i], targets[i], task=task)
    yield mean


def numpy_recursion(recursion, graph, X, y, tasks):
    P = prior(graph.relation, PENALTY, X.shape[1])
    yield 0
    yield recursion(P, X, y, tasks)


def numpy_kernel(graph, X, y, tasks, novelty=1e-9):
    """MT-OSLSSVR as printed: the inverse of K, P and α, with a linear kernel."""
    m, size, mean = 0, 16, np.empty(len(y))
    inputs, rows, weights = np.empty((size, X.shape[1])), np.empty(size, dtype=int), np.empty(size)
    K, P = np.empty((2, size, size))
    for i in range(len(y)):
        if i == FILLED:
            yield FILLED
        x, prior = X[i], graph.inverse[tasks[i]]
        k = prior[rows[:m]] * (inputs[:m] @ x)
        a = K[:m, :m] @ k
        Pa = P[:m, :m] @ a
        mean[i] = k @ weights[:m]
        error, spread = y[i] - mean[i], a @ Pa
        news = prior[tasks[i]] * (x @ x) - k @ a
        if news <= novelty:
            q = Pa / (1 + spread)
            P[:m, :m] -= np.outer(q, Pa)
            weights[:m] += K[:m, :m] @ q * error
            continue
        if m == size:
            inputs, K, P = np.pad(inputs, ((0, m), (0, 0))), np.pad(K, (0, m)), np.pad(P, (0, m))
            rows, weights, size = np.pad(rows, (0, m)), np.pad(weights, (0, m)), 2 * m
        total = news + PENALTY * (1 + spread)
        share = PENALTY / total
        weights[:m] -= (a - PENALTY * K[:m, :m] @ Pa) * (error / total)
        P[:m, :m] -= share * np.outer(Pa, Pa)
        P[m, :m] = P[:m, m] = share * Pa
        K[:m, :m] += np.outer(a, a) / news
        K[m, :m] = K[:m, m] = -a / news
        inputs[m], rows[m], weights[m], P[m, m], K[m, m] = x, tasks[i], error / total, 1 - share, 1 / news
        m += 1
    yield mean


def stacked(graph, X, tasks):
    """Each input in the place of its task, among zeros."""
    Z = np.zeros((len(X), graph.n_tasks, X.shape[1]))
    Z[np.arange(len(X)), tasks] = X
    return Z.reshape(len(X), -1)


def whitened(graph, X, tasks):
    """Inputs for which a filter of dT features and the prior I / penalty does what MT-WRLS does."""
    root = np.linalg.cholesky(graph.inverse)
    return (root[tasks][:, :, None] * X[:, None, :]).reshape(len(X), -1)


def padasip_filters(graph, X, y, tasks, stack=False):
    from padasip.filters import FilterRLS

    filters = [FilterRLS(X.shape[1], mu=1.0, eps=PENALTY, w="zeros") for _ in range(graph.n_tasks)]
    if stack:
        filters = [FilterRLS(graph.n_tasks * X.shape[1], mu=1.0, w="zeros")] * graph.n_tasks
        filters[0].R = np.kron(graph.inverse / PENALTY, np.eye(X.shape[1]))
        X = stacked(graph, X, tasks)
    yield 0
    mean = np.empty(len(y))
    for i in range(len(y)):
        rls = filters[tasks[i]]
        mean[i] = rls.predict(X[i])
        rls.adapt(y[i], X[i])
    yield mean


def filterpy_stacked(graph, X, y, tasks):
    from filterpy.kalman import KalmanFilter

    Z = stacked(graph, X, tasks)
    kalman = KalmanFilter(dim_x=Z.shape[1], dim_z=1)
    kalman.P = np.kron(graph.inverse / PENALTY, np.eye(X.shape[1]))
    yield 0
    mean = np.empty(len(y))
    for i in range(len(y)):
        kalman.H = Z[i : i + 1]
        mean[i] = kalman.H[0] @ kalman.x[:, 0]
        kalman.update(y[i])
    yield mean


def river_forecasts(models, rows, y, tasks):
    mean = np.empty(len(y))
    for i, (x, target) in enumerate(zip(rows, y.tolist(), strict=True)):
        model = models[tasks[i]]
        mean[i] = model.predict_one(x)
        model.learn_one(x, target)
    return mean


def river_gradient(graph, X, y, tasks, step=0.02):
    from river import linear_model, optim

    model = linear_model.LinearRegression(optimizer=optim.SGD(step), intercept_lr=0.0)
    names = [[f"common {k}" for k in range(X.shape[1])] + [f"{t} {k}" for k in range(X.shape[1])] for t in graph.tasks]
    rows = [dict(zip(names[t], [*x, *x], strict=True)) for t, x in zip(tasks, X.tolist(), strict=True)]
    yield 0
    yield river_forecasts([model] * graph.n_tasks, rows, y, tasks)


def river_each(graph, X, y, tasks):
    from river.linear_model import BayesianLinearRegression

    rows = [dict(enumerate(x)) for x in X.tolist()]
    models = [BayesianLinearRegression(alpha=PENALTY) for _ in range(graph.n_tasks)]
    yield 0
    yield river_forecasts(models, rows, y, tasks)


def sklearn_each(graph, X, y, tasks, step=0.05):
    from sklearn.linear_model import SGDRegressor

    make = partial(SGDRegressor, penalty=None, fit_intercept=False, learning_rate="constant", eta0=step)
    models = [make().partial_fit(np.zeros((1, X.shape[1])), [0.0]) for _ in range(graph.n_tasks)]
    yield 0
    mean = np.empty(len(y))
    for i in range(len(y)):
        model, x = models[tasks[i]], X[i : i + 1]
        mean[i] = model.predict(x)[0]
        model.partial_fit(x, y[i : i + 1])
    yield mean


def polars_frame(graph, X, y, tasks, inputs=None, by_task=False):
    import polars as pl
    import polars_ols  # noqa: F401 (it is where least_squares comes from)

    Z = X if inputs is None else inputs(graph, X, tasks)
    names = [f"x{k}" for k in range(Z.shape[1])]
    frame = pl.DataFrame(Z, schema=names).with_columns(y=pl.Series(y), task=pl.Series(tasks))
    known = pl.col("y").least_squares.rls(*names, initial_state_covariance=1 / PENALTY, mode="coefficients").shift(1)
    weights = known.over("task") if by_task else known
    forecast = pl.sum_horizontal(pl.col("weights").struct.field(name) * pl.col(name) for name in names)
    yield 0
    yield frame.with_columns(weights=weights).select(forecast=forecast)["forecast"].to_numpy()


def krls_stacked(graph, X, y, tasks):
    with unittest.mock.patch.dict(sys.modules, torch=types.ModuleType("torch")):  # imported, but not for this kernel
        from krls.krls import KRLS

    Z, mean = whitened(graph, X, tasks), np.zeros(len(y))
    model = KRLS(nu=1e-9, N=Z.shape[1], kernel_type="Linear")
    model.fit(Z[:1], y[:1])
    for i in range(1, len(y)):
        if i == FILLED:
            yield FILLED
        mean[i] = model.predict(Z[i : i + 1])[0]
        model.evolve(Z[i], y[i])
    yield mean


def floor(graph, X, y, tasks):
    size = graph.n_tasks * X.shape[1]
    P, f, g = np.eye(size), np.full(size, 1e-12), np.linspace(1.0, 2.0, size)
    yield 0
    pass_through(P, f, g, len(y))
    yield None


class Contender(NamedTuple):
    run: Callable
    learns: str
    note: str = ""
    samples: int | None = None  # None: as many as --samples says
    tasks: int = 10


MULTI, SINGLE, POOLED = "multi-task exact", "single-task exact", "one filter, exact"
FRAME, FULL = "all in one call", "dictionary full"
PLAIN, THRIFTY = partial(numpy_recursion, plain_numpy), partial(numpy_recursion, thrifty_numpy)
CONTENDERS = {
    "braided MTWRLS": Contender(partial(braided, bd.MTWRLS), MULTI, FRAME),
    "braided WRLS": Contender(partial(braided, bd.WRLS), SINGLE, FRAME),
    "braided MTWRLS, one by one": Contender(partial(one_by_one, bd.MTWRLS), MULTI),
    "braided WRLS, one by one": Contender(partial(one_by_one, bd.WRLS), SINGLE),
    "floor, dT = 100": Contender(floor, ""),
    "plain NumPy, Eqs. 15–18": Contender(PLAIN, MULTI),
    "thrifty NumPy, the same with care": Contender(THRIFTY, MULTI),
    "padasip FilterRLS, stacked": Contender(partial(padasip_filters, stack=True), MULTI, "R set to the prior", SHORT),
    "filterpy KalmanFilter, stacked": Contender(filterpy_stacked, MULTI, "F = I, Q = 0, so `update` only", SHORT),
    "polars-ols RLS, stacked": Contender(
        partial(polars_frame, inputs=whitened), MULTI, FRAME + ", inputs whitened", SHORT
    ),
    "padasip FilterRLS, per task": Contender(padasip_filters, SINGLE),
    "river BayesianLinearRegression, per task": Contender(river_each, SINGLE),
    "polars-ols RLS, per task": Contender(partial(polars_frame, by_task=True), SINGLE, FRAME),
    "polars-ols, one filter for all": Contender(polars_frame, POOLED, FRAME),
    "river LinearRegression, common + own": Contender(river_gradient, "multi-task gradient", "SGD, step 0.02"),
    "scikit-learn SGDRegressor, per task": Contender(sklearn_each, "single-task gradient", "step 0.05", SHORT),
    "braided MTOSLSSVR, linear": Contender(
        partial(braided, partial(bd.MTOSLSSVR, novelty=1e-9), first=FILLED), MULTI + ", kernel", f"{FRAME}, {FULL}"
    ),
    "plain NumPy, MT-OSLSSVR, linear": Contender(numpy_kernel, MULTI + ", kernel", FULL),
    "krls KRLS, linear, stacked": Contender(krls_stacked, "multi-task kernel", FULL + "; has no penalty", SHORT),
    "braided MTWRLS, T = 30": Contender(partial(braided, bd.MTWRLS), MULTI, FRAME, tasks=30),
    "plain NumPy, T = 30": Contender(PLAIN, MULTI, samples=2_000, tasks=30),
    "thrifty NumPy, T = 30": Contender(THRIFTY, MULTI, samples=2_000, tasks=30),
    "floor, dT = 300": Contender(floor, "", tasks=30),
    "braided MTWRLS, T = 100": Contender(partial(braided, bd.MTWRLS), MULTI, FRAME, samples=5_000, tasks=100),
    "plain NumPy, T = 100": Contender(PLAIN, MULTI, samples=200, tasks=100),
    "thrifty NumPy, T = 100": Contender(THRIFTY, MULTI, samples=200, tasks=100),
    "floor, dT = 1,000": Contender(floor, "", samples=5_000, tasks=100),
}


RATIOS = {  # what is slower, and what is faster
    "plain NumPy over MTWRLS, dT = 100": ("plain NumPy, Eqs. 15–18", "braided MTWRLS"),
    "thrifty NumPy over MTWRLS, dT = 100": ("thrifty NumPy, the same with care", "braided MTWRLS"),
    "plain NumPy over MTWRLS, dT = 300": ("plain NumPy, T = 30", "braided MTWRLS, T = 30"),
    "plain NumPy over MTWRLS, dT = 1,000": ("plain NumPy, T = 100", "braided MTWRLS, T = 100"),
    "thrifty NumPy over MTWRLS, dT = 1,000": ("thrifty NumPy, T = 100", "braided MTWRLS, T = 100"),
    "MTWRLS over the floor, dT = 100": ("braided MTWRLS", "floor, dT = 100"),
    "MTWRLS over the floor, dT = 300": ("braided MTWRLS, T = 30", "floor, dT = 300"),
    "MTWRLS over the floor, dT = 1,000": ("braided MTWRLS, T = 100", "floor, dT = 1,000"),
    "polars-ols per task over MTWRLS": ("polars-ols RLS, per task", "braided MTWRLS"),
    "polars-ols per task over WRLS": ("polars-ols RLS, per task", "braided WRLS"),
    "river's SGD over WRLS": ("river LinearRegression, common + own", "braided WRLS"),
    "plain NumPy over MTOSLSSVR, m = 100": ("plain NumPy, MT-OSLSSVR, linear", "braided MTOSLSSVR, linear"),
}


def problem(T, n):
    """A graph and a stream, as in speed.py."""
    S = np.random.default_rng(1).uniform(0.2, 1.0, (T, T))
    return bd.TaskGraph((S + S.T) / 2), *stream(T, FEATURES, n)[:3]


def measure(contender, graph, X, y, tasks, least=LEAST):
    """Seconds per sample by the wall and by the processor, the samples of one run, and its forecasts."""
    n = len(y) if contender.samples is None else min(contender.samples, len(y))
    wall = cpu = count = 0
    while not count or wall < least:
        run = contender.run(graph, X[:n], y[:n], tasks[:n])
        first = next(run)
        wall, cpu = wall - time.perf_counter(), cpu - time.process_time()
        forecasts = next(run)
        wall, cpu = wall + time.perf_counter(), cpu + time.process_time()
        count += n - first
    return wall / count, cpu / count, n - first, forecasts


def able(names, problems):
    """Those that run, by now compiled; the others are told of."""
    for name in names:
        graph, *samples = problems[CONTENDERS[name].tasks]
        try:
            measure(CONTENDERS[name], graph, *(part[: FILLED + 10] for part in samples), least=0)
            yield name
        except Exception as error:  # a peer that is missing, or that has changed
            print(f"not measured: {name}: {type(error).__name__}: {error}\n")


def exact_forecasts(T, graph, X, y, tasks):
    """By kind, by the printed recursion; for the larger problems only of those samples that it gets in a run."""
    n = SHORT if T == 10 else CONTENDERS[f"plain NumPy, T = {T}"].samples
    relations = {MULTI: graph.relation, SINGLE: np.eye(T), POOLED: np.eye(1)} if T == 10 else {MULTI: graph.relation}
    return {
        kind: plain_numpy(prior(A, PENALTY, FEATURES), X[:n], y[:n], tasks[:n] % len(A))
        for kind, A in relations.items()
    }


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def times(numerators, denominators):
    if numerators is denominators:
        return "1"
    ratios = [a / b for a, b in zip(numerators, denominators, strict=True)]
    return f"{number(statistics.median(ratios))} ({number(min(ratios))} – {number(max(ratios))})"


def accuracy(contender, mean, y, exact):
    """Errors in the first ten rounds and in the second half of the prefix, and what is to be noted."""
    kind, errors, notes = contender.learns.removesuffix(", kernel"), ["", ""], [contender.note] * bool(contender.note)
    if kind in exact:
        n = min(len(mean), len(exact[kind]))
        gap = np.abs(mean[:n] - exact[kind][:n]).max() / np.abs(exact[kind]).max()
        notes.append(f"{gap:.0e} from exact" if gap else "exact by definition")
    if mean is not None and contender.tasks == 10:
        n = min(SHORT, len(y))
        squares = (mean[:n] - y[:n]) ** 2
        errors = [f"{np.sqrt(part.mean()):.3f}" for part in (squares[:100], squares[n // 2 :])]
    return *errors, "; ".join(notes)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument(
        "--only", nargs="+", default=[""], metavar="NAME", help="those with one of these in their names"
    )
    options = parser.parse_args()
    if options.samples < 2 * FILLED or options.repeats < 1:
        parser.error(f"--samples must be at least {2 * FILLED}, --repeats at least 1")
    named = {name for name in CONTENDERS if any(part.lower() in name.lower() for part in options.only)}
    if not named:
        parser.error(f"there are only {', '.join(CONTENDERS)}")
    named |= {BASES[CONTENDERS[name].tasks] for name in named} | {BASES[10], "braided WRLS"}
    problems = {T: problem(T, options.samples) for T in {CONTENDERS[name].tasks for name in named}}
    runs = {name: [] for name in able([name for name in CONTENDERS if name in named], problems)}
    for _ in range(options.repeats):
        for name, results in runs.items():
            results.append(measure(CONTENDERS[name], *problems[CONTENDERS[name].tasks]))

    exact = {T: exact_forecasts(T, *problems[T]) for T in problems}
    cpu = {name: [result[1] for result in results] for name, results in runs.items()}
    packages = {package.name: package.version for package in importlib.metadata.distributions()}
    peers = ("numpy", "numba", "filterpy", "krls", "padasip", "polars", "polars-ols", "river", "scikit-learn")
    print(
        f"T = 10 unless the name says otherwise, d = {FEATURES}, penalty {PENALTY}, one thread; median (least – most), "
        f"repeats: {options.repeats}; RMSE on the first {min(SHORT, options.samples):,} samples.  \n"
        f"{', '.join(f'{name} {packages[name]}' for name in peers if name in packages)}\n"
    )
    print(
        "| contender | learns | samples | µs per sample, wall | µs per sample, CPU | times as slow as MTWRLS "
        "| times as slow as WRLS | RMSE, first ten rounds | RMSE, second half | note |\n" + "|---" * 10 + "|"
    )
    for name, results in runs.items():
        contender, (wall, _, count, forecasts) = CONTENDERS[name], zip(*results, strict=True)
        T = contender.tasks
        slower = times(cpu[name], cpu[BASES[T]]), times(cpu[name], cpu["braided WRLS"]) if T == 10 else ""
        micros = [number(1e6 * statistics.median(seconds)) for seconds in (wall, cpu[name])]
        cells = name, contender.learns, f"{count[0]:,}", *micros, *slower
        print(f"| {' | '.join([*cells, *accuracy(contender, forecasts[-1], problems[T][2], exact[T])])} |")
    print("\n| ratio, of processor time | median (least – most) |\n|---|---|")
    for words, (slow, fast) in RATIOS.items():
        if slow in cpu and fast in cpu:
            print(f"| {words} | {times(cpu[slow], cpu[fast])} |")


if __name__ == "__main__":
    main()
