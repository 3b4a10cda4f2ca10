"""Search: which method, with which parameters, forecasts the tuning period best.

Trials can be kept in a file, one per line; a search that was stopped goes on from there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from braided.errors import FileError, InputError
from braided.evaluation import evaluate
from braided.files import as_json, mark_of, write_whole
from braided.forecasting import Choice, Parameters, Trial
from braided.forecasting.clock import as_stamps
from braided.learners import MTWRLS
from braided.methods import METHODS, Method, find_method, sees_level, with_level
from braided.processes import each, workers
from braided.runs.tuning_period import TuningPeriod
from braided.tuning import SHORTEST_PIECE, How, Tuner, by_score
from braided.version import __version__

Progress: TypeAlias = Callable[[str, float], None]  # what is being done, and which share of it is

SINGLE = METHODS["wrls"]  # one filter per stream, the baseline
DEFAULT_METHODS = tuple(METHODS[name] for name in ("mt-wrls", "mt-wrls-neighbours", "wrls", "wrls-neighbours"))
TRIALS_MARK = mark_of("trials")
FORGETTING = (1.0, 0.999, 0.995, 0.99, 0.98, 0.95)  # per round: memories of all, 1000, 200, 100, 50 and 20 rounds
SHORT_MEMORY_HANDICAP = 1.0  # of the shortest memory, in units of 1/√samples
INFORMATIVE_STREAMS = 10  # counted in Trial.samples: more streams move together, and add little
TRIAL_SECONDS = 1.0  # that one trial may take, at most about
PARALLEL_SECONDS = 5.0  # of trials; beyond this, several processes are worth starting


def silent(what: str, share: float) -> None:
    """Report no progress."""


def rank(trial: Trial) -> float:
    """Return the score with a handicap for short memories: on few samples they win by luck, and then lose."""
    forgetting = trial.parameters.get("forgetting")
    place = FORGETTING.index(forgetting) if forgetting in FORGETTING else 0
    handicap = SHORT_MEMORY_HANDICAP * place / (len(FORGETTING) - 1) / np.sqrt(max(trial.samples, 1))
    return by_score(trial) + handicap


def _key(trial: Trial) -> str:
    return json.dumps([trial.method, trial.parameters, trial.rounds])


def methods_for(names: Sequence[str]) -> list[Method]:
    """Return the methods to choose among: those named, or the default four."""
    if not names:
        return list(DEFAULT_METHODS)
    methods = [find_method(name) for name in names]
    for method in methods:
        if method.make is None or method.batch:
            why = "needs no tuning, so it can't be tuned with others"
            if method.naive:
                why = "can't be run by itself, as it is a baseline, which is compared with"
            if method.batch:
                why = "can't be run by itself, as it is refitted on all data; `braided study` compares with it"
            can = ", ".join(m.name for m in METHODS.values() if m.make and not m.batch)
            raise InputError(f"{method.name} {why}: choose among {can}")
    return methods


def _seconds(period: TuningPeriod, method: Method) -> float:
    """Return roughly how many seconds a sample takes, on one core (`benchmarks/scale.py`)."""
    n_tasks, d = len(period.tasks), method.inputs.lags(period.lags).n_features + period.extras.shape[2]
    if not method.shares:
        return 1.3e-6
    if method.make is MTWRLS and period.graph.is_sparse:
        return 5e-7 + 2e-8 * d**2
    return 3e-7 + 1.5e-10 * (n_tasks * d) ** 2


def affordable(period: TuningPeriod, methods: Sequence[Method]) -> int:
    """Return how many rounds of the period the slowest method can run through in about a second."""
    slowest = max(_seconds(period, method) for method in methods)
    return min(max(int(TRIAL_SECONDS / slowest / len(period.tasks)), SHORTEST_PIECE), len(period.times))


def search(
    period: TuningPeriod,
    methods: Sequence[Method],
    how: How = "halving",
    jobs: int | None = 1,
    log: Path | None = None,
    progress: Progress = silent,
    levels: Sequence[bool] = (False, True),
) -> Choice:
    """Tune one filter per stream, as the baseline, and each method; return the best.

    The baseline decides whether a stream's own level is a feature (of `levels`, those to try), so that no method sees
    more of a stream's own past. The choice does not depend on `jobs`, the number of processes; None means one per
    core where that is worth it.
    """
    workers(1 if jobs is None else jobs)  # refuses 0 before anything is done
    progress("measuring which streams are similar", 0.0)
    rest = [method for method in dict.fromkeys(methods) if method is not SINGLE]
    bench = _Bench(period, how, jobs, log, progress, [*[SINGLE] * len(levels), *rest])
    single = min((bench.tune(SINGLE, level) for level in levels), key=rank)
    tuned = {SINGLE: single} | {method: bench.tune(method, sees_level(single.parameters)) for method in rest}
    best = min((tuned[method] for method in methods), key=rank)
    if best.score is None:
        raise InputError(
            "no candidate could forecast the tuning period: too many values may be missing, or its streams may not "
            "change; tune on a larger share (--tune), or choose other methods (--method)"
        )
    trials = tuple(sorted(tuned.values(), key=rank))
    return Choice(best, single, trials, bench.done, 0 if bench.period is period else len(bench.period.tasks))


class _Bench:
    """Runs trials in parallel, and remembers them."""

    def __init__(
        self,
        period: TuningPeriod,
        how: How,
        jobs: int | None,
        log: Path | None,
        progress: Progress,
        methods: list[Method],
    ) -> None:
        self.period, self.jobs, self.log, self.progress = period.sample, jobs, log, progress
        self.tuner = Tuner(FORGETTING, affordable(self.period, methods), how, rank)
        self.known = {} if log is None else _opened(log, _data_of(period))
        self.done, self.total = 0, sum(map(self.tuner.n_trials, methods))

    def tune(self, method: Method, level: bool) -> Trial:
        """Return the best candidate of a method, with streams' own level as a feature, or without."""
        return self.tuner.tune(method, lambda pool, rounds: self._run(method, pool, rounds), with_level(level))

    def _run(self, method: Method, pool: list[Parameters], rounds: int) -> list[Trial]:
        keys = [_key(Trial(method.name, one, rounds)) for one in pool]
        todo = [one for one, key in zip(pool, keys, strict=True) if key not in self.known]
        work = len(todo) * rounds * len(self.period.tasks) * _seconds(self.period, method)
        jobs = self.jobs or (-1 if work > PARALLEL_SECONDS else 1)
        size = max(min(len(todo) // (4 * workers(jobs)), 25), 1)
        batches = ((self.period, method, todo[first : first + size], rounds) for first in range(0, len(todo), size))
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


def _trials(period: TuningPeriod, method: Method, pool: list[Parameters], rounds: int) -> list[Trial]:
    samples = period.samples(period.lags_of(method, pool[0]), rounds)  # the same for all of them
    if not len(samples.y):
        return [Trial(method.name, parameters, rounds) for parameters in pool]
    runs = [evaluate(period.build(method, parameters), samples) for parameters in pool]
    scores = []
    for run in runs:
        ratios = run.scores.rmse_to_no_change[~np.isnan(run.scores.rmse_to_no_change)]  # NaN where a task does not move
        score = float(ratios.mean()) if run.broke_at is None and len(ratios) else np.inf
        scores.append(score if np.isfinite(score) else None)
    informative = len(samples.y) * min(len(period.tasks), INFORMATIVE_STREAMS) // len(period.tasks)
    return [Trial(method.name, one, rounds, score, informative) for one, score in zip(pool, scores, strict=True)]


def _data_of(period: TuningPeriod) -> dict[str, Any]:
    """The data and settings that trials belong to, so that they are not used with others."""
    values = sha256(as_stamps(period.times).tobytes() + period.values.tobytes() + period.extras.tobytes()).hexdigest()
    data = {"braided": __version__, "tasks": list(period.tasks), "lags": period.lags, "logarithm": period.logarithm}
    return data | {"robust": period.robust, "values": values}


def _opened(log: Path, data: dict[str, Any]) -> dict[str, Trial]:
    """Return the trials in a file, or begin the file; a last line that was cut short is dropped."""
    try:
        first, *lines = (
            log.read_text("utf-8").split("\n")[:-1] if log.exists() else [as_json(data, TRIALS_MARK, None).decode()]
        )
        held = json.loads(first)
        held.pop("file", None)
        trials = [Trial(**json.loads(line)) for line in lines]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise FileError(f"{log} is not a file of trials ({error!r}): choose another (--out), or delete it") from error
    if held != data:
        raise FileError(
            f"{log} holds trials of other data or settings: choose another (--out), or start again (--fresh)"
        )
    write_whole({log: "\n".join([first, *lines, ""]).encode()}, TRIALS_MARK)
    return {_key(trial): trial for trial in trials}
