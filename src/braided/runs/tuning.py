"""Search: which method, and which parameters of it, forecast the head of a stream best.

Every candidate forecasts and learns the head from scratch. *grid* lets all of them run to its end. *halving* starts all
on a short piece, and lets the better third go on to three times as much, until few run to the end: the same choice in
most cases, for a small part of the time (successive halving, Jamieson & Talwalkar, arXiv 1502.07943).

Trials can be kept in a file, a line each; a search that was stopped goes on from there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, TypeAlias, final

import numpy as np

from braided.errors import FileError, InputError
from braided.evaluation import evaluate
from braided.runs.head import SINGLE, Head
from braided.study import METHODS, Method, find_method
from braided.study.methods import Parameters
from braided.version import __version__

How: TypeAlias = Literal["halving", "grid"]
Progress: TypeAlias = Callable[[int, int, str], None]  # trials done, trials in all, what is being tried

DEFAULT = ("mt-wrls", "mt-wrls-neighbours", "wrls", "wrls-neighbours")
FORGETTING = (1.0, 0.999, 0.995, 0.99, 0.98, 0.95)  # per round: memories of ever, 1000, 200, 100, 50, 20 rounds
SHARE = 3  # one in so many goes on to the next piece
LAST = 5  # about so many run to the end
SHORTEST = 100  # rounds of the first piece, at least
LARGEST = 2000  # weights of all tasks together, beyond which exact sharing takes too long to be tried by default
SECONDS = 1.0  # about, that one trial may take


@final
@dataclass(frozen=True)
class Trial:
    """How well a candidate did."""

    method: str
    parameters: Parameters
    rounds: int  # of the head
    score: float  # mean over the tasks of the error over that of "no change"; infinite where it broke down

    @property
    def key(self) -> str:
        """What tells it from others."""
        return json.dumps([self.method, self.parameters, self.rounds])


@final
@dataclass(frozen=True)
class Choice:
    """What came of a search."""

    best: Trial
    single: Trial  # the best of one filter per stream
    trials: tuple[Trial, ...]  # the best of each method, the best first
    tried: int
    left_out: tuple[str, ...] = ()  # of the usual methods, those that would take too long

    @property
    def method(self) -> Method:
        """The method chosen."""
        return METHODS[self.best.method]

    def describe(self) -> dict[str, Any]:
        """Return it as names and numbers."""

        def plain(trial: Trial) -> dict[str, Any]:
            return asdict(trial) | {"score": trial.score if np.isfinite(trial.score) else None}

        return {
            "best": plain(self.best),
            "single": plain(self.single),
            "trials": [plain(trial) for trial in self.trials],
            "tried": self.tried,
            "left_out": list(self.left_out),
        }


def affordable(head: Head, methods: Sequence[Method]) -> int:
    """Return how many rounds of the head a trial of the slowest method can go through in about a second."""
    cost = 0.0
    for method in methods:
        weights = len(head.tasks) * (head.lags_of(method.inputs).n_features + head.extras.shape[2])
        exact = method.shares and method.make is not None
        cost = max(cost, 3e-7 + (1.5e-10 * weights**2 if exact else 1e-6))  # seconds per sample, as measured
    return min(max(int(SECONDS / cost / len(head.tasks)), SHORTEST), len(head.times))


def methods_for(names: Sequence[str], head: Head) -> list[Method]:
    """Return the methods to choose among: those named, or the usual four as far as they are quick enough."""
    if not names:
        weights = len(head.tasks) * (head.lags + 1)
        return [METHODS[name] for name in DEFAULT if weights <= LARGEST or not name.startswith("mt-")]
    methods = [find_method(name) for name in names]
    for method in methods:
        if method.make is None or method.batch:
            what = "is refitted on all data" if method.batch else "learns nothing"
            can = ", ".join(m.name for m in METHODS.values() if m.make and not m.batch)
            raise InputError(f"{method.name} {what}, so a stream can't be run through it: choose among {can}")
    return methods


def search(
    head: Head,
    methods: Sequence[Method],
    how: How = "halving",
    jobs: int = 1,
    log: Path | None = None,
    progress: Progress = lambda *_: None,
) -> Choice:
    """Tune each method, and one filter per stream to compare with; return the best."""
    alone = METHODS[SINGLE]
    bench = _Bench(head, how, jobs, log, progress, [*dict.fromkeys([*methods, alone])])
    tuned = {method.name: bench.tune(method) for method in bench.methods}
    held = sorted((tuned[method.name] for method in methods), key=lambda trial: trial.score)
    if not np.isfinite(held[0].score):
        raise InputError("no candidate could forecast the part to tune on: look at the values, or choose other methods")
    return Choice(held[0], tuned[SINGLE], tuple(sorted(tuned.values(), key=lambda trial: trial.score)), bench.tried)


class _Bench:
    """Runs trials, several at once, and remembers them."""

    def __init__(
        self, head: Head, how: How, jobs: int, log: Path | None, progress: Progress, methods: list[Method]
    ) -> None:
        if jobs == 0:
            raise InputError("jobs is 0: give a number of processes, or -1 for one per core")
        self.head, self.how, self.jobs, self.methods, self.progress = head, how, jobs, methods, progress
        self.tried, self.done = 0, 0
        self.rounds = affordable(head, methods)
        self.total = sum(sum(self._counts(len(stage))) for method in methods for stage in self._stages(method))
        self.log = None if log is None else _Log(log, _about(head))

    @staticmethod
    def _stages(method: Method) -> Iterator[list[Parameters]]:
        return (list(method.candidates(stage, {}, FORGETTING)) for stage in method.stages)

    def _counts(self, candidates: int) -> list[int]:
        """How many candidates run on each piece, the shortest first."""
        if self.how == "grid":
            return [candidates]
        rungs = 0
        while candidates // SHARE ** (rungs + 1) >= LAST and self._piece(rungs + 1) >= SHORTEST:
            rungs += 1
        return [-(-candidates // SHARE**rung) for rung in range(rungs + 1)]

    def _piece(self, rung: int) -> int:
        """How many rounds the pieces `rung` before the last have."""
        return self.rounds // SHARE**rung

    def tune(self, method: Method) -> Trial:
        best = Trial(method.name, {}, 0, np.inf)
        for stage in method.stages:
            pool = list(method.candidates(stage, best.parameters, FORGETTING))
            counts = self._counts(len(pool))
            for rung, count in enumerate(counts):
                trials = self._run(method, pool[:count], self._piece(len(counts) - 1 - rung))
                trials.sort(key=lambda trial: trial.score)
                pool = [trial.parameters for trial in trials]
            best = min(best, trials[0], key=lambda trial: trial.score)
        return best

    def _run(self, method: Method, pool: list[Parameters], rounds: int) -> list[Trial]:
        from joblib import Parallel, cpu_count, delayed  # slow to import

        known = {} if self.log is None else self.log.trials
        todo = [one for one in pool if Trial(method.name, one, rounds, 0.0).key not in known]
        size = max(min(len(todo) // (4 * (self.jobs if self.jobs > 0 else cpu_count())), 25), 1)
        batches = [todo[first : first + size] for first in range(0, len(todo), size)]
        fresh: dict[str, Trial] = {}
        self._advance(len(pool) - len(todo), method)
        for trials in Parallel(self.jobs, return_as="generator")(
            delayed(_trials)(self.head, method, batch, rounds) for batch in batches
        ):
            fresh |= {trial.key: trial for trial in trials}
            if self.log is not None:
                self.log.add(trials)
            self._advance(len(trials), method)
        return [(known | fresh)[Trial(method.name, one, rounds, 0.0).key] for one in pool]

    def _advance(self, trials: int, method: Method) -> None:
        self.done += trials
        self.tried += trials
        self.progress(self.done, self.total, method.title)


def _trials(head: Head, method: Method, pool: list[Parameters], rounds: int) -> list[Trial]:
    from threadpoolctl import threadpool_limits  # threads of BLAS gain nothing on small matrices, and lose much

    samples = head.samples(method.inputs).between(0, rounds)
    trials = []
    with threadpool_limits(1):
        for parameters in pool:
            score = np.inf
            if len(samples.y):
                run = evaluate(head.build(method, parameters), samples)
                ratios = run.scores.rmse_to_level
                if run.broke_at is None and not np.isnan(ratios).all():
                    score = float(np.nanmean(ratios))
            trials.append(Trial(method.name, parameters, rounds, score if np.isfinite(score) else np.inf))
    return trials


def _about(head: Head) -> dict[str, Any]:
    content = sha256(head.values.tobytes() + head.extras.tobytes()).hexdigest()
    return {
        "braided": __version__,
        "tasks": list(head.tasks),
        "lags": head.lags,
        "logarithm": head.logarithm,
        "values": content,
    }


class _Log:
    """Trials in a file: a line that says what they are of, then one each."""

    def __init__(self, path: Path, about: dict[str, Any]) -> None:
        self.path = path
        self.trials: dict[str, Trial] = {}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            lines = path.read_text("utf-8").split("\n")[:-1] if path.exists() else []  # a last one cut short is lost
            if lines and json.loads(lines[0]) != about:
                raise FileError(f"{path} holds a search of other data or settings: choose another, or delete it")
            for line in lines[1:]:
                trial = Trial(**{"score": np.inf} | json.loads(line))
                self.trials[trial.key] = trial
            path.write_text("\n".join([*(lines or [json.dumps(about)]), ""]), "utf-8")
        except (OSError, ValueError, TypeError) as error:
            if isinstance(error, FileError):
                raise
            raise FileError(f"{path} can't be used to keep the search in ({error}): choose another") from error

    def add(self, trials: list[Trial]) -> None:
        lines = []
        for trial in trials:
            fields = asdict(trial)
            if np.isinf(trial.score):
                del fields["score"]
            lines.append(json.dumps(fields) + "\n")
            self.trials[trial.key] = trial
        with self.path.open("a", encoding="utf-8") as file:
            file.writelines(lines)
