"""Run: a table through a forecaster, from the choice of a method to a file of forecasts.

The leading share of the rounds is the head: methods are tuned and the graph is built on it, and the forecaster learns
it. From there on forecasts count: each is made before its value is learned, and written to the file. The model is
saved every now and then; a run that was killed goes on from it, and ends with the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeAlias, final

import numpy as np

from braided.errors import FileError, InputError
from braided.forecasting import NEVER, Forecaster, Forecasts, as_stamps, joined, widened
from braided.runs.head import SINGLE, Head
from braided.runs.output import ForecastFile
from braided.runs.tuning import DEFAULT, Choice, How, Trial, methods_for, search
from braided.state import load, save
from braided.streams import Chunk, Rounds, open_rounds
from braided.study import METHODS, Method
from braided.study.methods import Parameters
from braided.study.store import open_plan, write_whole
from braided.types import Floats
from braided.validate import count
from braided.version import __version__

EVERY = 1_000_000  # samples between saves
MOST = 500_000  # values of the head; more would not change the choice
Progress: TypeAlias = Callable[[str, float], None]  # what is being done, and which share of it is


@final
@dataclass(frozen=True)
class Settings:
    """What decides the forecasts of a table."""

    methods: tuple[str, ...] = ()  # to choose among; none means the usual ones
    parameters: Parameters = field(default_factory=dict)  # of the one method, instead of a search
    tune: float = 0.2  # the leading share
    single: Parameters = field(default_factory=dict)  # of the filters to compare with, likewise
    how: How = "halving"
    lags: int | None = None  # nine, or fewer in a short head
    logarithm: bool = False
    coverage: float = 0.9
    without: tuple[str, ...] = ()  # tasks to leave out
    tuned_until: int | None = None  # what was tuned on elsewhere, as an integer time: forecasts count after it
    model: str = ""  # a saved model to start from, instead of all that

    def __post_init__(self) -> None:
        """Check what is not checked elsewhere."""
        if not 0.0 < self.tune < 1.0:
            raise InputError(f"tune is {self.tune}: give the share of the rounds to tune on, above 0 and below 1")
        if not 0.0 < self.coverage < 1.0:
            raise InputError(f"coverage is {self.coverage}: give a share above 0 and below 1, such as 0.9")
        if self.lags is not None:
            count(self.lags, "lags")
        if self.parameters and len(self.methods) != 1:
            raise InputError("parameters belong to one method: name it (--method)")


def chunks_of(rounds: Rounds, without: tuple[str, ...] = ()) -> Iterator[Chunk]:
    """Yield the rounds without some tasks, which must be there from the start."""
    for number, chunk in enumerate(rounds.chunks()):
        if number == 0:
            _insist_known(without, chunk.tasks)
        kept = [place for place, task in enumerate(chunk.tasks) if task not in without]
        if len(kept) == len(chunk.tasks):
            yield chunk
        else:
            tasks = tuple(chunk.tasks[place] for place in kept)
            yield Chunk(chunk.times, tasks, chunk.values[:, kept], chunk.extras[:, kept])


def read_head(rounds: Rounds, settings: Settings) -> Head:
    """Return the leading share of the rounds, at most so many values as make a difference."""
    chunks: list[Chunk] = []
    before, size = 0.0, 0
    stream = chunks_of(rounds, settings.without)
    for chunk in stream:
        share = (settings.tune - before) / max(rounds.progress - before, 1e-9)
        room = (MOST - size) // max(len(chunk.tasks), 1)
        rows = min(round(share * len(chunk.times)), max(room, 1))
        chunks.append(Chunk(chunk.times[:rows], chunk.tasks, chunk.values[:rows], chunk.extras[:rows]))
        before, size = rounds.progress, size + chunk.values[:rows].size
        if rows < len(chunk.times):
            break
    tasks = chunks[-1].tasks
    values = _stacked([chunk.values for chunk in chunks], len(tasks))
    extras = _stacked([chunk.extras for chunk in chunks], len(tasks))
    times = np.concatenate([chunk.times for chunk in chunks])
    return Head.of(times, tasks, values, extras, settings.lags, settings.logarithm)


def choose(
    head: Head, settings: Settings, jobs: int = 1, log: Path | None = None, progress: Progress = lambda *_: None
) -> Choice:
    """Return the method and parameters that forecast the head best, or those that are given."""

    def told(done: int, total: int, what: str) -> None:
        progress(f"tuning {what}", done / max(total, 1))

    methods = methods_for(settings.methods, head)
    if not settings.parameters:
        found = search(head, methods, settings.how, jobs, log, told)
        usual = () if settings.methods else DEFAULT
        return replace(found, left_out=tuple(name for name in usual if METHODS[name] not in methods))
    alone = METHODS[SINGLE]
    given = Trial(methods[0].name, checked(methods[0], settings.parameters), 0, np.nan)
    if settings.single:
        single = Trial(SINGLE, checked(alone, settings.single), 0, np.nan)
    elif methods[0] is alone:
        single = given
    else:
        single = search(head, [alone], settings.how, jobs, log, told).single
    return Choice(given, single, (), 0)


def checked(method: Method, parameters: Parameters) -> Parameters:
    """Insist that the parameters are those of the method, and all of them."""
    needed = list(dict.fromkeys(name for stage in method.stages for name in stage))
    if sorted(parameters) != sorted(needed):
        raise InputError(
            f"{method.name} has the parameters {', '.join(needed)}, and {', '.join(parameters)} are given: give all "
            "of them, such as " + ",".join(f"{name}=1" for name in needed)
        )
    return {name: float(parameters[name]) for name in needed}


@final
@dataclass(frozen=True, eq=False)
class Run:
    """What came of a run."""

    forecaster: Forecaster
    forecasts: Path | None  # the file; None where there was nothing to forecast
    about: dict[str, Any]  # the settings, the source and the choice
    continued: bool  # or from the start


def run(
    rounds: Rounds,
    settings: Settings,
    forecasts: Path,
    model: Path,
    every: int = EVERY,
    jobs: int = 1,
    progress: Progress = lambda *_: None,
) -> Run:
    """Run a table through a forecaster, into a file of forecasts; go on where an earlier run of it was stopped.

    Where the run stands is in `model`, and what it is of beside it, under the same name with `.json`.
    """
    count(every, "every")
    if settings.model and Path(settings.model).resolve() == model.resolve():
        raise InputError(f"{model} is the model to start from: save the one that comes of it elsewhere (--save)")
    plan = model.with_name(model.name + ".json")
    about = describe(rounds, settings) | {"forecasts": forecasts.name, "every": every}
    open_plan(plan, about, "run")
    for draft in model.parent.glob(f".{model.name}.*"):  # of a run that was killed while it saved
        draft.unlink(missing_ok=True)
    continued = model.exists()
    forecaster = _loaded(model) if continued else _started(rounds, settings, jobs, progress)
    state = forecaster.about["run"]
    if state["finished"]:
        return Run(forecaster, forecasts if forecasts.exists() else None, about, continued)
    file = ForecastFile(forecasts, state["parts"])
    unsaved = 0
    for chunk in _pieces(chunks_of(rounds, settings.without), every):
        unsaved += _advance(forecaster, chunk, state["head_end"], file.add)
        progress("forecasting and learning", rounds.progress)
        if unsaved >= every:
            state["parts"], unsaved = file.commit(), 0
            save(forecaster, model)
    state["parts"] = file.commit()
    save(forecaster, model)
    path = file.finish()
    state["finished"] = True
    save(forecaster, model)
    file.clear()  # a kill before this leaves the parts behind, no more
    return Run(forecaster, path, about, continued)


def run_in_memory(source: Any, settings: Settings | None = None, **columns: Any) -> tuple[Forecaster, Forecasts]:
    """Run a table, as `streams.open_rounds` takes it with its `columns`; return the forecaster and its forecasts.

    >>> from braided.streams import wind_field
    >>> forecaster, made = run_in_memory(wind_field(seed=1, steps=500, sites=3), Settings(("mt-wrls",), lags=3))
    >>> len(made.forecast)  # of three sites, after a fifth of the steps
    1200
    >>> bool(forecaster.record.rmse[:, 0].mean() < forecaster.record.rmse[:, 2].mean())  # better than "no change"
    True
    """
    rounds, settings = open_rounds(source, **columns), settings or Settings()
    forecaster = _started(rounds, settings, 1, lambda *_: None)
    made: list[Forecasts] = []
    for chunk in chunks_of(rounds, settings.without):
        _advance(forecaster, chunk, forecaster.about["run"]["head_end"], made.append)
    return forecaster, joined(made)


def describe(rounds: Rounds, settings: Settings) -> dict[str, Any]:
    """Return all that decides the forecasts, to recognise a run by."""
    fields = asdict(settings)
    return {
        "source": rounds.name,
        "size": rounds.size,
        "columns": rounds.columns.describe(),
        "version": __version__,
    } | fields


def _loaded(model: Path) -> Forecaster:
    forecaster = load(model)
    if not isinstance(forecaster, Forecaster):
        raise FileError(f"{model} is not the model of a run: choose another file (--save), or start again (--fresh)")
    return forecaster


def learn(forecaster: Forecaster, rounds: Rounds, progress: Progress = lambda *_: None) -> None:
    """Let a forecaster learn the rounds that it does not know yet."""
    for chunk in rounds.chunks():
        _advance(forecaster, chunk, forecaster.last_stamp, lambda _: None)
        progress("learning", rounds.progress)


def write_choice(path: Path, choice: Choice, head: Head) -> None:
    """Write down a choice for `Settings`."""
    until = {"lags": head.lags, "tuned_until": int(as_stamps(head.times)[-1])}
    write_whole(path, json.dumps({"braided": __version__} | until | choice.describe(), indent=1).encode())


def read_choice(path: Path) -> dict[str, Any]:
    """Return the settings that `write_choice` wrote down."""
    try:
        held = json.loads(path.read_text("utf-8"))
        best, single = held["best"], held["single"]
        return {
            "methods": (best["method"],),
            "parameters": best["parameters"],
            "single": single["parameters"],
            "lags": held["lags"],
            "tuned_until": held["tuned_until"],
        }
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FileError(f"{path} holds no choice that `braided tune` made ({error}): tune again") from error


def _started(rounds: Rounds, settings: Settings, jobs: int, progress: Progress) -> Forecaster:
    if settings.model:
        forecaster = _loaded(Path(settings.model))
        forecaster.about["run"] = {"head_end": forecaster.last_stamp, "head_rounds": 0, "parts": 0, "finished": False}
        return forecaster
    progress("reading the part to tune on", 0.0)
    head = read_head(rounds, settings)
    choice = choose(head, settings, jobs, None, progress)
    head_end = max(int(as_stamps(head.times)[-1]), settings.tuned_until or NEVER)
    about: dict[str, Any] = {
        "source": rounds.name,
        "columns": rounds.columns._asdict(),
        "choice": choice.describe(),
        "run": {
            "head_end": head_end,
            "head_rounds": len(head.times),
            "parts": 0,
            "finished": False,
        },
    }
    return head.forecaster(choice.method, choice.best.parameters, choice.single.parameters, settings.coverage, about)


def _pieces(chunks: Iterator[Chunk], samples: int) -> Iterator[Chunk]:
    """Cut chunks into pieces of at most so many samples, the same ones in every run."""
    for chunk in chunks:
        rows = max(samples // max(len(chunk.tasks), 1), 1)
        for first in range(0, len(chunk.times), rows):
            piece = slice(first, first + rows)
            yield Chunk(chunk.times[piece], chunk.tasks, chunk.values[piece], chunk.extras[piece])


def _advance(forecaster: Forecaster, chunk: Chunk, head_end: int, keep: Callable[[Forecasts], None]) -> int:
    """Learn what the forecaster does not know yet; keep the forecasts after the head. Return how many samples."""
    stamps = as_stamps(chunk.times)
    last = forecaster.last_stamp
    known, head = np.searchsorted(stamps, [last, head_end], side="right").tolist()
    for first, end, counts in ((known, max(head, known), False), (max(head, known), len(stamps), True)):
        if end > first:
            part = slice(first, end)
            made = forecaster.advance(
                chunk.times[part], chunk.values[part], chunk.tasks, chunk.extras[part], record=counts
            )
            if counts:
                keep(made)
    return int((len(stamps) - known) * len(chunk.tasks))


def _stacked(arrays: list[Floats], n_tasks: int) -> Floats:
    """Put arrays below each other; tasks that an earlier one lacks are missing there."""
    return np.concatenate([widened(array, n_tasks - array.shape[1]) for array in arrays])


def _insist_known(names: tuple[str, ...], known: tuple[str, ...]) -> None:
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, n=1, cutoff=0.0)
            raise InputError(f"no task {name!r} to leave out: did you mean {near[0]!r}?")
