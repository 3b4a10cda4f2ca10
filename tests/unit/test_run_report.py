"""The report of a run: what it says, what it leaves out, odd names and odd runs."""

import numpy as np
import pytest

import braided as bd
from braided.forecasting import as_stamps
from braided.report import run_pictures, run_tables, write_run_report
from braided.runs import Choice, Head, Run, Trial
from braided.runs.output import ForecastFile
from braided.runs.summary import Summary
from braided.study import METHODS

SINGLE = {"forgetting": 0.999, "penalty": 10.0}
SHARING = SINGLE | {"ridge": 0.01}
NAMES = ("<b>&", "$x_1$", "北|`*_", "a" * 200)
EVERY = {"over-time", "gains", "forecasts", "graph"}


def make_run(
    folder,
    panel=None,
    method="mt-wrls",
    parameters=None,
    head=120,
    rounds=None,
    name="wind.csv",
    suffix=".parquet",
    tried=64,
    logarithm=False,
):
    """A run over a panel, without the command and its search."""
    panel = panel or bd.streams.wind_field(seed=0, steps=400, sites=4)
    times, values = panel.times[:rounds], panel.values[:rounds]
    parameters = parameters or (SHARING if METHODS[method].shares else SINGLE)
    start = Head.of(times[:head], panel.tasks, values[:head], np.empty((head, len(panel.tasks), 0)), 4, logarithm)
    best, single = Trial(method, parameters, head if tried else 0, 0.6), Trial("wrls", SINGLE, head, 0.64)
    trials = [best, single, Trial("wrls-neighbours", SINGLE, head, np.inf)] if tried else []
    about = {
        "source": name,
        "columns": {"time": "time"},
        "choice": Choice(best, single, tuple(trials), tried).describe(),
        "run": {"head_end": int(as_stamps(times[:head])[-1]), "head_rounds": head, "parts": 0, "finished": True},
    }
    forecaster = start.forecaster(METHODS[method], parameters, SINGLE, 0.9, about)
    file = ForecastFile(folder / f"forecasts{suffix}")
    for part, record in ((slice(head), False), (slice(head, None), True)):
        made = forecaster.advance(times[part], values[part], panel.tasks, record=record)
        if record:
            file.add(made)
    path = file.finish()
    file.clear()
    return Run(
        forecaster,
        path,
        {"source": name, "columns": "long table: time 'time'", "version": bd.__version__},
        continued=False,
    )


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("small"))


def pictures_of(run):
    return {picture.name: picture for picture in run_pictures.run_pictures(run, Summary.of(run.forecaster))}


def tables_of(run):
    return {table.name: table for table in run_tables.run_tables(run.forecaster, Summary.of(run.forecaster))}


def written(run, folder):
    page = write_run_report(run, folder)
    return page.read_text("utf-8"), (folder / "report.md").read_text("utf-8")
