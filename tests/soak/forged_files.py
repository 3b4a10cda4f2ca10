"""Forged model files: real ones, changed somewhere and signed again, each loaded and used in full.

    python -m tests.soak.forged_files FIRST COUNT

makes files number FIRST to FIRST + COUNT − 1, always the same ones. A file may be refused with a FileError, or give a
model that works: whatever is called then returns, or raises one of braided's own errors. Anything else is printed with
the file's number, and ends in exit code 1; a crash ends the process, and the last number printed tells where.
"""

import copy
import faulthandler
import json
import random
import resource
import sys
import traceback
from pathlib import Path

import numpy as np

import braided as bd
from braided.errors import BraidedError, FileError
from braided.forecasting import Clock, LiveRounds, Units
from braided.forecasting.auto import Auto, AutoEngine
from braided.forgetting import Directional, Drift, Exponential, HalfLife, Restore
from braided.kernels import linear, polynomial, rbf
from braided.report.run.kinds import report_of
from braided.runs import Live, run_in_memory
from braided.runs.start import insist_origin
from braided.state import dumps, loads
from tests.auto import FEW, FULL, OWN, TIED, utc, walks
from tests.model_files import parts_of, signed
from tests.runs.tables import QUICK, field, lines_of
from tests.streams import random_graph, random_stream

D = 2
MEMORY = 3 << 30  # bytes beyond what the process has when it starts; a forged size must not be believed
SECONDS = 60  # for one file
WHOLE = (-(2**63), -(2**31), -7, -2, -1, 0, 1, 2, 3, 7, 8, 9, 64, 2**15, 2**31, 2**32, 2**53, 2**62, 2**63 - 1)
REAL = (np.nan, np.inf, -np.inf, 0.0, -1.0, 1e-320, 1e-160, 0.5, 2.0, 1e12, 1e160, 1e308, -1e308)
LEAVES = (
    *WHOLE,
    2**63,
    10**30,
    0.0,
    -1.5,
    0.99,
    1e308,
    True,
    False,
    None,
    "",
    "x",
    "local",
    "\ud800\x00",
    [],
    {},
    [[]],
)


def learners():
    """Every kind of learner, after some samples."""
    rng = np.random.default_rng(0)
    graphs = [random_graph(rng, 4, storage=storage, form=form) for storage, form in _FORMS]
    dense, sparse, _, _ = graphs
    kernels = (linear(), 0.5 * rbf(2.0) + polynomial(2) * linear())
    made = [bd.MTWRLS(graph, D, 0.5, robust=4.0, solver=solver) for graph in graphs for solver in ("dense", "blocked")]
    made += [bd.MTWRLS(dense, D, forgetting=policy) for policy in (*_POLICIES, Drift(0.1, dense), Exponential(0.9))]
    made += [bd.MTWRLS(sparse, D, forgetting=policy, solver="local") for policy in (0.99, HalfLife(20))]
    made += [bd.WRLS(dense, D, forgetting=policy) for policy in _POLICIES]
    made += [kind(dense, D, kernel, budget=6) for kernel in kernels for kind in (bd.MTOSLSSVR, bd.OSLSSVR)]
    made += [
        bd.MTOSLSSVR(sparse, D, "rbf", forgetting=policy, robust=3.0) for policy in (Restore(0.9), Directional(0.9))
    ]
    made += [bd.MOGD(sparse, D, step=0.01), bd.MADMM(dense, D, forgetting=0.9), bd.GraphRidge(dense, D)]
    made += [bd.GraphRidge(sparse, D), bd.L21(dense, D), bd.TraceNorm(dense, D), bd.Persistence(dense, D)]
    made += [bd.Scale(np.zeros(D), np.ones(D)) | bd.ELM(5, seed=3) | bd.MTWRLS(dense, D), bd.ELM(3) | bd.WRLS(dense, D)]
    X, y, tasks, rounds = random_stream(rng, 4, D, n_rounds=10)
    for model in made:
        model.learn_many(X, y, tasks, rounds=rounds)
        if model.shares and model is not made[0]:
            model.remove_task(1)
            model.add_task("new", {0: 0.5})
    return made


