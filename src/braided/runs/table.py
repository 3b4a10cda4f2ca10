"""A table through a forecaster, from the choice of a method to a file of forecasts.

Every forecast is made before its value is learned, and written to the file. Auto forecasts from the second round on;
other methods are tuned on the tuning period, the leading share of the rounds, and forecasts after it count. The model
is saved now and then; a run that was killed goes on from there and ends with the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, TypeAlias, final

import numpy as np

from braided.errors import FileError, InputError
from braided.files import (
    OTHER_FOLDER,
    PLAN_MARK,
    as_json,
    insist_apart,
    insist_own,
    open_plan,
    remove_drafts,
    remove_own,
    sole_writer,
    write_whole,
)
from braided.forecasting import Engine, Forecasts, Position, joined
from braided.forecasting.clock import NEVER, as_stamps
from braided.forecasting.plan import ROWS_AHEAD
from braided.graph import listed
from braided.printable import counted
from braided.processes import workers
from braided.runs.output import FORECAST_COLUMNS, ForecastFile, forecasts_mark
from braided.runs.start import Settings, choose, fresh_auto, load_forecaster, only_auto_knows, options_of, start
from braided.runs.trials import TRIALS_MARK, Progress, silent
from braided.runs.tuning_period import TuningPeriod
from braided.state import MODEL_MARK, save
from braided.tables import Chunk, Rounds, open_rounds, stacked
from braided.validate import count
from braided.version import __version__

Basis: TypeAlias = Engine | TuningPeriod  # what a run starts from

SAVE_EVERY = 1_000_000  # samples
TUNING_VALUES = 500_000  # of the tuning period; more would not change the choice
TUNING_ROUNDS = 200  # at least, however many streams there are


@final
@dataclass(frozen=True, eq=False)
class Run:
    """The result of a run."""

    forecaster: Engine
    forecasts: Path | None  # the file; None where there was nothing to forecast
    plan: dict[str, Any]  # all that decides the forecasts
    how: Literal["begun", "continued", "finished"]  # from the start, where it was stopped, or before this
    model: Path | None = None  # the file, if there is one


def run(
    rounds: Rounds,
    settings: Settings,
    forecasts: Path,
    model: Path,
    *,
    every: int = SAVE_EVERY,
    jobs: int | None = 1,
    fresh: bool = False,
    progress: Progress = silent,
    then: Callable[[Run], object] = lambda _: None,
) -> Run:
    """Run a table through a forecaster, into a file of forecasts; go on where an earlier run of it was stopped.

    Beside `model`, a file of the same name with `.json` says what the run belongs to, and one with `.trials` holds the
    trials until a choice is made; `fresh` deletes all of them first. Folder and model are locked meanwhile, also while
    `then` is called with the result. A file that is read, or that braided did not make, is never overwritten.
    """
    count(every, "every")
    workers(1 if jobs is None else jobs)  # refuses 0
    forecasts, model = Path(forecasts), Path(model)
    marks = claim(forecasts, model, [*rounds.files, *([Path(settings.model)] if settings.model else [])])
    # Read before anything is written, so that a table that is refused leaves nothing behind.
    basis = _basis(rounds, settings, progress) if fresh or not model.exists() else None
    with sole_writer(folder=forecasts.parent, file=model):
        if fresh:
            remove_own(marks)
        done = _run(rounds, settings, marks, basis, every, jobs, progress)
        then(done)
        return done


def claim(forecasts: Path, model: Path, inputs: Sequence[Path], others: Sequence[Path] = ()) -> dict[Path, str]:
    """Return the files that a run writes, forecasts, model, plan and trials, each with its mark.

    Inputs, other outputs, and files that braided did not make are refused.
    """
    files = (forecasts, model, model.with_name(model.name + ".json"), model.with_name(model.name + ".trials"))
    insist_apart(inputs, [*files, *others])
    marks = dict(zip(files, (forecasts_mark(forecasts), MODEL_MARK, PLAN_MARK, TRIALS_MARK), strict=True))
    for path, mark in marks.items():
        insist_own(path, mark, OTHER_FOLDER if path is forecasts else "choose another path (--save)")
    return marks


def _run(
    rounds: Rounds,
    settings: Settings,
    files: Iterable[Path],
    basis: Basis | None,
    every: int,
    jobs: int | None,
    progress: Progress,
) -> Run:
    forecasts, model, noted, trials = files
    plan = _plan(rounds, settings) | {"--format": forecasts.suffix[1:], "--every": every}
    continued = model.exists()
    remove_drafts(model)
    if continued:
        open_plan(noted, plan, "run")
        forecaster = load_forecaster(model)
    else:
        basis = basis or _basis(rounds, settings, progress)
        try:
            forecaster = _started(rounds, settings, basis, jobs, trials, progress)
        except InputError:
            trials.unlink(missing_ok=True)
            raise
        write_whole({noted: as_json(plan, PLAN_MARK)}, PLAN_MARK)
    position, is_utc = forecaster.origin.position, forecaster.origin.is_utc
    if position is None:
        raise FileError(f"{model} holds a model that `braided run` did not create: choose another path (--save)")
    if position.is_finished:
        return Run(forecaster, forecasts if forecasts.exists() else None, plan, "finished", model)
    if not continued:
        save(forecaster, model)
        trials.unlink(missing_ok=True)
    file = ForecastFile(forecasts, position.parts, rounds.is_utc if is_utc is None else is_utc, forecaster.levels)
    unsaved = 0
    for chunk, ahead in _with_next(_pieces(chunks_of(rounds, settings.without), every), forecaster):
        unsaved += _advance(forecaster, chunk, ahead, rounds.is_utc, file.add)
        progress("forecasting and learning", rounds.progress)
        if unsaved >= every:
            unsaved = 0
            forecaster.origin = replace(forecaster.origin, position=replace(position, parts=file.commit()))
            save(forecaster, model)
    path = file.finish()
    done = replace(position, parts=file.parts, is_finished=True)
    forecaster.origin = replace(forecaster.origin, position=done)
    save(forecaster, model)
    file.clear()  # a kill before this leaves the parts behind, no more
    return Run(forecaster, path, plan, "continued" if continued else "begun", model)


def _plan(rounds: Rounds, settings: Settings) -> dict[str, Any]:
    """Return all that decides the forecasts, under the names that a user knows."""
    return {
        "table": rounds.name,
        "bytes": rounds.size,
        "changed": str(np.datetime64(rounds.changed, "ns")),
        "columns": rounds.columns.describe(),
        **options_of(settings),
        "search": settings.how,
        "tuned until": settings.tuned_until,
        "columns of the forecasts": FORECAST_COLUMNS,  # other ones can't be appended to
        "version": __version__,
    }


def run_in_memory(source: Any, settings: Settings | None = None, **columns: Any) -> tuple[Engine, Forecasts]:
    """Run a table, as `tables.open_rounds` takes it with its `columns`; return the forecaster and its forecasts.

    >>> from braided.datasets import wind_field
    >>> forecaster, made = run_in_memory(wind_field(seed=1, steps=500, sites=3), Settings(("mt-wrls",), lags=3))
    >>> len(made.forecast)  # of three sites, after a fifth of the steps
    1200
    >>> record = forecaster.record
    >>> bool(record.rmse_of("model").mean() < record.rmse_of("no change").mean())
    True
    """
    rounds, settings = open_rounds(source, **columns), settings or Settings()
    forecaster = _started(rounds, settings, _basis(rounds, settings, silent), 1, None, silent)
    made = [forecaster.nothing()]
    for chunk, ahead in _with_next(chunks_of(rounds, settings.without), forecaster):
        _advance(forecaster, chunk, ahead, rounds.is_utc, made.append)
    return forecaster, joined(made)


def learn(forecaster: Engine, rounds: Rounds, progress: Progress = silent) -> None:
    """Let a forecaster learn the rounds that it has not seen yet; a table with none of its streams is refused."""
    _insist_same_columns(forecaster, rounds)
    for number, (chunk, ahead) in enumerate(_with_next(rounds.chunks(), forecaster)):
        if number == 0 and not set(chunk.tasks) & set(forecaster.columns):
            there = f"{rounds.place} has {listed(chunk.tasks)}, the model {listed(forecaster.columns)}"
            raise InputError(f"{there}: give a table with streams of the model")
        chunk, ahead = (one.without(forecaster.origin.without) for one in (chunk, ahead))
        _advance(forecaster, chunk, ahead, rounds.is_utc, lambda _: None)
        progress("learning", rounds.progress)


def learn_known_ahead(forecaster: Engine, rounds: Rounds) -> None:
    """Let a forecaster learn what is known of rounds to come, from a table of that alone.

    `rounds` has the first of the columns that are known ahead as its values, and the others as features.
    """
    for chunk in rounds.chunks():
        _insist_same_offsets(forecaster, rounds.is_utc)
        later = _rows_after(chunk, forecaster.last_stamp)
        known = np.concatenate([later.values[:, :, None], later.extras], axis=2)
        forecaster.learn_known_ahead(later.times, known, later.tasks)


def read_tuning_period(rounds: Rounds, settings: Settings) -> TuningPeriod:
    """Return the leading share of the rounds, cut where more values would not change the choice."""
    if rounds.columns.known:
        raise only_auto_knows(rounds.columns.known)
    chunks: list[Chunk] = []
    before, size, known = 0.0, 0, 0
    for chunk in chunks_of(rounds, settings.without):
        share = (settings.tune - before) / max(rounds.progress - before, 1e-9)
        room = max((TUNING_VALUES - size) // max(len(chunk.tasks), 1), TUNING_ROUNDS - known)
        rows = max(min(round(share * len(chunk.times)), room), 0)
        chunks.append(chunk.rows(slice(rows)))
        before = rounds.progress
        size, known = size + chunks[-1].values.size, known + len(chunks[-1].times)
        if rows < len(chunk.times):
            break
    return TuningPeriod.of(stacked(chunks), settings.lags, settings.logarithm, settings.keep_constant, settings.robust)


def chunks_of(rounds: Rounds, without: tuple[str, ...] = ()) -> Iterator[Chunk]:
    """Yield the rounds without some streams, which must be in the first chunk."""
    for number, chunk in enumerate(rounds.chunks()):
        for name in without if number == 0 else ():
            if name not in chunk.tasks:
                near = get_close_matches(name, chunk.tasks, n=1)
                there = f"did you mean {near[0]!r}?" if near else f"there are {listed(chunk.tasks)}"
                raise InputError(f"no stream {name!r} to leave out: {there}")
        yield chunk.without(without)


def _basis(rounds: Rounds, settings: Settings, progress: Progress) -> Basis:
    if settings.model:
        return load_forecaster(Path(settings.model))
    progress("reading the first rounds", 0.0)
    if not settings.is_auto:
        return read_tuning_period(rounds, settings)
    next(chunks_of(rounds, settings.without), None)  # so that a table that can't be read leaves nothing behind
    return fresh_auto(settings, rounds.name, rounds.columns, rounds.timezone)


def _started(
    rounds: Rounds, settings: Settings, basis: Basis, jobs: int | None, trials: Path | None, progress: Progress
) -> Engine:
    if isinstance(basis, Engine):
        forecaster = basis
        _insist_same_columns(forecaster, rounds)
        here = Position(forecaster.last_stamp, 0, len(forecaster.tasks))
        forecaster.origin = replace(forecaster.origin, source=rounds.name, position=here, live=None)
        forecaster.forget_record()
        return forecaster
    choice = choose(basis, settings, jobs, trials, progress)
    return start(basis, choice, settings, rounds.name, rounds.columns, rounds.is_utc)


def _pieces(chunks: Iterator[Chunk], samples: int) -> Iterator[Chunk]:
    """Cut chunks into pieces of at most `samples` samples, the same ones in every run."""
    for chunk in chunks:
        rows = max(samples // max(len(chunk.tasks), 1), 1)
        for first in range(0, len(chunk.times), rows):
            yield chunk.rows(slice(first, first + rows))


def _with_next(chunks: Iterator[Chunk], forecaster: Engine) -> Iterator[tuple[Chunk, Chunk]]:
    """Yield each chunk with the rounds after it that its forecasts may know something of, however they are cut."""
    n = ROWS_AHEAD * forecaster.horizon if forecaster.n_known else 0
    held: list[Chunk] = []
    for chunk in chunks:
        while held and sum(len(one.times) for one in held[1:]) >= n:
            yield held[0], _next_rounds(held, n)
            held = held[1:]
        held.append(chunk)
    while held:
        yield held[0], _next_rounds(held, n)
        held = held[1:]


def _next_rounds(held: list[Chunk], n: int) -> Chunk:
    """Return up to n rounds after the first chunk."""
    if len(held) == 1:
        return held[0].rows(slice(0))
    return stacked([chunk.rows(slice(n)) for chunk in held[1:]]).rows(slice(n))


def _rows_after(chunk: Chunk, stamp: int) -> Chunk:
    """Return the rounds after a time."""
    return chunk.rows(slice(int(np.searchsorted(as_stamps(chunk.times), stamp, side="right")), None))


def _insist_same_columns(forecaster: Engine, rounds: Rounds) -> None:
    """Refuse a table with other numbers of features than a model has."""
    columns = rounds.columns
    given, needed = (len(columns.features), len(columns.known)), (forecaster.n_extras, forecaster.n_known)
    if given != needed:
        there, here = (f"{counted(n - known, 'feature')}, {known} known ahead" for n, known in (given, needed))
        raise InputError(
            f"{rounds.place} is read with {there}; the model has {here}: name the same columns (--features, --known)"
        )


def _insist_same_offsets(forecaster: Engine, is_utc: bool) -> None:
    if forecaster.origin.is_utc not in (None, is_utc):
        here, there = ("times with UTC offsets", "times without")[:: 1 if is_utc else -1]
        raise InputError(f"the table has {here}, the model has learned {there}: give the same kind")


def _with_plan(chunk: Chunk, ahead: Chunk) -> Chunk:
    """Return rounds with those after them, without their values: what is known of them ahead."""
    if not len(ahead.times):
        return chunk
    n_tasks = len(chunk.tasks)  # of those after them, others may follow
    values = np.full((len(ahead.times), n_tasks), np.nan)
    times = np.concatenate([chunk.times, ahead.times])
    extras = np.concatenate([chunk.extras, ahead.extras[:, :n_tasks]])
    return Chunk(times, chunk.tasks, np.concatenate([chunk.values, values]), extras)


def _advance(forecaster: Engine, chunk: Chunk, ahead: Chunk, is_utc: bool, keep: Callable[[Forecasts], None]) -> int:
    """Learn the rounds not seen yet; keep the forecasts after the tuning period. Return the number of values.

    `ahead` is the rounds after them, of which the forecaster may know something ahead.
    """
    _insist_same_offsets(forecaster, is_utc)
    forecaster.origin = replace(forecaster.origin, is_utc=is_utc)
    position = forecaster.origin.position
    tuning_end = NEVER if position is None else position.tuning_end
    known, tuned = np.searchsorted(as_stamps(chunk.times), [forecaster.last_stamp, tuning_end], side="right").tolist()
    first = max(known, tuned)
    scored = _with_plan(chunk.rows(slice(first, None)), _rows_after(ahead, forecaster.last_stamp))
    for part, counts in ((chunk.rows(slice(known, first)), False), (scored, True)):
        made = forecaster.advance(part.times, part.values, part.tasks, part.extras, record=counts)
        if counts:
            keep(made)
    return (len(chunk.times) - known) * len(chunk.tasks)
