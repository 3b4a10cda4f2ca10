"""Auto: samples a second on one core beside LightGBM, the cost of further horizons, the first and the second run of a
table, many streams, what it loses on random walks, what is known ahead beside the true model, and its error with a
member that is LightGBM (`refit`).

The tables are synthetic: hourly, with a season of a day, and processes that streams share. LightGBM is that of
`braided study --suite forecasting`, on one thread, with ten refits; it is left out where it is not installed
(`pip install 'braided[peers]'`). Runs are processes of their own, as a user would start them.

    python benchmarks/auto.py [--part speed horizons first many walks known refit] [--panels us-incomes] [--horizon 24]
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter

import numpy as np

import braided as bd
from braided.forecasting.auto import AutoEngine
from braided.suite.own import placed
from braided.suite.panels import suite_panels
from braided.suite.past import Past, cuts_of
from braided.suite.peers.progress import silent
from braided.suite.run import find_suite_method, horizons_of
from braided.suite.scores import Cell, ratios
from braided.tables import Panel

REPEATS = 3
PARTS = ("speed", "horizons", "first", "many", "walks", "known", "refit")


def table(streams, rounds, seed=0):
    """A panel of hourly values with a season of a day."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(rounds, 20)).cumsum(axis=0)
    load = rng.normal(size=(20, streams)) * (rng.random((20, streams)) < 0.2)
    day = np.sin(2.0 * np.pi * np.arange(rounds) / 24.0)[:, None] * rng.uniform(0.0, 5.0, streams)
    times = np.datetime64("2024-01-01T00", "s") + np.arange(rounds) * np.timedelta64(3600, "s")
    values = 50.0 + common @ load + day + rng.normal(size=(rounds, streams))
    names = tuple(f"s{place:05d}" for place in range(streams))
    return Panel("synthetic", names, times, values, "synthetic: waves, a day's season and noise", synthetic=True)


def speed():
    panel = table(10, 6000)
    print(f"10 streams × 6,000 rounds, one season of 24 rounds, one core, fastest of {REPEATS}\n")
    print("| method | seconds | samples a second |")
    print("|---|---|---|")
    methods = {"Auto": lambda: update(panel), "Auto without sharing": lambda: update(panel, sharing=False)}
    if find_spec("lightgbm") is not None:
        from braided.suite.peers import lightgbm

        methods["LightGBM, ten refits"] = lambda: lightgbm.forecast(Past(panel, cuts_of(len(panel.times))), 1)
    took = {}
    for name, method in methods.items():
        method()  # compiles
        took[name] = min(timed(method) for _ in range(REPEATS))
        print(f"| {name} | {took[name]:.2f} | {panel.values.size / took[name]:,.0f} |", flush=True)
    if len(took) == len(methods) == 3:
        print(f"\nLightGBM / Auto: {took['LightGBM, ten refits'] / took['Auto']:.1f}")


def horizons():
    panel = table(10, 6000)
    print(f"Auto 1, 2, … rounds ahead: 10 streams × 6,000 rounds, one core, fastest of {REPEATS}\n")
    print("| horizon | seconds | of the first |")
    print("|---|---|---|")
    alone = 0.0
    for horizon in (1, 3, 6, 12, 24, 48):
        update(panel, horizon=horizon)  # compiles
        took = min(timed(lambda horizon=horizon: update(panel, horizon=horizon)) for _ in range(REPEATS))
        alone = alone or took
        print(f"| {horizon} | {took:.2f} | {took / alone:.2f} |", flush=True)


def update(panel, **options):
    return bd.Forecaster(season=24, **options).update(panel.times, panel.values, panel.tasks)


def timed(method):
    start = perf_counter()
    method()
    return perf_counter() - start


