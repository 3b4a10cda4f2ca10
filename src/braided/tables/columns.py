"""Which columns of a table hold times, streams and values: named, or guessed from their names and first rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from braided.errors import InputError
from braided.tables.batches import Source
from braided.tables.cells import is_date, is_number, listed
from braided.validate import insist_kinds

GUESSES = {
    "time": ("timestamp", "time", "datetime", "date_time", "date", "ds", "ts", "month", "quarter", "week", "year"),
    "task": (
        *("site", "task", "stream", "station", "state", "turbine", "meter", "sensor", "series", "unique_id"),
        *("series_id", "item_id", "location", "store", "shop", "region", "country", "county", "city", "plant"),
        *("device", "ticker", "id", "name"),
    ),
    "value": ("value", "y", "target", "load"),
}
NO_VALUES = {"", "lat", "lon", "latitude", "longitude", "height", "altitude", *GUESSES["time"], *GUESSES["task"]}
ADVICE = {"time": "timestamp or time or date or year", "task": "site or stream or station or id", "value": "value"}
BY_NAME = "name the column that tells the streams apart (--stream, or task= in Python)"


class Columns(NamedTuple):
    """The columns of a table that are read: of a long one, or of a wide one with a column per stream.

    >>> Columns("time", "site", "wind", ("gust",), "long", True).describe()
    "long table: time 'time', stream 'site', value 'wind', feature 'gust' (guessed)"
    >>> Columns("time", None, "", (), "wide", False, ("north", "south")).describe()
    "wide table: time 'time', a column for each of 2 streams"
    """

    time: str
    task: str | None  # None in a wide table
    value: str  # "" in a wide table
    features: tuple[str, ...]
    form: Literal["long", "wide"]
    guessed: bool  # at least one of them
    tasks: tuple[str, ...] = ()  # the streams of a wide table
    known: tuple[str, ...] = ()  # the last of the features: those that are known ahead

    @classmethod
    def restore(cls, saved: Mapping[str, Any]) -> Columns:
        """Return the columns that `_asdict` described; `saved` may come from anywhere."""
        columns = cls(**saved)
        insist_kinds(columns, time=str, value=str, task=str | None, features=tuple, tasks=tuple, known=tuple)
        if not all(isinstance(name, str) for name in (*columns.features, *columns.tasks)):
            raise InputError("the columns of a table are not names")
        if columns.known != columns.features[len(columns.features) - len(columns.known) :]:
            raise InputError("the columns that are known ahead are not the last of the features")
        return columns

    @property
    def known_last(self) -> tuple[str, ...]:
        """The other features, of which the last known values are used."""
        return self.features[: len(self.features) - len(self.known)]

    def describe(self) -> str:
        """Describe them in a sentence."""
        rest = f"a column for each of {len(self.tasks)} streams"
        if len(self.tasks) == 1:
            rest = f"one stream, {self.tasks[0]!r}"
        if self.form == "long":
            rest = f"stream {self.task!r}, value {self.value!r}"
        if last := self.known_last:
            rest += f", feature{'s' * (len(last) > 1)} {', '.join(map(repr, last))}"
        if self.known:
            rest += f", known ahead {', '.join(map(repr, self.known))}"
        return f"{self.form} table: time {self.time!r}, {rest}{' (guessed)' * self.guessed}"


def choose(
    source: Source,
    time: str | None,
    task: str | None,
    value: str | None,
    features: Sequence[str] = (),
    known: Sequence[str] = (),
) -> Columns:
    """Return the columns that are named, and guess the others."""
    for name in known:
        if name in features:
            raise InputError(f"--known and --features (known=, features= in Python) both have {name!r}: name it once")
    for role, given in (("features", features), ("known", known)):
        for name in given:
            if name not in source.names or given.count(name) > 1:
                fault = "is named twice" if name in source.names else f"is no column: there are {listed(source.names)}"
                raise InputError(f"--{role} ({role}= in Python) has {name!r}, which {fault}")
    last, features = features, (*features, *known)
    names = source.names
    counts = Counter(names)
    sample = source.sample([name for name in names if counts[name] == 1])
    guessed = time is None or task is None or value is None
    is_task_guessed = task is None
    named = {time, task, value, *features}

    def fitting(role: str, name: str | None) -> list[str]:
        """The columns with the name given, or with the likeliest name."""
        if name is not None:
            return [own for own in names if own == name]
        matches = ([own for own in names if own.lower() == guess and own not in named] for guess in GUESSES[role])
        return next(filter(None, matches), [])

    def one(role: str, name: str | None, fits: list[str]) -> str:
        if len(fits) == 1:
            return fits[0]
        word = "stream" if role == "task" else role
        option = f"--{word}, or {role}= in Python"
        what, remedy = f"column {name!r}", f"give another name ({option})"
        if name is None:
            what = f"{word} column"
            remedy = f"call it {ADVICE[role]}, or give its name ({option})"
        if not fits:
            raise InputError(f"{source.place} has no {what}; its columns are {listed(names)}: {remedy}")
        if role == "value" and name is None and is_task_guessed:
            remedy += f"; or, if each of them is a stream, remove the column {tasks[0]!r}"
        raise InputError(f"{source.place} has {len(fits)} columns that may be the {what}, {listed(fits)}: {remedy}")

    times, tasks = fitting("time", time), fitting("task", task)
    others = [own for own in names if own not in times and own not in named and own.lower() not in NO_VALUES]
    series = [own for own in others if own not in sample or is_number(sample[own])]
    if time is None and not times and "" in sample:  # an index without a name: dates, or years beside values only
        are_values = not tasks and 1 < len(names) == len(series) + 1
        are_values = are_values and not any(own in sample and is_date(sample[own]) for own in series)
        times = [""] * (is_date(sample[""]) or are_values)
    if time is None and not times:  # by what they hold: the only one with dates
        dates = [own for own in sample if own and own not in named and is_date(sample[own])]
        times = dates if len(dates) == 1 else []
        others = [own for own in others if own not in times]
        series = [own for own in series if own not in times]
    time = one("time", time, times)
    if task is None and value is None and len(tasks) == 1 and _is_series(sample, time, tasks[0]):
        series, tasks = [*series, *tasks], []
    is_one = len(names) == 2 and (len(series) == 1 or value in names)  # the only stream has its column's name
    if is_one and value is not None:
        series = [value]
    if task is None and not tasks and (is_one or len(series) > 1 or value is not None):  # a wide table
        if value is not None and not is_one:
            raise InputError(
                f"{source.place} has no stream column, and --value (value= in Python) names one column, {value!r}: "
                f"{BY_NAME}, or leave the value out to read one column per stream"
            )
        if features:
            option = "--features (features= in Python)" if last else "--known (known= in Python)"
            raise InputError(
                f"{option} names columns of a long table, {listed(features)}, and "
                f"{source.place} is wide, a column per stream: {BY_NAME}, or leave them out"
            )
        for own in series:
            one("value", own, [own] * counts[own])
        return Columns(time, None, "", (), "wide", guessed, tuple(sorted(series)))
    task = one("task", task, tasks)
    values = fitting("value", value)
    if not values and value is None:
        values = [own for own in others if own != task]
        if 1 < len(values) == len(set(values)):  # a single one is it, and text in it will be reported with its line
            values = [own for own in values if own in series]
    value = one("value", value, values)
    for name in features:
        role = "known" if name in known else "features"
        one(role, name, fitting(role, name))
        if name in (time, task, value):
            raise InputError(
                f"--{role} ({role}= in Python) has {name!r}, the time, stream or value itself: leave it out"
            )
    return Columns(time, task, value, tuple(features), "long", guessed, known=tuple(known))


def _is_series(sample: Mapping[str, Any], time: str, task: str) -> bool:
    """Whether a column that is called like streams holds values: as ID, of Idaho, in a table of states.

    Then every row has a time of its own, and most have a value of their own.
    """
    if time not in sample or task not in sample:
        return False
    if str(sample[task].type).startswith("dictionary") or not is_number(sample[task]):
        return False
    times, values = len(sample[time].unique()), len(sample[task].unique())
    return times == len(sample[time]) > 1 and 2 * values > times
