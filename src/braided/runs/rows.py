"""Rows of lines as tables, and back."""

from __future__ import annotations

import numpy as np

from braided.forecasting import Forecasts, LiveRounds
from braided.forecasting.auto.engine import last_known
from braided.tables import Chunk
from braided.tables.lines import Row


def chunk_of(rounds: list[Row], n_extras: int | None = None) -> Chunk:
    """Return rounds as a chunk."""
    tasks = tuple(sorted({task for one in rounds for task in one.values}))
    place = {task: position for position, task in enumerate(tasks)}
    values = np.full((len(rounds), len(tasks)), np.nan)
    if n_extras is None:
        n_extras = len(next(iter(rounds[0].extras.values())))
    extras = np.full((*values.shape, n_extras), np.nan)
    for step, one in enumerate(rounds):
        for task, value in one.values.items():
            values[step, place[task]] = value
            extras[step, place[task]] = one.extras[task]
    times = np.array([one.time for one in rounds], np.int64)
    return Chunk(times.view("datetime64[us]") if rounds and rounds[0].is_dated else times, tasks, values, extras)


def rows_of(held: LiveRounds) -> list[Row]:
    """Return the rounds that `Live.save` saved."""
    rows = []
    for time, came, values, extras in zip(held.times.tolist(), held.came, held.values, held.extras, strict=True):
        places = np.flatnonzero(came).tolist()
        named = {held.tasks[place]: float(values[place]) for place in places}
        more = {held.tasks[place]: extras[place].tolist() for place in places}
        rows.append(Row(time, held.is_dated, held.is_utc, named, more))
    return rows


def no_change(rounds: list[Row], time: int | None, levels: tuple[float, ...]) -> Forecasts:
    """Forecast the last known values, without intervals or quantiles; nothing while the next time is not known."""
    times, tasks, table, _ = chunk_of(rounds)
    _, values = last_known(table, np.full(len(tasks), np.nan))
    there = np.flatnonzero(~np.isnan(values) & (time is not None))
    nothing = np.full(len(there), np.nan)
    stamps = np.full(len(there), time or 0).view(times.dtype)
    ahead = np.ones(len(there), np.int64)
    quantiles = np.full((len(there), len(levels)), np.nan)
    return Forecasts(stamps, there, ahead, tasks, nothing, values[there], nothing, nothing, quantiles, levels)
