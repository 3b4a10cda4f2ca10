"""check_learner: what every learner must satisfy, including yours.

>>> import braided as bd
>>> bd.checks.check_learner(bd.MTWRLS)
>>> bd.checks.check_learner(lambda graph, n_features: bd.ELM(hidden=5) | bd.WRLS(graph, n_features))

Each check is a function of `make(graph, n_features) -> Learner` that raises an AssertionError; run them one by one
with `pytest.mark.parametrize("check", bd.checks.CHECKS)`.
"""

from __future__ import annotations

import copy
import gc
import tracemalloc
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from braided.errors import InputError
from braided.features import Scale
from braided.graph import TaskGraph
from braided.learners import Learner
from braided.state import dumps, loads
from braided.types import Floats

Make = Callable[[TaskGraph, int], Learner]
Stream = tuple[Floats, Floats, list[str], np.ndarray[Any, Any]]

TASKS = ("a", "b", "c", "d")
SIMILARITY = np.array([[0, 0.9, 0.4, 0], [0.9, 0, 0.2, 0.5], [0.4, 0.2, 0, 0], [0, 0.5, 0, 0]])
FEATURES = 3


def check_learner(make: Make) -> None:
    """Run all checks on the learners that `make(graph, n_features)` returns."""
    for check in CHECKS:
        check(make)


def predicts_before_it_has_learned(make: Make) -> None:
    """A fresh model has a finite forecast for every task."""
    model = _fresh(make)
    forecasts = model.predict_many(np.ones((4, FEATURES)), TASKS)
    _insist(np.isfinite(forecasts).all(), f"fresh forecasts are {forecasts}")
    _insist(model.samples == 0, f"a fresh model has {model.samples} samples")


def learns_something(make: Make) -> None:
    """Learning changes forecasts, and the number of samples."""
    X, y, tasks, rounds = _stream()
    model = _fresh(make)
    before = model.predict_many(X, tasks)
    model.learn_many(X, y, tasks, rounds=rounds)
    _insist((model.predict_many(X, tasks) != before).any(), "forecasts are the same after learning")
    _insist(model.samples == len(y), f"after {len(y)} samples the model counts {model.samples}")


def predicting_changes_nothing(make: Make) -> None:
    """Forecasts leave the model as it is."""
    X, _, tasks, _ = _stream()
    model = _trained(make)
    before = dumps(model)
    model.predict_many(X, tasks)
    model.predict_one(X[0], task=tasks[0])
    if model.has_std:
        model.predict_many(X, tasks, with_std=True)
    _insist(dumps(model) == before, "a forecast changed the model")


def inputs_are_neither_changed_nor_kept(make: Make) -> None:
    """Arrays belong to the caller: the model neither writes into them nor keeps them."""
    X, y, tasks, rounds = _stream()
    given = X.copy(), y.copy(), np.array(tasks), rounds.copy(), np.ones(len(y))
    frozen = [array.copy() for array in given]
    for array in frozen:
        array.flags.writeable = False
    models = [_fresh(make) for _ in range(2)]
    for model, (X_, y_, tasks_, rounds_, weights_) in zip(models, (given, frozen), strict=True):
        model.progressive(X_, y_, tasks_, rounds=rounds_, weights=weights_)
        model.learn_one(X_[0], float(y_[0]), task="a")
    for array, same in zip(given, frozen, strict=True):
        _insist((array == same).all(), "an input was changed")
        array[:] = array[::-1].copy()
    _insist(dumps(models[0]) == dumps(models[1]), "an input was kept")


