"""braided's own forecasters, as they are used on a table: one filter per stream, the tuned methods, and Auto."""

from __future__ import annotations

import numpy as np

from braided.forecasting import Forecasts
from braided.forecasting.auto import Auto, AutoEngine
from braided.runs import Settings, run_in_memory
from braided.suite.past import SCORED_AFTER, Past
from braided.types import Floats


def run_forecasts(past: Past, methods: tuple[str, ...] = ()) -> Floats:
    """Return the forecasts of a run that is tuned on the first fifth; without names, among the default methods."""
    settings = Settings(methods, tune=SCORED_AFTER, keep_constant=True)
    _, made = run_in_memory(past.panel, settings)
    return placed(past, made)


def auto_forecasts(past: Past, sharing: bool = True) -> Floats:
    """Return the forecasts of Auto; times of the panel are already local, so no time zone is given."""
    engine = AutoEngine(Auto(sharing=sharing, horizon=past.horizon))
    return placed(past, engine.advance(past.panel.times, past.panel.values, past.panel.tasks))


def placed(past: Past, made: Forecasts) -> Floats:
    """Return the forecasts at the horizon as a table (rounds, T), NaN where there is none."""
    table = np.full(past.panel.values.shape, np.nan)
    column = {name: place for place, name in enumerate(past.panel.tasks)}
    columns = np.array([column[str(name)] for name in made.names], np.int64)
    own = made.horizons == past.horizon
    table[np.searchsorted(past.panel.times, made.times[own]), columns[made.places[own]]] = made.forecast[own]
    return table