_FORMS = (("dense", "laplacian"), ("sparse", "laplacian"), ("dense", "penalty"), ("sparse", "penalty"))
_POLICIES = (1.0, Exponential(0.9, per="task"), HalfLife(20), Restore(0.9), Directional(0.9), Drift(0.1))


def forecasters():
    """Forecasters of several kinds: with a search behind them or by hand, with features, and with tasks that wait."""
    panel = field(steps=120, missing=0.05)
    searched, _ = run_in_memory(panel, QUICK)
    searched.advance(panel.times[-1:] + np.timedelta64(1, "h"), [[*panel.values[-1], 7.0]], [*panel.tasks, "late"])
    lags = bd.Lags(3, neighbours=1, gap=True, level=True)
    graph = bd.TaskGraph.nearest(np.arange(4.0)[:, None], k=2, tasks=panel.tasks)
    levels = np.nan_to_num(np.abs(panel.values)) + 1.0
    scale, months = bd.Scale([0.0], [1.0]), ["2024-01-31", "2024-02-29", "2024-03-31"]
    clock = Clock.measure(np.array(months, "datetime64[us]"))
    by_hand = bd.forecasting.LearnerEngine(
        bd.MTWRLS(graph, lags.n_features + 1, 10.0, solver="local"),
        bd.forecasting.Preparation(lags, graph, Units.measure(levels, logarithm=True), scale, clock, clips=True),
        single=bd.WRLS(graph, lags.n_own + 2),
    )
    by_hand.advance(np.arange(120), levels, panel.tasks, levels[:, :, None])
    return [searched, by_hand]


def autos():
    """Engines of Auto: in the first rounds, before they are full, and with streams that wait and have joined."""
    times, values, tasks = walks(230, 4, missing=0.05, kind="hourly")
    values[:205, 3] = np.nan
    few = Auto((OWN, TIED, *FULL[-4:]), low=0.0, timezone="Europe/Lisbon", holidays="PT", compares=True)
    made = [utc(Auto(), n_extras=1), AutoEngine(few), AutoEngine(FEW, n_extras=2), AutoEngine(Auto((OWN,)))]
    for engine, rounds in zip(made, (60, 228, 3, 215), strict=True):
        extras = np.repeat(values[:rounds, :, None], engine.n_extras, axis=2)
        engine.advance(times[:rounds], 40.0 + values[:rounds], tasks, extras)
    return made