def inputs_may_have_any_form(make: Make) -> None:
    """Lists, other number types and strided arrays give the same forecasts as contiguous float64."""
    X, y, tasks, rounds = _stream()
    X, y = X.round(2).astype(np.float32).astype(np.float64), y.round(2).astype(np.float32).astype(np.float64)
    forms: list[tuple[Any, Any, Any, Any]] = [
        (X, y, tasks, rounds),
        (X.tolist(), y.tolist(), tuple(tasks), rounds.tolist()),
        (X.astype(np.float32), y.astype(np.float32), np.array(tasks), rounds.astype("datetime64[D]")),
        (np.repeat(X, 2, axis=1)[:, ::2], np.repeat(y, 2)[::2], np.array(tasks, dtype=object), rounds.astype(np.uint8)),
        (np.asfortranarray(X), y[::-1].copy()[::-1], iter(tasks), rounds.astype(np.int16)),
    ]
    forecasts = [_fresh(make).progressive(X_, y_, t_, rounds=r_) for X_, y_, t_, r_ in forms]
    for other in forecasts[1:]:
        _insist((other == forecasts[0]).all(), "the form of the input changed the forecasts")


def many_is_a_loop_of_one(make: Make) -> None:
    """predict_many and learn_many do what loops over predict_one and learn_one do."""
    X, y, tasks, _ = _stream()
    weights = np.linspace(0.5, 2.0, len(y))
    loop, many = _fresh(make), _fresh(make)
    many.learn_many(X, y, tasks, weights=weights)
    for x, target, task, weight in zip(X, y, tasks, weights, strict=True):
        loop.learn_one(x, target, task=task, weight=weight)
    one_by_one = [loop.predict_one(x, task=task) for x, task in zip(X, tasks, strict=True)]
    _same(many.predict_many(X, tasks), one_by_one, "many differ from a loop of one")
    if many.has_std:
        mean, std = many.predict_many(X, tasks, with_std=True)
        pairs = [loop.predict_one(x, task=task, with_std=True) for x, task in zip(X, tasks, strict=True)]
        _same(mean, [pair[0] for pair in pairs], "forecasts with a deviation differ")
        _same(std, [pair[1] for pair in pairs], "deviations differ")
        _insist((std >= 0).all(), f"a deviation is {std.min()}")


def progressive_is_a_loop(make: Make) -> None:
    """Both protocols equal a loop of forecasts and learning, in one call or two, with and without deviations."""
    X, y, tasks, rounds = _stream()
    cut = int(np.searchsorted(rounds, 7))
    for name, interleaved in {"synchronous": False, "interleaved": True}.items():
        whole, chunked, loop = (_fresh(make) for _ in range(3))
        forecasts = whole.progressive(X, y, tasks, rounds=rounds, interleaved=interleaved)
        chunks = [
            chunked.progressive(X[part], y[part], tasks[part], rounds=rounds[part], interleaved=interleaved)
            for part in (slice(cut), slice(cut, None))
        ]
        expected: list[float] = []
        for group in np.split(np.arange(len(y)), np.flatnonzero(np.diff(rounds)) + 1):
            if interleaved:
                for i in group:
                    expected.append(loop.predict_one(X[i], task=tasks[i]))
                    loop.learn_one(X[i], y[i], task=tasks[i], round=int(rounds[i]))
            else:
                keys = [tasks[i] for i in group]
                expected += loop.predict_many(X[group], keys).tolist()
                loop.learn_many(X[group], y[group], keys, rounds=rounds[group])
        _same(forecasts, np.concatenate(chunks), f"{name} in two calls differs from one call")
        _same(forecasts, expected, f"{name} differs from a loop")
        if whole.has_std:
            given: Any = {"rounds": rounds, "interleaved": interleaved}
            mean, std = _fresh(make).progressive(X, y, tasks, **given, with_std=True)
            _same(mean, forecasts, f"{name} with deviations differs from without")
            _insist((std >= 0).all(), f"a deviation is {std.min()}")


