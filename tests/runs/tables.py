"""Small tables of streams, synthetic, for the tests of runs."""

import json

import numpy as np

from braided.datasets import wind_field
from braided.runs import Settings
from braided.runs.trials import DEFAULT_METHODS
from braided.tables import write_table
from braided.tables.panel import Panel
from tests.auto import FEW

LEARNERS = ",".join(method.name for method in DEFAULT_METHODS)  # as `--method` takes them
GIVEN = {
    "parameters": {"forgetting": 0.99, "penalty": 10.0, "ridge": 0.1},
    "single": {"forgetting": 1.0, "penalty": 10.0},
}
QUICK = Settings(("mt-wrls-neighbours",), lags=3, **GIVEN)  # without a search
KINDS = {"learner": QUICK, "auto": Settings(auto=FEW)}  # for what holds for all runs


def field(seed=3, steps=400, sites=4, missing=0.0):
    """A synthetic wind field, perhaps with holes."""
    panel = wind_field(seed=seed, steps=steps, sites=sites)
    values = panel.values.copy()
    values[np.random.default_rng(seed).uniform(size=values.shape) < missing] = np.nan
    return Panel(panel.name, panel.tasks, panel.times, values, panel.source, synthetic=True)


def lines_of(panel, form="json"):
    """The same as lines, a value each."""
    rows = [
        (str(moment), task, float(value))
        for moment, values in zip(panel.times, panel.values, strict=True)
        for task, value in zip(panel.tasks, values, strict=True)
        if not np.isnan(value)
    ]
    if form == "csv":
        return ["time,site,wind", *(f"{moment},{task},{value!r}" for moment, task, value in rows)]
    return [json.dumps(dict(zip(("time", "site", "wind"), row, strict=True))) for row in rows]


def written(path, **form):
    """The same in a file."""
    write_table(field(**form), path)
    return path
