"""Forecaster: the front door. Values of many streams in, forecasts of the next rounds out.

A shop chain has a few years of daily sales of each shop. The model learns all of them, and forecasts tomorrow:

>>> import numpy as np
>>> import braided as bd
>>> rng = np.random.default_rng(0)
>>> days = np.arange("2024-01-01", "2024-06-01", dtype="datetime64[D]")
>>> week = np.array([5.0, 5.0, 6.0, 6.0, 9.0, 14.0, 2.0])[np.arange(len(days)) % 7]     # from Monday on
>>> sales = np.column_stack([20.0 * week, 8.0 * week]) + rng.normal(size=(len(days), 2))     # synthetic
>>> forecaster = bd.Forecaster(bounds=(0.0, None))
>>> made = forecaster.update(days, sales, ["high street", "station"])     # each value forecast before it was learned
>>> ahead = forecaster.forecast()
>>> ahead.times[0], ahead.tasks, ahead.forecast.round(-1)
(np.datetime64('2024-06-01T00:00:00.000000'), ['high street', 'station'], array([280., 110.]))
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Self, final

import numpy as np

from braided.errors import InputError
from braided.forecasting import Engine, Forecasts, Record
from braided.forecasting.auto import Auto
from braided.graph import TaskKey, task_keys
from braided.printable import counted
from braided.runs.start import Settings, choose, fresh_auto, load_forecaster, only_auto_knows, start
from braided.runs.tuning_period import TuningPeriod
from braided.state import save
from braided.tables import Chunk, Columns
from braided.types import Floats
from braided.validate import numbers

SOURCE = "arrays"


@final
class Forecaster:
    """Forecasts the next rounds, with intervals, and learns as it goes.

    Parameters
    ----------
    method
        "auto", or the name of a method that learns (`braided methods` lists them), which is tuned on the first fifth of
        the rounds of the first update.
    horizon
        How many rounds ahead to forecast; more than 1 needs Auto.
    known
        Names of columns that are known ahead, such as prices; needs Auto. Give their values to `update` and `forecast`.
    season
        "auto", the length of a season in rounds, several lengths, or () for none.
    timezone
        The clock that seasons follow, such as "Australia/Melbourne". Times with a UTC offset are converted to it;
        times without are taken to be local times.
    holidays
        The country, or country and region, whose public holidays are days off: "AU", "AU-VIC".
    bounds
        The lowest and the highest value possible, or None.
    interval
        The share of the values that intervals should hold.
    quantiles
        Levels of quantiles to forecast as well, such as (0.1, 0.5, 0.9); needs Auto.
    sharing, compare
        Whether streams learn from each other; whether a mixture that shares nothing runs along, to compare with.
    members
        What Auto mixes, instead of its own members; `bd.Defaults()` stands for these: [bd.Defaults(), bd.Refit(…)].
    """

    def __init__(
        self,
        *,
        method: str = "auto",
        horizon: int = 1,
        known: Sequence[str] = (),
        season: float | Sequence[float] | Literal["auto"] = "auto",
        timezone: str | None = None,
        holidays: str | None = None,
        bounds: tuple[float | None, float | None] = (None, None),
        interval: float = 0.9,
        quantiles: tuple[float, ...] = (),
        sharing: bool = True,
        compare: bool = False,
        members: Sequence[Any] | None = None,
    ) -> None:
        try:
            low, high = bounds
        except (TypeError, ValueError) as error:
            raise InputError(f"bounds is {bounds!r:.80}: give the lowest and the highest value, or None") from error
        chosen = None if members is None else tuple(members)
        for member in chosen or ():
            if isinstance(member, type):
                raise InputError(f"members holds the class {member.__name__}: give a member, {member.__name__}('name')")
        auto = Auto(
            members=chosen,
            seasons=_lengths(season),
            timezone=timezone,
            holidays=holidays,
            low=low,
            high=high,
            sharing=sharing,
            compares=compare,
            horizon=horizon,
            quantiles=quantiles,
        )
        self.settings = Settings((method,), auto, coverage=interval)
        self.known = _names(known)
        if self.known and not self.settings.is_auto:
            raise only_auto_knows(self.known)
        self._engine: Engine | None = None

    @property
    def engine(self) -> Engine:
        """What forecasts; it also has the clock, the graph, and counts of gaps and breakdowns."""
        if self._engine is None:
            raise InputError("nothing is known yet: call update with past values first")
        return self._engine

    @property
    def record(self) -> Record:
        """How good the forecasts have been so far, beside those of all members and baselines."""
        return self.engine.record

    @property
    def streams(self) -> tuple[TaskKey, ...]:
        """The streams that are forecast."""
        return () if self._engine is None else self._engine.tasks

    def update(self, times: Any, values: Any, streams: Any = None, *, known: Any = None) -> Forecasts:
        """Forecast each value, then learn it, round by round; return the forecasts.

        `values` is (rounds, streams), NaN where one is missing, with a time for each round and a name for each stream;
        or all three are columns of a long table, with a row for each value, in any order within a round. `known` has a
        number for each value and each column that is known ahead: (rounds, streams, columns) or (rows, columns), or
        without the last dimension if there is one column. A round without any value is then part of the plan for
        rounds to come.
        """
        times, is_utc = _plain_times(times)
        table = numbers(values, "values")
        if streams is not None and np.size(streams) == 0:
            raise InputError("streams is empty: give the name of each column of values")
        extras = self._known(known, table.shape)
        if table.ndim == 1:
            times, table, streams, extras = _wide(times, table, streams, extras)
        names = [streams] if isinstance(streams, str) else streams
        keys = self.streams if names is None else task_keys(names, "stream")
        if not keys:
            raise InputError("streams is missing: give the name of each column of values")
        shape = np.size(times), len(keys)
        if table.shape != shape:
            raise InputError(f"values has shape {table.shape}: times and streams say {shape}")
        if self._engine is None:
            engine = self._started(times, table, keys, is_utc)
            made = engine.advance(times, table, keys, extras)
            self._engine = engine  # only now, so that a refused update leaves nothing behind
            return made
        self._insist_same_offsets(self._engine, is_utc)
        return self._engine.advance(times, table, keys, extras)

    def forecast(self, times: Any = None, known: Any = None, streams: Any = None) -> Forecasts:
        """Forecast the next rounds, up to the horizon, for every stream that had a value.

        `times` and `known` (rounds, streams, columns) are the plan for rounds to come. It is remembered; new
        values replace old ones. Where something is not known, a warning says so.
        """
        engine = self.engine
        if (times is None) != (known is None):
            raise InputError("times and known belong together: give both, or neither")
        if known is not None:
            plain, is_utc = _plain_times(times)
            self._insist_same_offsets(engine, is_utc)
            keys = self.streams if streams is None else task_keys(streams, "stream")
            engine.learn_known_ahead(plain, self._known(known, (np.size(plain), len(keys))), keys)
        if said := engine.plan_in_words():
            warnings.warn(said, stacklevel=2)
        return engine.ahead()

    @staticmethod
    def _insist_same_offsets(engine: Engine, is_utc: bool) -> None:
        if engine.origin.is_utc not in (None, is_utc):
            raise InputError("times with and without UTC offsets are mixed: give the same kind as before")

    def _known(self, known: Any, shape: tuple[int, ...]) -> Floats:
        """Return what is known ahead as an array of this shape with one more dimension, of columns."""
        if known is None:
            return np.full((*shape, len(self.known)), np.nan)
        if not self.known:
            raise InputError('known has no names: say what is known ahead, such as Forecaster(known=("price",))')
        given = numbers(known, "known")
        if given.shape == shape and len(self.known) == 1:
            given = given[..., None]
        if given.shape != (*shape, len(self.known)):
            raise InputError(
                f"known has shape {given.shape}: with {counted(len(self.known), 'name')} in Forecaster(known=), it "
                f"must have {(*shape, len(self.known))}"
            )
        return given

    def save(self, path: str | Path) -> None:
        """Write the model to a file, whole or not at all."""
        save(self.engine, path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Return the forecaster in a file, made by `save` or by `braided run`; it goes on with the same bits."""
        engine = load_forecaster(Path(path))
        columns = engine.origin.columns
        forecaster = cls(known=() if columns is None else columns.known)
        forecaster._engine = engine
        return forecaster

    def _started(self, times: Any, table: Floats, keys: tuple[TaskKey, ...], is_utc: bool) -> Engine:
        if self.settings.is_auto:
            columns = None
            if self.known:  # names for messages and files
                columns = Columns("time", "stream", "value", self.known, "long", guessed=False, known=self.known)
            engine = fresh_auto(self.settings, SOURCE, columns, None)
            engine.origin = replace(engine.origin, is_utc=is_utc)
            return engine
        n = round(self.settings.tune * len(times))
        names = tuple(map(str, keys))
        chunk = Chunk(times[:n], names, table[:n], np.empty((n, len(keys), 0)))
        period = TuningPeriod.of(chunk, keep_constant=True)
        return start(period, choose(period, self.settings), self.settings, SOURCE, None, is_utc)

    def __repr__(self) -> str:
        return (
            f"Forecaster({self._engine!r})" if self._engine is not None else f"Forecaster({self.settings.methods[0]})"
        )