def the_clock_survives_cuts_and_feature_maps(make: Make) -> None:
    """Cut between any two rounds, and behind a feature map that changes nothing, forecasts are those of one call."""
    X, y, tasks, rounds = _stream()
    labels = 50 * rounds  # far apart, so that a policy that goes by the clock forgets much
    expected = _fresh(make).progressive(X, y, tasks, rounds=labels)
    identity = Scale(np.zeros(FEATURES), np.ones(FEATURES))
    for cut in np.flatnonzero(np.diff(rounds)) + 1:
        for model in (_fresh(make), identity | _fresh(make)):
            parts = (slice(cut), slice(cut, None))
            made = [model.progressive(X[part], y[part], tasks[part], rounds=labels[part]) for part in parts]
            _same(np.concatenate(made), expected, f"cut at sample {cut}, {model!r} differs from one call")


def weights_matter(make: Make) -> None:
    """Weights change forecasts, and the target of a sample of weight 0 has no effect."""
    X, y, tasks, rounds = _stream()
    plain, weighted, changed = (_fresh(make) for _ in range(3))
    weights = (np.arange(len(y)) % 2).astype(np.float64)
    plain.learn_many(X, y, tasks, rounds=rounds)
    weighted.learn_many(X, y, tasks, rounds=rounds, weights=weights)
    changed.learn_many(X, np.where(weights > 0.0, y, y + 5.0), tasks, rounds=rounds, weights=weights)
    forecasts = weighted.predict_many(X, tasks)
    _insist((plain.predict_many(X, tasks) != forecasts).any(), "weights make no difference")
    _same(changed.predict_many(X, tasks), forecasts, "targets of weight 0 were learned")


def permuting_tasks_permutes_answers(make: Make) -> None:
    """The order in which the graph lists the tasks has no effect."""
    X, y, tasks, rounds = _stream()
    order = [2, 0, 3, 1]
    permuted = TaskGraph(SIMILARITY[np.ix_(order, order)], [TASKS[i] for i in order])
    first, second = _fresh(make), make(permuted, FEATURES)
    forecasts = [model.progressive(X, y, tasks, rounds=rounds) for model in (first, second)]
    _same(forecasts[0], forecasts[1], "another order of tasks gave other forecasts", tolerance=1e-7)
    for model in (first, second):
        model.add_task("new", similar_to={"c": 0.7, "d": 0.2})
        model.remove_task("b")
    remaining = ["a", "c", "d", "new"]
    forecasts = [model.predict_many(X[:4], remaining) for model in (first, second)]
    _same(forecasts[0], forecasts[1], "with another order of tasks, joining and leaving differ", tolerance=1e-7)


def one_task_is_enough(make: Make) -> None:
    """A graph of one task works."""
    X, y, _, rounds = _stream()
    model = make(TaskGraph.pooled(["only"]), FEATURES)
    model.progressive(X, y, ["only"] * len(y), rounds=rounds)
    _insist(np.isfinite(model.predict_one(X[0], task="only")), "no forecast for a single task")


def reset_is_a_fresh_start(make: Make) -> None:
    """After reset, a model equals a new one."""
    model = _trained(make)
    model.reset()
    _insist(dumps(model) == dumps(_fresh(make)), "reset left something behind")


def saved_and_loaded_is_identical(make: Make) -> None:
    """The loaded model forecasts, and goes on learning, with the same bits."""
    X, y, tasks, rounds = _stream(seed=1)
    model = _trained(make)
    loaded = loads(dumps(model))
    _insist(dumps(loaded) == dumps(model), "the copy differs")
    again = [m.progressive(X, y, tasks, rounds=rounds + 100).tobytes() for m in (model, loaded)]
    _insist(again[0] == again[1], "the copy's forecasts differ")
    _insist(dumps(loaded) == dumps(model), "the copy learned something else")