def forged(data, rng):
    """The file with one to three changes."""
    header, arrays = parts_of(data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        rng.choice((change_number, change_number, change_leaf, change_leaf, change_array, move_subtree))(
            header, arrays, rng
        )
    text = json.dumps(header).encode()
    if rng.random() < 0.02:
        text = rng.choice((b"[" * 100_000, text[: rng.randrange(len(text))], text.replace(b"0", b"Infinity", 1)))
    return signed(text, arrays)


def live_rounds():
    """What a run of lines has received and not learned: a warm-up, with an open round and one that is set aside."""
    live = Live(QUICK)
    lines = lines_of(field(steps=12, missing=0.05))
    for number, line in enumerate([*lines[:-2], lines[0].replace("2012", "2044")], 1):
        allowed(live.feed, line, number)
    return [live._unlearned()]


def nodes_of(tree, found):
    """Every place in a tree: its container and its key."""
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
        found.append((tree, key))
        if isinstance(value, dict | list) and value:
            nodes_of(value, found)
    return found


def change_leaf(header, arrays, rng):
    """Replace or delete something in the header."""
    nodes = nodes_of(header["model"], [])
    leaves = [(tree, key) for tree, key in nodes if not isinstance(tree[key], dict | list)]
    tree, key = rng.choice(leaves if leaves and rng.random() < 0.8 else nodes)
    if isinstance(tree, dict) and rng.random() < 0.1:
        del tree[key]
    elif isinstance(tree[key], str) and rng.random() < 0.7:
        tree[key] = rng.choice(WORDS)
    elif isinstance(tree[key], float) and rng.random() < 0.5:
        tree[key] *= rng.choice((-1.0, 1e-160, 1e-10, 1e10, 1e160))
    elif isinstance(tree[key], int) and rng.random() < 0.5:
        tree[key] += rng.choice((-2, -1, 1, 2))
    else:
        tree[key] = rng.choice(LEAVES)


WORDS = (
    *("MTWRLS", "WRLS", "MTOSLSSVR", "OSLSSVR", "MOGD", "MADMM", "GraphRidge", "L21", "TraceNorm", "Persistence"),
    *("Composed", "Learner", "FilterLearner", "Kernel", "TaskGraph", "ELM", "Scale", "Chain", "Lags", "Clock", "Units"),
    *("Auto", "AutoEngine", "LearnerEngine", "Linear", "Seasons", "tied", "separate", "pooled", "phase", "asinh"),
    *("Record", "Clipping", "Exponential", "HalfLife", "Restore", "Directional", "Drift"),
    *(
        "dense",
        "blocked",
        "local",
        "auto",
        "laplacian",
        "penalty",
        "clip",
        "absolute",
        "sample",
        "round",
        "task",
        "rbf",
    ),
)


def change_array(header, arrays, rng):
    """Change what the header says of an array."""
    form = rng.choice(header["arrays"])
    if not isinstance(form["shape"], list):  # changed before
        return
    if rng.random() < 0.3:
        form["dtype"] = rng.choice(
            ("<f4", "<i8", "<f8", "<i4", "<u8", "|b1", "|O", "<U4", "|V8", "<c16", ">f8", "x", 3)
        )
    elif form["shape"] and rng.random() < 0.8:
        place = rng.randrange(len(form["shape"]))
        form["shape"][place] = rng.choice((*WHOLE, 2**63, form["shape"][place] + 1, form["shape"][place] - 1))
    else:
        form["shape"] = rng.choice((form["shape"][::-1], [*form["shape"], 1], [], [0], "2", None, form["shape"] * 2))


def change_number(header, arrays, rng):
    """Change numbers in the arrays: one, or all of one."""
    first, spans = 0, []
    for form in header["arrays"]:
        try:
            size = int(np.prod(form["shape"])) * np.dtype(form["dtype"]).itemsize
        except (TypeError, ValueError):  # changed before
            return
        spans.append((first, size, form["dtype"]))
        first += size
    first, size, dtype = rng.choice(spans)
    if dtype not in ("<f8", "<i8", "<i4") or first < 0 or not 0 < size <= len(arrays) - first:
        return
    values = np.frombuffer(arrays, dtype, size // np.dtype(dtype).itemsize, first)
    place = slice(None) if rng.random() < 0.1 else rng.randrange(len(values))
    if dtype == "<f8":
        with np.errstate(over="ignore"):
            values[place] = values[place] * rng.choice((-1.0, 1e10, 1e160)) if rng.random() < 0.3 else rng.choice(REAL)
    else:
        step = rng.choice((-1, 1)) if rng.random() < 0.3 else 0
        with np.errstate(over="ignore"):
            values[place] = values[place] + step if step else np.int64(rng.choice(WHOLE)).astype(dtype)


def move_subtree(header, arrays, rng):
    """Put one part of the header where another was."""
    nodes = nodes_of(header["model"], [])
    (tree, key), (other, its) = rng.sample(nodes, 2)
    tree[key] = json.loads(json.dumps(other[its]))


def use(model):
    """Call whatever a user can call."""
    if isinstance(model, LiveRounds):
        use_live_rounds(model)
    elif isinstance(model, bd.forecasting.Engine):
        use_forecaster(model)
    else:
        use_learner(model)
    if not getattr(model, "_is_torn", False):  # else a forged number has stopped an update midway
        assert repr(loads(dumps(model))) == repr(model)


def allowed(call, *arguments, **named):
    """Make a call that may be refused."""
    try:
        return call(*arguments, **named)
    except BraidedError:
        return None


def use_learner(model):
    """Forecast, learn, join, leave, and look at it."""
    d = min(model.n_features, 1000)
    rng = np.random.default_rng(1)
    tasks = [model.tasks[place % len(model.tasks)] for place in range(12)]
    last = model._last_round if abs(model._last_round) < 2**62 else 0
    X, y, rounds = rng.normal(size=(12, d)), rng.normal(size=12), last + 1 + np.arange(12) // 4
    for with_std in (False, model.has_std):
        allowed(model.predict_many, X, tasks, with_std=with_std)
    allowed(model.progressive, X, y, tasks, rounds=rounds, with_std=model.has_std)
    for place in range(3):
        allowed(model.learn_one, X[place], y[place], task=tasks[place], weight=2.0, round=int(rounds[-1]) + 1)
        allowed(model.predict_one, X[place], task=tasks[place], with_std=model.has_std)
    for name in ("coef", "covariance", "noise_variance", "dictionary", "dual_coef", "health", "optimality"):
        allowed(getattr, model, name, None)
    for number in range(9):  # room for a ninth element, and another full set of pending terms
        allowed(model.learn_many, X * (number + 0.5), y, tasks, rounds=rounds + 3 * number + 9)
    allowed(model.add_task, "fresh", {tasks[0]: 0.3} if model.shares else None)
    allowed(model.remove_task, tasks[1])
    tasks = [model.tasks[-1]] * 12
    allowed(model.progressive, X, y, tasks)
    allowed(getattr, model, "health")
    assert repr(model)


def use_live_rounds(rounds):
    """Go on with lines, and save."""
    live = allowed(Live, QUICK, rounds, warm_up=20)
    for number, line in enumerate(lines_of(field(steps=30)) if live else (), 1):
        allowed(live.feed, line, number)
    if live:
        allowed(live.end)
        allowed(live._unlearned)
    assert rounds.describe()


def use_forecaster(model):
    """Show it, as `inspect` does; go on, with a task that is new, and look ahead."""
    insist_origin(model, Path("forged"))
    report = report_of(model)
    for show in (report.facts, report.in_words, report.errors, report.tables):
        allowed(show)
    rng = np.random.default_rng(1)
    start = max(model.last_stamp, -(2**62))
    stamps = start + model.clock.step * (1 + np.arange(30))
    times = stamps.astype("datetime64[us]") if model.is_dated else stamps
    keys = [*model.tasks, "another"]
    extras = rng.normal(size=(30, len(keys), model.n_extras))
    allowed(model.advance, times, 1.0 + rng.uniform(size=(30, len(keys))), keys, extras)
    made = allowed(model.ahead)
    assert made is None or len(made.tasks) == len(made.forecast)
    if isinstance(model, bd.forecasting.LearnerEngine):
        use_learner(copy.deepcopy(model.learner))
    assert repr(model)
    assert model.silent is not None


def main(first, how_many):
    """Make and use some files; return how many were at fault."""
    faulthandler.enable()
    specimens = [dumps(model) for model in (*learners(), *forecasters(), *autos(), *live_rounds())]
    for data in specimens:
        use(loads(data))  # compiles what is needed, and shows that all is well
    used, faults, refused = sum(map(len, specimens)), 0, 0
    limit = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 + MEMORY + (4 << 30)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for number in range(first, first + how_many):
        rng = random.Random(number)
        data = forged(rng.choice(specimens), rng)
        print(number, file=sys.stderr)
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        try:
            with np.errstate(all="ignore"):
                use(loads(data))
        except FileError:
            refused += 1
        except Exception:
            faults += 1
            print(f"file {number}:\n{traceback.format_exc()}")
        faulthandler.cancel_dump_traceback_later()
    print(f"{how_many} files of {used} bytes of models: {refused} refused, {faults} at fault")
    return faults


if __name__ == "__main__":
    sys.exit(1 if main(*map(int, sys.argv[1:])) else 0)