def _names(known: Any) -> tuple[str, ...]:
    names = (known,) if isinstance(known, str) else tuple(known) if isinstance(known, Iterable) else (known,)
    if not all(isinstance(name, str) and name for name in names) or len({*names}) < len(names):
        raise InputError(f"known is {known!r:.80}: give the name of each column that is known ahead, once")
    return names


def _lengths(season: Any) -> tuple[float, ...] | None:
    if isinstance(season, str):
        if season != "auto":
            raise InputError(f"season is {season!r}: give 'auto', lengths in rounds, or ()")
        return None
    return tuple(season) if isinstance(season, Sequence) else (season,)


def _plain_times(times: Any) -> tuple[Any, bool]:
    """Return times as an array, and whether they have UTC offsets; then they are in UTC."""
    given = np.asarray(times)
    if given.dtype.kind == "U":
        given = np.array(list(map(_parsed, given.ravel().tolist())), object).reshape(given.shape)
    if given.dtype.kind != "O":
        return given, False
    have_offsets = [getattr(time, "tzinfo", None) is not None for time in given.flat]
    if any(have_offsets) and not all(have_offsets):
        raise InputError("times are some with and some without UTC offsets: give the same kind throughout")
    return given, any(have_offsets)


def _parsed(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise InputError(f"times holds {text!r}: give ISO 8601 dates, such as 2024-05-31T10:00") from error


def _wide(times: Any, values: Floats, streams: Any, extras: Floats) -> tuple[Any, Floats, Any, Floats]:
    """Return long columns as rounds; a single stream is a column already."""
    if streams is None or isinstance(streams, str) or len(streams) == 1 != len(values):
        return times, values[:, None], streams, extras[:, None]
    names, places = np.unique(np.asarray(streams), return_inverse=True)
    if len(times) != len(values) or len(places) != len(values):
        raise InputError(f"times, values and streams have {len(times)}, {len(values)} and {len(places)} rows")
    rounds, rows = np.unique(times, return_inverse=True)
    table = np.full((len(rounds), len(names)), np.nan)
    twice = np.bincount(rows * len(names) + places, minlength=table.size).max(initial=0) > 1
    if twice:
        place = int(np.argmax(np.bincount(rows * len(names) + places)))
        when, who = rounds[place // len(names)], names.tolist()[place % len(names)]
        raise InputError(f"stream {who!r} has several values at {when}: give each once")
    table[rows, places] = values
    more = np.full((*table.shape, extras.shape[1]), np.nan)
    more[rows, places] = extras
    return rounds, table, names.tolist(), more