def copies_share_nothing(make: Make) -> None:
    """A copy forecasts with the same bits; after that, neither changes when the other learns."""
    X, y, tasks, _ = _stream(seed=1)
    for copied in (copy.copy, copy.deepcopy):
        model = _trained(make)
        twin, before, forecasts = copied(model), dumps(model), model.predict_many(X, tasks).tobytes()
        _insist(dumps(twin) == before, "the copy differs")
        _insist(twin.predict_many(X, tasks).tobytes() == forecasts, "the copy's forecasts differ")
        twin.learn_many(X, y + 1.0, tasks)
        twin.add_task("copied", {TASKS[0]: 1.0})
        _insist(dumps(model) == before, "what the copy learned has changed the model")
        learned = dumps(twin)
        model.learn_many(X, y - 1.0, tasks)
        _insist(dumps(twin) == learned, "what the model learned has changed the copy")


def bad_input_leaves_the_model_unchanged(make: Make) -> None:
    """Every bad argument raises an InputError before anything changes."""
    model = _trained(make)
    before = dumps(model)
    X, y, tasks, rounds = _stream()
    bad_X, bad_y, x, n = X.copy(), y.copy(), X[0], len(y)
    bad_X[-1, 1], bad_y[-1] = np.nan, np.inf
    bad_x = [[np.nan, 0, 0], [0, np.inf, 0], x[:2], np.ones(FEATURES + 1), X[:1], 1.0, ["1", "2", "3"], [None, 0, 0]]
    one: dict[str, Sequence[Any]] = {"x": [*bad_x, x * 1j], "task": ["z", 0, None, ["a"]]}
    learn = one | {
        "y": [np.nan, -np.inf, "1", None, [1.0]],
        "weight": [-1.0, np.nan, "1"],
        "round": [1.5, np.datetime64("NaT")],
    }
    inputs: dict[str, Sequence[Any]] = {
        "X": [bad_X, X[:, :2], X[:-1], x, X.astype(str)],
        "tasks": [tasks[:-1], [*tasks[:-1], "z"], [*tasks[:-1], {}]],
    }
    many = inputs | {
        "y": [bad_y, y[:-1], y[:, None]],
        "rounds": [rounds[::-1], rounds[:-1], rounds + 0.5],
        "weights": [-np.ones(n), np.ones(3), np.full(n, np.nan)],
    }
    no_std: dict[str, Sequence[Any]] = {} if model.has_std else {"with_std": [True]}
    similar = [{"z": 0.5}, {"a": np.nan}, {"a": "much"}]
    calls: list[tuple[Callable[..., Any], dict[str, Any], dict[str, Sequence[Any]]]] = [
        (model.predict_one, {"x": x, "task": "a"}, one | no_std),
        (model.learn_one, {"x": x, "y": 1.0, "task": "a"}, learn),
        (model.learn_many, {"X": X, "y": y, "tasks": tasks}, many),
        (model.progressive, {"X": X, "y": y, "tasks": tasks}, many | no_std),
        (model.predict_many, {"X": X, "tasks": tasks}, inputs | no_std),
        (model.add_task, {"task": "new"}, {"task": ["a", 1.5], "similar_to": similar}),
        (model.remove_task, {"task": "a"}, {"task": ["z"]}),
    ]
    for call, good, faults in calls:
        for name, values in faults.items():
            for value in values:
                what = f"{call.__name__} with {name}={value!r}"
                _refused(partial(call, **(good | {name: value})), f"{what} was accepted")
                _insist(dumps(model) == before, f"{what} changed the model")


def tasks_join_and_leave(make: Make) -> None:
    """A task that joins can be forecast, learned, saved and removed; after that it is unknown."""
    X, y, tasks, rounds = _stream(seed=2)
    model = _trained(make)
    model.add_task("new", similar_to={"a": 0.8})
    _insist(list(model.tasks) == [*TASKS, "new"], f"after joining, tasks are {model.tasks}")
    _insist(np.isfinite(model.predict_one(X[0], task="new")), "no forecast for a task that joined")
    joined = [*tasks[:-1], "new"]
    model.progressive(X, y, joined, rounds=rounds)
    copy = loads(dumps(model))
    _insist(dumps(copy) == dumps(model), "the copy of a model that a task joined differs")
    model.remove_task("b")
    _insist(list(model.tasks) == ["a", "c", "d", "new"], f"after leaving, tasks are {model.tasks}")
    rest = [i for i, task in enumerate(joined) if task != "b"]
    model.progressive(X[rest], y[rest], [joined[i] for i in rest], rounds=rounds[rest])
    model.remove_task("new")
    _refused(lambda: model.predict_one(X[0], task="new"), "a task that left is still known")
    for task in ("a", "c"):
        model.remove_task(task)
    _refused(lambda: model.remove_task("d"), "the last task could be removed")