def first():
    print("`braided run` on 10 streams × 6,000 rounds, each a fresh process\n")
    print("| compiled code | seconds |")
    print("|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "table.parquet")
        bd.tables.write_table(table(10, 6000), path)
        environment = os.environ | {"NUMBA_CACHE_DIR": str(Path(scratch, "cache"))}
        for number, state in enumerate(("none yet", "cached")):
            command = [sys.executable, "-m", "braided", "run", path, "--out", Path(scratch, str(number))]
            run = lambda command=command: subprocess.run(command, check=True, capture_output=True, env=environment)  # noqa: E731
            print(f"| {state} | {timed(run):.1f} |", flush=True)


def many():
    print("Auto on many streams × 500 rounds, hourly with day and week, compiled before, each a fresh process\n")
    print("| streams | seconds | largest process, GB |")
    print("|---|---|---|")
    in_own_process(3_000, 120)  # compiles: fewer streams have other members, or no round on threads
    for streams in (1_000, 3_000, 10_000):
        print(f"| {streams:,} | {in_own_process(streams, 500)} |", flush=True)


def walks():
    print("Auto on random walks, where nothing is better than no change; mean of four seeds\n")
    print("| streams | rounds | steps | error over that of no change |")
    print("|---|---|---|---|")
    for streams, rounds, wanders in (
        (8, 500, False),
        (8, 500, True),
        (8, 2000, True),
        (3, 300, False),
        (30, 300, True),
    ):
        errors = [error_on_walks(streams, rounds, wanders, seed) for seed in range(4)]
        steps = "of a size that wanders" if wanders else "of one size"
        print(f"| {streams} | {rounds} | {steps} | {np.mean(errors):.4f} |", flush=True)


def error_on_walks(streams, rounds, wanders, seed):
    rng = np.random.default_rng(seed)
    size = np.exp(0.05 * rng.normal(size=(rounds, streams)).cumsum(axis=0)) if wanders else 1.0
    values = 100.0 + (size * rng.normal(size=(rounds, streams))).cumsum(axis=0)
    forecaster = bd.Forecaster(season=())
    forecaster.update(np.arange(rounds), values, [f"s{place}" for place in range(streams)])
    record = forecaster.record
    return (record.rmse_of("model") / record.rmse_of("no change")).mean()


def known(horizon=7, seeds=4):
    print("Synthetic sales of 10 shops on 1,500 days, with promotions known ahead: RMSE over that of the true model")
    print(f"on the days after the first fifth; mean of {seeds} seeds\n")
    print("| days ahead | no change | Auto without the promotions | Auto that knows them |")
    print("|---|---|---|---|")
    errors = np.mean([errors_on_sales(horizon, seed) for seed in range(seeds)], axis=0)
    for k, row in enumerate(errors):
        print(f"| {k + 1} | " + " | ".join(f"{error:.3f}" for error in row) + " |", flush=True)


def errors_on_sales(horizon, seed):
    """RMSE (H, 3) of no change, and of Auto without and with the promotions, over that of the true model."""
    sales = bd.datasets.shop_sales(seed)
    panel = sales.panel
    first, n = len(panel.times) // 5, len(panel.times)

    def update(**given):
        forecaster = bd.Forecaster(season=(), horizon=horizon, **given)
        return forecaster.update(panel.times, panel.values, panel.tasks, known=sales.promotions if given else None)

    def rmse(made, h):
        scored = (made.horizons == h) & (made.times >= panel.times[first])
        return np.sqrt(np.mean((made.actual[scored] - made.forecast[scored]) ** 2))

    plain, told = update(), update(known="promotion")
    rows = []
    for h in range(1, horizon + 1):
        surprises = np.lib.stride_tricks.sliding_window_view(sales.surprises, h, axis=0).sum(axis=-1)
        true = np.sqrt(np.mean(surprises[first - h + 1 :] ** 2))
        unchanged = np.sqrt(np.mean((panel.values[first:] - panel.values[first - h : n - h]) ** 2))
        rows.append([unchanged / true, rmse(plain, h) / true, rmse(told, h) / true])
    return np.array(rows)


def refit(names, longest):
    if find_spec("lightgbm") is None or find_spec("sklearn") is None:
        print("LightGBM or scikit-learn is not installed: pip install 'braided[peers]' scikit-learn")
        return
    print("RMSE over that of no change at the same horizon, values after the first fifth, mean over the streams\n")
    print("| panel | rounds ahead | LightGBM, direct | Auto | Auto with Refit(LightGBM) | its error over LightGBM's |")
    print("|---|---|---|---|---|---|")
    peer = find_suite_method("lightgbm")
    for panel in suite_panels(names):
        horizons = horizons_of(panel, longest)
        auto, with_refit = (errors_of_auto(panel, horizons, members) for members in (None, members_with_refit()))
        for place, h in enumerate(horizons):
            past = Past(panel, cuts_of(len(panel.times)), h)
            direct = Cell(ratios(past, peer.forecast(past, 1, silent).forecasts)).error
            errors = f"{direct:.4f} | {auto[place]:.4f} | {with_refit[place]:.4f} | {with_refit[place] / direct:.3f}"
            print(f"| {panel.name} | {h} | {errors} |", flush=True)


def members_with_refit():
    from lightgbm import LGBMRegressor

    from braided.suite.peers.lightgbm import SAMPLES_PER_LEAF, SETTINGS, TREES

    peer = LGBMRegressor(n_estimators=TREES, min_child_samples=SAMPLES_PER_LEAF, random_state=0, **SETTINGS)
    return (bd.Defaults(), bd.Refit(peer))


def errors_of_auto(panel, horizons, members):
    engine = AutoEngine(bd.Auto(members, horizon=horizons[-1]))
    made = engine.advance(panel.times, panel.values, panel.tasks)
    pasts = [Past(panel, cuts_of(len(panel.times)), h) for h in horizons]
    return [Cell(ratios(past, placed(past, made))).error for past in pasts]


def in_own_process(streams, rounds):
    command = [sys.executable, __file__, "--part", "one", "--streams", str(streams), "--rounds", str(rounds)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def one(streams, rounds):
    update_all = bd.Forecaster().update
    panel = table(streams, rounds)
    seconds = timed(lambda: update_all(panel.times, panel.values, panel.tasks))
    print(f"{seconds:.1f} | {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", nargs="+", choices=[*PARTS, "one"], default=PARTS)
    parser.add_argument("--panels", nargs="*", default=())
    parser.add_argument("--horizon", type=int, default=24)
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=500)
    options = parser.parse_args()
    for part in options.part:
        given = {"one": (options.streams, options.rounds), "refit": (options.panels, options.horizon)}
        globals()[part](*given.get(part, ()))
        print()


if __name__ == "__main__":
    main()
