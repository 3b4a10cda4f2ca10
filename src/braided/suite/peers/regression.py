"""What regressions of all streams see: lags, levels, neighbours, seasons and the calendar, each of rounds before.

For later rounds than the next, that is what is known when they are forecast, and seasons and the calendar as of the
round that is forecast.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from braided.suite.past import Past, back
from braided.types import Floats

OWN_LAGS = 9
OTHER_LAGS = 3  # of the neighbours' and of all streams' mean changes
CATEGORIES_UP_TO = 64  # streams


def features_of(past: Past) -> Floats:
    """Return the features of each row and stream (rows, T, F); the stream's number is the last, if they are few."""
    columns = list(_columns(past))
    shape = (*past.levels.shape, len(columns))
    made = np.zeros(shape, np.float32)  # what is missing is 0
    for place, column in enumerate(columns):
        made[:, :, place] = np.nan_to_num(column)
    return made


def has_category(past: Past) -> bool:
    """Whether the last feature is the stream's number, a category."""
    return len(past.panel.tasks) <= CATEGORIES_UP_TO


def _columns(past: Past) -> Iterator[Floats]:
    for column in _of_the_origin(replace(past, horizon=1)):
        yield back(column, past.horizon - 1)
    yield from _of_the_target(past)
    if has_category(past):
        yield np.arange(past.last.shape[1], dtype=np.float64)[None, :]


def _of_the_target(past: Past) -> Iterator[Floats]:
    common, h = past.mean_change.cumsum(axis=0), past.horizon
    for season in past.seasons:
        lag = past.lag_of(season)
        then = back(past.levels, lag)
        around = [back(past.levels, lag - 1) - past.last] if lag > h else []
        summed = back(common, lag) - back(common, lag + h)
        for column in (then - past.last, then - back(past.levels, lag + h), summed, *around):
            known = column.copy()
            known[: season.known_after] = np.nan
            yield known
    for moment in past.calendar.T:
        yield moment[:, None]


def _of_the_origin(past: Past) -> Iterator[Floats]:
    last, changes, levels = past.last, past.changes, past.levels
    nearby, common = past.around(changes), past.mean_change
    yield from (back(changes, lag) for lag in range(1, OWN_LAGS + 1))
    yield last
    yield from (back(nearby, lag) for lag in range(1, OTHER_LAGS + 1))
    yield back(past.around(levels), 1) - last
    yield from (back(common, lag) for lag in range(1, OTHER_LAGS + 1))
