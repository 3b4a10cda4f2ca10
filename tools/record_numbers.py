"""Record what the learners, runs, live lines and the study give for seeded streams, and compare two such records.

    python tools/record_numbers.py record FOLDER      # before a change that must not move a number, and after it
    python tools/record_numbers.py compare OLD NEW    # prints what is not the same to the bit, and by how much

It uses public names and the command line only, so that one script serves both sides of a change.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as parquet

import braided as bd
from braided.forgetting import Directional, Drift, Exponential, HalfLife, Restore

STREAMS = 12  # seeds
METHODS = "mt-wrls,mt-wrls-neighbours,wrls,wrls-neighbours"
T, D, ROUNDS = 5, 3, 60


def learners(graph, sparse):
    """Every learner with every policy that it takes, by name."""
    policies = {
        "1": 1.0,
        "sample": 0.99,
        "round": Exponential(0.97, per="round"),
        "task": Exponential(0.97, per="task"),
        "half-life": HalfLife(30),
        "restore": Restore(0.95),
        "directional": Directional(0.95),
        "drift": Drift(0.01),
        "drift by graph": Drift(0.01, graph),
    }
    made = {f"MTWRLS {name}": bd.MTWRLS(graph, D, 0.5, policy) for name, policy in policies.items()}
    made |= {
        f"MTWRLS {solver}": bd.MTWRLS(graph, D, robust=4.0, noise=0.5, solver=solver) for solver in ("dense", "blocked")
    }
    made |= {
        f"MTWRLS local {name}": bd.MTWRLS(sparse, D, forgetting=policies[name], solver="local")
        for name in ("1", "round")
    }
    single = ("1", "task", "half-life", "restore", "directional", "drift")
    made |= {f"WRLS {name}": bd.WRLS(graph, D, 0.5, policies[name]) for name in single}
    for kernel in ("linear", "rbf"):
        made[f"MTOSLSSVR {kernel}"] = bd.MTOSLSSVR(graph, D, kernel, budget=20)
        made[f"OSLSSVR {kernel}"] = bd.OSLSSVR(graph, D, kernel, novelty=0.01)
    made["MTOSLSSVR restore"] = bd.MTOSLSSVR(graph, D, "rbf", forgetting=Restore(0.98), robust=4.0)
    made |= {"MOGD": bd.MOGD(graph, D, step=0.02), "MADMM": bd.MADMM(graph, D, forgetting=0.98)}
    made |= {"GraphRidge": bd.GraphRidge(graph, D), "GraphRidge sparse": bd.GraphRidge(sparse, D)}
    made |= {
        "L21": bd.L21(graph, D, 2.0),
        "TraceNorm": bd.TraceNorm(graph, D, 2.0),
        "Persistence": bd.Persistence(graph, D),
    }
    made["ELM"] = bd.ELM(6, seed=1) | bd.MTWRLS(graph, D)
    return made


def record_learners(folder):
    """Forecasts in both protocols, deviations, weights, a join and a leave, of every learner on every stream."""
    import scipy.sparse as sparse

    models = folder / "models"
    models.mkdir(exist_ok=True)
    for seed in range(STREAMS):
        rng = np.random.default_rng(seed)
        S = np.triu(rng.uniform(size=(T, T)), 1)
        graph, loose = bd.TaskGraph(S + S.T), bd.TaskGraph(sparse.csr_array(S + S.T))
        W = rng.normal(size=D) + 0.3 * rng.normal(size=(T, D))
        tasks = np.concatenate([rng.permutation(T)[: rng.integers(2, T + 1)] for _ in range(ROUNDS)])
        rounds = np.sort(rng.integers(0, ROUNDS, len(tasks)))
        X = rng.normal(size=(len(tasks), D))
        y = (X * W[tasks]).sum(axis=1) + 0.1 * rng.normal(size=len(tasks))
        weights = rng.uniform(0.5, 2.0, len(tasks))
        half = int(np.searchsorted(rounds, ROUNDS // 2))
        found = {}
        for name, model in learners(graph, loose).items():
            past, ahead = np.s_[:half], np.s_[half:]
            made = model.progressive(X[past], y[past], tasks[past], rounds=rounds[past], weights=weights[past])
            found[f"{name}: synchronous"] = made
            if model.shares:
                model.add_task("late", {0: 0.5, 2: 0.25})
            else:
                model.add_task("late")
            model.remove_task(1)
            known = [task for task in model.tasks if task != "late"]
            names = [known[task % len(known)] for task in tasks[ahead]]
            labels = rounds[ahead]
            for place in range(5):
                model.learn_one(X[half + place], y[half + place], task="late", round=int(labels[0]))
            made = model.progressive(X[ahead], y[ahead], names, rounds=labels, interleaved=True, with_std=model.has_std)
            found |= {f"{name}: interleaved {place}": part for place, part in enumerate(np.atleast_2d(made))}
            coef = getattr(model, "coef", None)
            found |= {} if coef is None else {f"{name}: coef": coef}
            if seed == 0:
                path = models / f"{name.replace(' ', '-')}.braided"
                bd.save(model, path)
                found[f"{name}: predicted"] = bd.load(path).predict_many(X[:20], [model.tasks[0]] * 20)
        np.savez(folder / f"learners-{seed:02d}.npz", **found)


def table(seed):
    """A synthetic table with missing values and a stream that comes late, as lines of CSV."""
    panel = bd.datasets.wind_field(seed=seed, steps=260, sites=4)
    rng = np.random.default_rng(seed)
    lines = ["time,site,value"]
    for step, (moment, values) in enumerate(zip(panel.times, panel.values, strict=True)):
        for place, value in enumerate(values):
            if rng.uniform() > 0.03 and (place < 3 or step > 120):
                lines.append(f"{moment},{panel.tasks[place]},{value!r}".replace("np.float64(", "").replace(")", ""))
    return "".join(f"{line}\n" for line in lines)


def command(*arguments, **more):
    """Run braided, and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "braided", *map(str, arguments)], capture_output=True, check=False, **more
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def record_runs(folder):
    """Forecasts of tables and of lines."""
    for seed in range(STREAMS):
        text = table(seed)
        (folder / f"table-{seed:02d}.csv").write_text(text)
        out = folder / f"run-{seed:02d}"
        options = (
            ("--method", METHODS, "--lags", 3, "--jobs", 1)
            if seed < 4
            else (
                *("--method", "mt-wrls-neighbours", "--lags", 3),
                *("--parameters", "penalty=10,ridge=0.1,forgetting=0.99,level=1"),
            )
        )
        command("run", folder / f"table-{seed:02d}.csv", *options, "--out", out, "--format", "csv")
        if seed >= 4:
            made = command("run", "-", *options, "--warm-up", 50, input=text.encode())
            (folder / f"lines-{seed:02d}.csv").write_text(made)


