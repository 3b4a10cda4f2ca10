"""The page of a run: what it found, how good the forecasts of each stream are, and how to continue."""

from __future__ import annotations

from pathlib import Path

from braided.forecasting import Engine, LearnerEngine
from braided.forecasting.auto import AutoEngine
from braided.forecasting.auto.engine import ALONE, SCORED_FROM
from braided.forecasting.clock import step_in_words, time_in_words
from braided.forgetting import Exponential
from braided.kernels import Kernel
from braided.learners import Learner
from braided.learners.composed import Composed
from braided.printable import counted, printable
from braided.report.common.page import Section, write_page
from braided.report.run.auto_summary import is_scored, rules_of
from braided.report.run.pictures import pictures
from braided.report.run.summary import in_words
from braided.report.run.tables import at_the_edge, details, errors, facts, trials, tuned_until
from braided.runs.table import Run
from braided.runs.trials import SINGLE
from braided.statistics import MOST_BLOCKS, SURE

HOMES: dict[type, str] = {Exponential: "bd.", Kernel: "bd.kernels."}  # of arguments of learners
OPEN_ROWS = 30  # a longer table of streams is folded up
PYTHON_OF_AUTO = """\
import braided as bd

forecaster = bd.Forecaster.load("model.braided")
ahead = forecaster.forecast()  # of the next round: ahead.tasks, .forecast, .low, .high
# forecaster.update(times, values, streams) learns newer rounds, and forecaster.save(file) keeps them"""
COMMANDS = """\
braided forecast MODEL FILE    # learn newer rows, and forecast the next round
braided inspect MODEL          # what the model is, and how good it has been"""


def write_run_report(run: Run, folder: Path) -> Path:
    """Write `index.html`, `report.md` and `figures/` of a run into a folder, and return the path of the first."""
    forecaster = run.forecaster
    choice = forecaster.origin.choice
    tables = [errors(forecaster), *([trials(choice, forecaster.needs_positive)] if choice else [])]
    if isinstance(forecaster, AutoEngine):
        tables += details(forecaster)
    section = Section(
        "run",
        printable(run.plan["table"]),
        _summary(forecaster),
        in_words(forecaster) + (at_the_edge(choice) if choice else []),
        [table for table in tables if table.rows],
        list(pictures(run)),
        facts(forecaster)
        | {
            "Source": printable(run.plan["table"]),
            "Columns": run.plan["columns"],
            "Run": {"begun": "in one go", "continued": "continued", "finished": "finished before"}[run.how],
            "Version": f"braided {run.plan['version']}",
        },
        COMMANDS,
    )
    values = {"run": section, "reading": _reading(forecaster), "python": _python(forecaster), "open_rows": OPEN_ROWS}
    values["other"] = "What carries the forecasts" if isinstance(forecaster, AutoEngine) else "What was tried"
    return write_page(folder, "run", [section], **values)


def _summary(forecaster: Engine) -> str:
    """Say how much was forecast, from when to when."""
    rounds, streams, position = forecaster.record.rounds, len(forecaster.tasks), forecaster.origin.position
    step = step_in_words(forecaster.clock.step, forecaster.is_dated)
    said = f"{counted(streams, 'stream')}, typical step {step}"
    if isinstance(forecaster, AutoEngine) and not is_scored(forecaster):
        return f"{said}; {counted(forecaster.rounds, 'round')} learned."
    if not rounds:
        return f"{said}; nothing to forecast after {tuned_until(forecaster)}."
    since = f"after {tuned_until(forecaster)} and " * bool(position and position.tuning_rounds)
    end = time_in_words(forecaster.last_stamp, forecaster.is_dated)
    return f"{said}; {counted(rounds, 'round')} forecast, {since}up to {end}."


def _reading(forecaster: Engine) -> dict[str, str]:
    said = {"Forecast": "Made before its value, or any other of the same moment, is learned."}
    if isinstance(forecaster, AutoEngine):
        said["Forecast"] += f" Forecasts of the first {SCORED_FROM} rounds do not count."
        said |= _reading_of_auto(forecaster)
    else:
        said["Forecast"] += " Forecasts in the tuning period do not count."
    if isinstance(forecaster, LearnerEngine):
        lags = forecaster.preparation.lags
        beyond = ", and from where a stream is relative to its neighbours" * (lags.gap and not lags.level)
        said["One filter per stream"] = (
            f"{SINGLE.title} on the stream's own last changes{' and level' * lags.level}, tuned in the same period: "
            f"any further gain comes from the other streams{beyond}."
        )
    return said | {
        "Interval": f"Should hold {100 * forecaster.coverage:g} % of the values of each stream; its width adapts to "
        "the errors.",
    }


def _reading_of_auto(engine: AutoEngine) -> dict[str, str]:
    """Explain what the mixture is compared with, and when a difference is sure."""
    said = {
        "Best simple rule": f"Of {len(rules_of(engine))} rules without a model, the one with the least error in the "
        "end; nobody knew it before.",
        "One filter per stream": "Recursive least squares on the stream's own past, one of the members.",
    }
    if engine.record.has(ALONE):
        said["Without sharing"] = (
            "The same mixture for each stream alone: any further gain comes from the other streams."
        )
    return said | {
        "Sure": f"A paired test of the errors in up to {MOST_BLOCKS} stretches of time is {100 * SURE:g} % sure of the "
        "difference; else it could be chance."
    }


def _python(forecaster: Engine) -> str:
    """Return the Python that loads the model; and makes the same one from scratch, if its parts are a user's."""
    if isinstance(forecaster, AutoEngine) and not forecaster.n_extras:
        return PYTHON_OF_AUTO
    load = ["import braided as bd\n", 'old = bd.load("model.braided")  # continues with old.advance(times, values)']
    if not isinstance(forecaster, LearnerEngine):
        return "\n".join(load)
    learner, graph, ties = forecaster.learner, "old.tasks", []
    if learner.shares:
        graph = "graph"
        ties = [f"graph = bd.TaskGraph(old.graph.similarity, old.tasks, ridge={learner.graph.ridge!r})"]
    lines = [
        "from dataclasses import replace\n",
        *load,
        *ties,
        f"learner = {_call(learner, graph)}",
        f"preparation = replace(old.preparation, lags=bd.{forecaster.preparation.lags!r})",
        "new = bd.forecasting.LearnerEngine(learner, preparation)  # the same from scratch",
    ]
    return "\n".join(lines)


def _call(learner: Learner, graph: str) -> str:
    if isinstance(learner, Composed):
        inner = learner.learner.with_features(learner.n_features)
        return f"bd.{learner.features!r} | {_call(inner, graph)}"
    values = {name: getattr(learner, name) for name in learner.parameters}
    given = "".join(f", {name}={HOMES.get(type(value), '')}{value!r}" for name, value in values.items())
    return f"bd.{type(learner).__name__}({graph}, n_features={learner.n_features}{given})"
