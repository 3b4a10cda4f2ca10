"""Tuning: which method, and which parameters of it, forecast the head of a table best.

Every candidate forecasts and learns the head from scratch. *grid* lets all of them run to its end. *halving* starts all
on a short piece, and lets the better third go on to three times as much, until few run to the end: the same choice in
most cases, for a small part of the time (successive halving, Jamieson & Talwalkar, arXiv 1502.07943). Short memories
have a handicap that fades with the number of samples: on few, they win by luck, and then lose.

Trials can be kept in a file, a line each; a search that was stopped goes on from there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from braided.errors import FileError, InputError
from braided.evaluation import evaluate
from braided.files import as_json, mark_of, write_whole
from braided.forecasting import Choice, Trial
from braided.forecasting.clock import as_stamps
from braided.learners import MTWRLS
from braided.methods import Parameters, sees_level, with_level
from braided.processes import each, workers
from braided.runs.head import Head
from braided.study import METHODS, Method, find_method
from braided.version import __version__

How: TypeAlias = Literal["halving", "grid"]
Progress: TypeAlias = Callable[[str, float], None]  # what is being done, and which share of it is

SINGLE = METHODS["wrls"]  # one filter per stream, to compare with
DEFAULT = tuple(METHODS[name] for name in ("mt-wrls", "mt-wrls-neighbours", "wrls", "wrls-neighbours"))
TRIALS_MARK = mark_of("trials")
FORGETTING = (1.0, 0.999, 0.995, 0.99, 0.98, 0.95)  # per round: memories of ever, 1000, 200, 100, 50, 20 rounds
HANDICAP = 1.0  # of the shortest memory, in units of 1/√samples
INFORMATIVE_STREAMS = 10  # streams whose samples count there: more of them move together, and tell little more
SHARE = 3  # one in so many goes on to the next piece
LAST = 5  # about so many run to the end
SHORTEST = 100  # rounds of the first piece, at least
SECONDS = 1.0  # about, that one trial may take
WORTH = 5.0  # seconds of trials, from which several processes are worth starting


def silent(what: str, share: float) -> None:
    """Say nothing of the progress."""


def rank(trial: Trial) -> float:
    """Return the score with a handicap for short memories: on few samples, they often win by luck."""
    forgetting = trial.parameters.get("forgetting")
    place = FORGETTING.index(forgetting) if forgetting in FORGETTING else 0
    handicap = HANDICAP * place / (len(FORGETTING) - 1) / np.sqrt(max(trial.samples, 1))
    return (np.inf if trial.score is None else trial.score) + handicap


def _key(trial: Trial) -> str:
    return json.dumps([trial.method, trial.parameters, trial.rounds])


def methods_for(names: Sequence[str]) -> list[Method]:
    """Return the methods to choose among: those named, or the usual four."""
    if not names:
        return list(DEFAULT)
    methods = [find_method(name) for name in names]
    for method in methods:
        if method.make is None or method.batch:
            what = "is refitted on all data" if method.batch else "learns nothing"
            can = ", ".join(m.name for m in METHODS.values() if m.make and not m.batch)
            raise InputError(f"{method.name} {what}, so a table can't be run through it: choose among {can}")
    return methods


def _seconds(head: Head, method: Method) -> float:
    """Return about how many seconds a sample takes, on one core (`benchmarks/scale.py`)."""
    n_tasks, d = len(head.tasks), method.inputs.lags(head.lags).n_features + head.extras.shape[2]
    if not method.shares:
        return 1.3e-6
    if method.make is MTWRLS and head.graph.is_sparse:
        return 5e-7 + 2e-8 * d**2
    return 3e-7 + 1.5e-10 * (n_tasks * d) ** 2


def affordable(head: Head, methods: Sequence[Method]) -> int:
    """Return how many rounds of the head a trial of the slowest method can go through in about a second."""
    slowest = max(_seconds(head, method) for method in methods)
    return min(max(int(SECONDS / slowest / len(head.tasks)), SHORTEST), len(head.times))


def search(
    head: Head,
    methods: Sequence[Method],
    how: How = "halving",
    jobs: int | None = 1,
    log: Path | None = None,
    progress: Progress = silent,
    levels: Sequence[bool] = (False, True),
) -> Choice:
    """Tune one filter per stream, to compare with, and each method; return the best.

    The former decides whether a stream's own level is a feature (`levels` says what to try), so that no method sees
    more of a stream's own past. The choice does not depend on `jobs`, the number of processes; None means one per
    core where that is worth it.
    """
    workers(1 if jobs is None else jobs)  # refuses none, before anything is done
    progress("seeing which streams are alike", 0.0)
    rest = [method for method in dict.fromkeys(methods) if method is not SINGLE]
    bench = _Bench(head, how, jobs, log, progress, [*[SINGLE] * len(levels), *rest])
    single = min((bench.tune(SINGLE, level) for level in levels), key=rank)
    tuned = {SINGLE: single} | {method: bench.tune(method, sees_level(single.parameters)) for method in rest}
    best = min((tuned[method] for method in methods), key=rank)
    if best.score is None:
        raise InputError(
            "no candidate could forecast the part to tune on: its streams may lack too many values, or stand still; "
            "tune on a larger share (--tune), or choose other methods (--method)"
        )
    trials = tuple(sorted(tuned.values(), key=rank))
    return Choice(best, single, trials, bench.done, 0 if bench.head is head else len(bench.head.tasks))


class _Bench:
    """Runs trials, several at once, and remembers them."""

    def __init__(
        self, head: Head, how: How, jobs: int | None, log: Path | None, progress: Progress, methods: list[Method]
    ) -> None:
        self.head, self.how, self.jobs, self.progress = head.tuned_on, how, jobs, progress
        self.rounds = affordable(self.head, methods)
        self.log = log
        self.known = {} if log is None else _opened(log, _about(head))
        self.done = 0
        pools = [list(method.candidates(stage, {}, FORGETTING)) for method in methods for stage in method.stages]
        self.total = sum(sum(self._counts(len(pool))) for pool in pools)

    def _counts(self, candidates: int) -> list[int]:
        """How many candidates run on each piece, the shortest first."""
        rungs = 0
        while candidates // SHARE ** (rungs + 1) >= LAST and self._piece(rungs + 1) >= SHORTEST:
            rungs += 1
        return [-(-candidates // SHARE**rung) for rung in range(rungs + 1)] if self.how == "halving" else [candidates]

    def _piece(self, rung: int) -> int:
        """How many rounds the piece has that is `rung` before the last."""
        return self.rounds // SHARE**rung

    def tune(self, method: Method, level: bool) -> Trial:
        """Return the best candidate of a method, with streams' own level as a feature, or without."""
        best = Trial(method.name, {})
        for stage in method.stages:
            pool = [one | with_level(level) for one in method.candidates(stage, best.parameters, FORGETTING)]
            counts = self._counts(len(pool))
            for rung, kept in enumerate(counts):
                trials = self._run(method, pool[:kept], self._piece(len(counts) - 1 - rung))
                trials.sort(key=rank)
                pool = [trial.parameters for trial in trials]
            best = min(best, trials[0], key=rank)
        return best

    def _run(self, method: Method, pool: list[Parameters], rounds: int) -> list[Trial]:
        keys = [_key(Trial(method.name, one, rounds)) for one in pool]
        todo = [one for one, key in zip(pool, keys, strict=True) if key not in self.known]
        work = len(todo) * rounds * len(self.head.tasks) * _seconds(self.head, method)
        jobs = self.jobs or (-1 if work > WORTH else 1)
        size = max(min(len(todo) // (4 * workers(jobs)), 25), 1)
        batches = ((self.head, method, todo[first : first + size], rounds) for first in range(0, len(todo), size))
        self._advance(len(pool) - len(todo), method)
        for trials in each(_trials, batches, jobs):
            self.known |= {_key(trial): trial for trial in trials}
            if self.log is not None:
                with self.log.open("a", encoding="utf-8") as file:
                    file.writelines(json.dumps(asdict(trial)) + "\n" for trial in trials)
            self._advance(len(trials), method)
        return [self.known[key] for key in keys]

    def _advance(self, trials: int, method: Method) -> None:
        self.done += trials
        self.progress(f"tuning {method.title}", self.done / self.total)


def _trials(head: Head, method: Method, pool: list[Parameters], rounds: int) -> list[Trial]:
    samples = head.samples(head.lags_of(method, pool[0]), rounds)  # the same for all of them
    if not len(samples.y):
        return [Trial(method.name, parameters, rounds) for parameters in pool]
    runs = [evaluate(head.build(method, parameters), samples) for parameters in pool]
    scores = []
    for run in runs:
        ratios = run.scores.rmse_to_no_change[~np.isnan(run.scores.rmse_to_no_change)]  # NaN where a task does not move
        score = float(ratios.mean()) if run.broke_at is None and len(ratios) else np.inf
        scores.append(score if np.isfinite(score) else None)
    telling = len(samples.y) * min(len(head.tasks), INFORMATIVE_STREAMS) // len(head.tasks)
    return [Trial(method.name, one, rounds, score, telling) for one, score in zip(pool, scores, strict=True)]


def _about(head: Head) -> dict[str, Any]:
    """What trials are of: those of other data or settings are of no use."""
    values = sha256(as_stamps(head.times).tobytes() + head.values.tobytes() + head.extras.tobytes()).hexdigest()
    about = {"braided": __version__, "tasks": list(head.tasks), "lags": head.lags, "logarithm": head.logarithm}
    return about | {"robust": head.robust, "values": values}


def _opened(log: Path, about: dict[str, Any]) -> dict[str, Trial]:
    """Return the trials in a file, which is begun if it is not there; a last line cut short is lost."""
    try:
        first, *lines = (
            log.read_text("utf-8").split("\n")[:-1] if log.exists() else [as_json(about, TRIALS_MARK, None).decode()]
        )
        held = json.loads(first)
        held.pop("file", None)
        trials = [Trial(**json.loads(line)) for line in lines]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise FileError(f"{log} is no file of trials ({error!r}): choose another (--out), or delete it") from error
    if held != about:
        raise FileError(
            f"{log} holds trials of other data or settings: choose another (--out), or start again (--fresh)"
        )
    write_whole({log: "\n".join([first, *lines, ""]).encode()}, TRIALS_MARK)
    return {_key(trial): trial for trial in trials}