def record_study(folder):
    """The scores and choices of a small study."""
    out = folder / "study"
    command("study", "--quick", "--windows", 2, "--out", out, "--jobs", 2)


def numbers_of(folder):
    """Everything that a record holds: arrays by name."""
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as held:
            yield from ((f"{path.name} {name}", held[name]) for name in held.files)
    for path in sorted([*folder.glob("run-*/forecasts.csv"), *folder.glob("lines-*.csv")]):
        yield str(path.relative_to(folder)), np.array(path.read_text().split("\n")[1:])  # without the header
    for path in sorted(folder.glob("study/store/*/*/*.parquet")):
        if path.parent.name != "timings":
            for name, column in parquet.read_table(path).to_pydict().items():
                name = name.replace("to_level", "to_no_change").replace("to_difference", "to_last_change")  # once
                yield f"{path.relative_to(folder)} {name}", np.array(column)


def compare(old, new):
    """Print what differs; return how many numbers do."""
    before, after = dict(numbers_of(old)), dict(numbers_of(new))
    worst = {}
    for name in sorted(before.keys() | after.keys()):
        one, other = before.get(name), after.get(name)
        if one is None or other is None or one.shape != other.shape:
            worst[name] = np.inf
        elif one.dtype.kind == "f" and not np.array_equal(one, other, equal_nan=True):
            worst[name] = float(np.nanmax(np.abs(one - other)) / max(np.nanmax(np.abs(one)), 1e-300))
        elif one.dtype.kind != "f" and not (one == other).all():
            worst[name] = np.inf
    for path in sorted((old / "models").glob("*.braided")):
        bd.load(path)  # files of the old version load
    for name, gap in worst.items():
        print(f"{gap:9.1e}  {name}")
    print(
        json.dumps(
            {"arrays": len(before), "not the same to the bit": len(worst), "largest": max(worst.values(), default=0)}
        )
    )


if __name__ == "__main__":
    what, *folders = sys.argv[1:]
    if what == "record":
        target = Path(folders[0])
        target.mkdir(parents=True)
        for part in (record_learners, record_runs, record_study):
            part(target)
    else:
        compare(*map(Path, folders))