def memory_is_bounded(make: Make) -> None:
    """Memory does not grow with the length of a stream that repeats its inputs."""
    X, y, tasks, rounds = _stream()
    model = _fresh(make)

    def passes(n: int) -> None:
        for _ in range(n):
            model.progressive(X, y, tasks, rounds=rounds)
        gc.collect()

    passes(3)
    size = len(dumps(model))
    tracemalloc.start()
    try:
        passes(20)
        start = tracemalloc.get_traced_memory()[0]
        passes(200)
        grown = tracemalloc.get_traced_memory()[0] - start
    finally:
        tracemalloc.stop()
    # Interpreter and compiler keep small caches that level off; half of the inputs, if kept, would show here.
    _insist(grown < 200 * X.nbytes / 2, f"200 passes over the same {len(y)} samples took {grown} bytes more")
    _insist(len(dumps(model)) < size + 100, "the saved model grows with the stream")


CHECKS: tuple[Callable[[Make], None], ...] = (
    predicts_before_it_has_learned,
    learns_something,
    predicting_changes_nothing,
    inputs_are_neither_changed_nor_kept,
    inputs_may_have_any_form,
    many_is_a_loop_of_one,
    progressive_is_a_loop,
    the_clock_survives_cuts_and_feature_maps,
    weights_matter,
    permuting_tasks_permutes_answers,
    one_task_is_enough,
    reset_is_a_fresh_start,
    saved_and_loaded_is_identical,
    copies_share_nothing,
    bad_input_leaves_the_model_unchanged,
    tasks_join_and_leave,
    memory_is_bounded,
)


def _fresh(make: Make) -> Learner:
    return make(TaskGraph(SIMILARITY, TASKS), FEATURES)


def _trained(make: Make) -> Learner:
    model = _fresh(make)
    X, y, tasks, rounds = _stream()
    model.learn_many(X, y, tasks, rounds=rounds)
    return model


def _stream(seed: int = 0) -> Stream:
    """Fifteen rounds from which a task is sometimes absent; the last feature is a bias."""
    rng = np.random.default_rng(seed)
    present = rng.uniform(size=(15, 4)) < 0.85
    rounds, columns = np.nonzero(present)
    X = rng.normal(size=(len(rounds), FEATURES)) / 2
    X[:, -1] = 1.0
    weights = rng.normal(size=FEATURES) + rng.normal(size=(4, FEATURES)) / 3
    y = (X * weights[columns]).sum(axis=1) + rng.normal(size=len(rounds)) / 10
    return X, y, [TASKS[j] for j in columns], rounds


def _insist(condition: Any, message: str) -> None:
    """Assert, even where Python runs without assertions (python -O)."""
    if not condition:
        raise AssertionError(message)


def _refused(call: Callable[[], Any], message: str) -> None:
    try:
        call()
    except InputError:
        return
    raise AssertionError(message)


def _same(first: Any, second: Any, message: str, tolerance: float = 1e-9) -> None:
    a, b = np.asarray(first), np.asarray(second)
    _insist(a.shape == b.shape, f"{message}: shapes are {a.shape} and {b.shape}")
    gap = np.abs(a - b).max() / max(np.abs(b).max(), 1e-300)
    _insist(gap < tolerance, f"{message}: by {gap:.1e} of the largest")
