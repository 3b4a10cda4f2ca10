"""Run a plan on several cores, unit by unit, into a store; finished units are not run again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from braided.files import sole_writer
from braided.graph import TaskGraph
from braided.learners import L21, MADMM, MOGD, MTOSLSSVR, MTWRLS, Learner
from braided.methods import Method, find_method
from braided.processes import each, workers
from braided.study.plan import Plan, Unit, levels_of
from braided.study.run import run_unit
from braided.study.store import Store
from braided.tables import Panel
from braided.types import Floats

COMPILED: dict[str, Callable[[TaskGraph], Learner]] = {  # by a part of a method's name; the slowest to compile first
    "wrls": lambda graph: MTWRLS(graph, 1),
    "oslssvr": lambda graph: MTOSLSSVR(graph, 1, "rbf"),
    "l21": lambda graph: L21(graph, 1, 0.01),
    "madmm": lambda graph: MADMM(graph, 1),
    "mogd": lambda graph: MOGD(graph, 1),
}
Progress = Callable[[int, int, str], None]  # units done, units in all, what was done last


def run_study(plan: Plan, panel: Panel, folder: Path, jobs: int = -1, progress: Progress = lambda *_: None) -> Store:
    """Run what is not yet in the store at `folder`, and return it; the result does not depend on `jobs`."""
    workers(jobs)  # refuses 0 before anything is done
    levels, store = levels_of(panel, plan), Store(folder)
    with sole_writer(folder=folder):
        store.open(plan.describe(panel))
        units = [Unit(window, split) for window in range(len(plan.starts)) for split in plan.splits]
        todo = [unit for unit in units if not store.has(unit)]
        done = len(units) - len(todo)
        progress(done, len(units), f"{done} found" if done else "")
        if len(todo) > 1:
            parts = [part for part in COMPILED if any(part in name for name in plan.methods)]
            list(each(_compile, ((part,) for part in parts), jobs))
        pieces = {unit: levels[plan.starts[unit.window] :][: plan.length] for unit in todo}
        methods = [find_method(name) for name in plan.methods]  # workers may not know them by name
        calls = ((store, plan, methods, unit, piece, panel.tasks) for unit, piece in pieces.items())
        for label in each(_run_into, calls, jobs, in_order=False):
            done += 1
            progress(done, len(units), label)
    return store


def _compile(part: str) -> None:
    """Compile one part, or load it; what one process compiles, the others find on disk."""
    COMPILED[part](TaskGraph.pooled(range(2))).progressive(np.ones((2, 1)), np.ones(2), [0, 1])


def _run_into(
    store: Store, plan: Plan, methods: list[Method], unit: Unit, levels: Floats, tasks: tuple[str, ...]
) -> str:
    store.add(unit, run_unit(plan, methods, unit, levels, tasks))
    return unit.label
