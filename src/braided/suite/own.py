"""braided's own forecasters, as they are used on a table: one filter per stream, today's tuned run, and Auto."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import braided
from braided.errors import InputError
from braided.forecasting import Forecasts
from braided.runs import Settings, run_in_memory
from braided.suite.past import SCORED_AFTER, Past
from braided.types import Floats

NOT_HERE = "this version has no Auto"


def run_forecasts(past: Past, methods: tuple[str, ...] = ()) -> Floats:
    """Return the forecasts of a run that is tuned on the first fifth; without names, among the default methods."""
    settings = Settings(methods, tune=SCORED_AFTER, keep_constant=True)
    _, made = run_in_memory(past.panel, settings)
    return placed(past, made)


def auto_forecasts(past: Past, sharing: bool = True, forecaster: Callable[..., Any] | None = None) -> Floats:
    """Return the forecasts of Auto; it is given the panel in the clock of its place, so no time zone.

    `forecaster` makes it, `bd.Forecaster` unless given.
    """
    make = forecaster or getattr(braided, "Forecaster", None)
    if make is None:
        raise InputError(NOT_HERE)
    auto = make(method="auto", season="auto", timezone=None, sharing=sharing)
    return placed(past, auto.update(past.panel.times, past.panel.values, past.panel.tasks))


def placed(past: Past, made: Forecasts) -> Floats:
    """Return forecasts as a table (rounds, T), NaN where there is none."""
    table = np.full(past.panel.values.shape, np.nan)
    column = {name: place for place, name in enumerate(past.panel.tasks)}
    columns = np.array([column[str(name)] for name in made.names], np.int64)
    table[np.searchsorted(past.panel.times, made.times), columns[made.places]] = made.forecast
    return table
