"""Run a plan on several cores, unit by unit, into a store; what is there already is not run again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from braided.errors import InputError
from braided.graph import TaskGraph
from braided.learners import L21, MADMM, MOGD, MTOSLSSVR, MTWRLS, Learner
from braided.streams import Panel
from braided.study.plan import Plan, Unit, levels_of
from braided.study.run import run_unit
from braided.study.store import Store
from braided.types import Floats

COMPILED: dict[str, Callable[[TaskGraph], Learner]] = {  # what takes longest goes first
    "kernels": lambda graph: MTOSLSSVR(graph, 1, "rbf"),
    "filters": lambda graph: MTWRLS(graph, 1),
    "norms": lambda graph: L21(graph, 1, 0.01),
    "ADMM": lambda graph: MADMM(graph, 1),
    "gradients": lambda graph: MOGD(graph, 1),
}
Progress = Callable[[int, int, str], None]  # units done, units in all, what was done last


def run_study(plan: Plan, panel: Panel, folder: Path, jobs: int = -1, progress: Progress = lambda *_: None) -> Store:
    """Run what is not yet in the store at `folder`, and return it; the result does not depend on `jobs`."""
    from joblib import Parallel, delayed  # slow to import, and only needed here

    if jobs == 0:
        raise InputError("jobs is 0: give a number of processes, or -1 for one per core")
    levels = levels_of(panel, plan)
    store = Store(folder)
    store.open(plan.describe(panel))
    units = [Unit(window, split) for window in range(len(plan.starts)) for split in plan.splits]
    todo = [unit for unit in units if not store.has(unit)]
    done = len(units) - len(todo)
    progress(done, len(units), f"{done} found" if done else "")
    if len(todo) > 1:
        Parallel(jobs)(delayed(_compile)(part) for part in COMPILED)
    calls = (
        delayed(_run_into)(store, plan, unit, levels[plan.starts[unit.window] :][: plan.length], panel.tasks)
        for unit in todo
    )
    for label in Parallel(jobs, return_as="generator_unordered")(calls):
        done += 1
        progress(done, len(units), label)
    return store


def _compile(part: str) -> None:
    """Compile one part, or load it; what one process compiles, the others find on disk."""
    COMPILED[part](TaskGraph.pooled(range(2))).progressive(np.ones((2, 1)), np.ones(2), [0, 1])


def _run_into(store: Store, plan: Plan, unit: Unit, levels: Floats, tasks: tuple[str, ...]) -> str:
    from threadpoolctl import threadpool_limits  # threads of BLAS gain nothing on small matrices, and lose much

    with threadpool_limits(1):
        store.add(unit, run_unit(plan, unit, levels, tasks))
    return unit.label
