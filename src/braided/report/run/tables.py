"""Tables and facts of a run or a saved model.

| table  | what                                      |
|--------|-------------------------------------------|
| errors | how good the forecasts of each stream are |
| trials | what was tried in the tuning period       |
| links  | which streams are similar                 |
"""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np

from braided.forecasting import Choice, Engine, LearnerEngine
from braided.forecasting.auto import AutoEngine
from braided.forecasting.clock import NEVER, step_in_words, time_in_words
from braided.graph import TaskGraph
from braided.learners import MTWRLS, Learner
from braided.methods import AUTO, METHODS, Method, sees_level
from braided.printable import counted, printable
from braided.report.common.table import SYMBOLS, Table, brief, number, several, value_of
from braided.report.run import auto_tables
from braided.report.run.rows import Column, errors_table, signed
from braided.report.run.summary import Summary
from braided.runs.trials import FORGETTING, SINGLE

STREAMS_SHOWN = 200  # rows of a table; of more streams, the best and the worst half as many
NAMES_IN_FACTS = 100  # in a line of the facts
LINKS_SHOWN = 3  # neighbours of a stream
OUTER = {"penalty": {1e-10, 1e10}}  # not counted as ends of the range: they switch the penalty, or learning, off
NATURAL_ENDS = {"forgetting": 1.0, "ridge": 1.0}  # no value beyond them makes sense


def errors(forecaster: Engine, most: int | None = None) -> Table:
    """Return the errors of each stream, the largest gain first, and their means; empty without any."""
    if isinstance(forecaster, AutoEngine):
        return auto_tables.errors(forecaster, most or STREAMS_SHOWN)
    summary = Summary.of(forecaster)
    shares, means = "single" in forecaster.contenders, summary.means
    columns = [  # the heading above, the title, and the cells, with the mean as the last
        Column("", "forecasts", [f"{count:,.0f}" for count in (*summary.counts, summary.counts.sum())]),
        Column("", "RMSE", [*(number(value, ".4g") for value in summary.rmse), ""]),
    ]
    for above, title, name in (
        ("error over no change", "model", "to_no_change"),
        ("error over no change", "one filter each", "single_to_no_change"),
        ("over last change", "model", "to_last_change"),
    ):
        if shares or name != "single_to_no_change":
            columns.append(Column(above, title, [brief(value) for value in (*getattr(summary, name), means[name])]))
    if shares:
        gains = (*summary.gains, 100.0 * (1.0 - means["to_single"]))
        columns.append(Column("", "gain, %", [signed(value) for value in gains]))
    held = (*summary.coverage, means["coverage"])
    columns.append(Column("", "in interval, %", [number(100.0 * value, ".1f") for value in held]))
    by = summary.to_single if shares else summary.to_no_change
    ends = ("largest gain", "smallest") if shares else ("smallest error over “no change”", "largest")
    note = (
        "RMSE in the units of the values. Errors over those of two baselines: below 1 is better. "
        f"{'Gain: how much less the error is than that of one filter per stream. ' * shares}"
        "Last row: all forecasts, and means over the streams."
    )
    made = errors_table(summary.tasks, columns, by, ends, most or STREAMS_SHOWN, note)
    return made if summary.scored else replace(made, rows=())


def trials(choice: Choice, logarithm: bool = False) -> Table:
    """Return what a search tried in the tuning period, with the choice on top; `logarithm` says what errors are of."""
    listed = [choice.best, *choice.trials, choice.single]
    shown = {json.dumps([trial.method, trial.parameters]): trial for trial in listed}.values()
    rounds = choice.best.rounds
    names = [name for name in SYMBOLS if any(name in trial.parameters for trial in shown)]
    rows = []
    for trial in shown:
        given = trial.parameters
        score = "–" if not trial.rounds else "broke" if trial.score is None else brief(trial.score)
        values = (value_of(given[name]) if name in given else "" for name in names)
        rows.append((METHODS[trial.method].title, *values, score))
    error = "error of the logarithms" if logarithm else "error"
    symbols = ", ".join(f"{SYMBOLS[name]} {name}" for name in names if SYMBOLS[name] != name)
    tried = (
        f"The best of each method, of {counted(choice.tried, 'trial')}" if choice.tried else "The parameters were given"
    )
    return Table(
        name="tried",
        title=f"Tried on the first {counted(rounds, 'round')}" if rounds else "As given",
        group="other",
        columns=("Method", *(SYMBOLS[name] for name in names), "error"),
        rows=tuple(rows),
        note=f"{tried}; in bold the choice. {symbols}; {error} over “no change”, mean over the streams."
        + " All see the level of a stream as well as its last changes." * sees_level(choice.best.parameters),
        best_first=True,
    )


def links(graph: TaskGraph) -> Table:
    """Return which streams each one is most similar to."""
    rows = []
    for task in graph.tasks[:STREAMS_SHOWN]:
        nearest = sorted(graph.neighbours(task).items(), key=lambda link: -link[1])[:LINKS_SHOWN]
        rows.append((printable(task), *(f"{printable(other)} {value:.2f}" for other, value in nearest)))
    width = max((len(row) for row in rows), default=1)
    more = len(graph.tasks) - STREAMS_SHOWN
    return Table(
        name="links",
        title="Which streams are similar",
        group="other",
        columns=("Stream", *("most similar", "then", "then")[: width - 1]),
        rows=tuple((*row, *("" for _ in range(width - len(row)))) for row in rows),
        note="Similarity: 0 is none, 1 is the same." + f" {more:,} more streams are not shown." * (more > 0),
    )


def details(engine: AutoEngine) -> list[Table]:
    """Return what carries the forecasts of Auto: members, similar streams, copies; tables without rows are left out."""
    similar = [links(engine.graph)] if engine.graph is not None and engine.shares else []
    return [table for table in (auto_tables.carriers(engine), *similar, auto_tables.copies(engine)) if table.rows]


def at_the_edge(choice: Choice) -> list[str]:
    """Say which parameters lie at an end of the range searched."""
    best, said = choice.best, []
    for name, value in best.parameters.items() if choice.tried else ():
        grids = [stage[name] for stage in METHODS[best.method].stages if name in stage]
        offered = {value for grid in grids for value in (grid or FORGETTING)} - OUTER.get(name, set())
        ends = {min(offered): "smallest", max(offered): "largest"} if len(offered) > 1 else {}
        if value in ends and value != NATURAL_ENDS.get(name):
            beyond = [value_of(far) for far in OUTER.get(name, ()) if (far < value) == (ends[value] == "smallest")]
            but = "".join(f" but {far}" for far in beyond)
            said.append(f"{name} {value_of(value)} is the {ends[value]} tried{but}")
    return [f"{', '.join(said).capitalize()}: a better one may lie beyond."] if said else []


def facts(model: Engine | Learner) -> dict[str, str]:
    """Return what a model is and what it has learned."""
    if isinstance(model, Learner):
        return {"Learner": f"{model!r}", "Streams": several(model.tasks, NAMES_IN_FACTS), "Health": _health(model)}
    if isinstance(model, AutoEngine):
        return auto_tables.facts(model)
    position, choice = model.origin.position, model.origin.choice
    head = 0 if position is None else position.tuning_rounds
    some = f"; methods on {choice.streams:,} of the streams" if choice and choice.streams else ""
    first, last = (time_in_words(stamp, model.is_dated) for stamp in (model.first_stamp, model.last_stamp))
    made = _made_of(model) if isinstance(model, LearnerEngine) else {"Method": model.name}
    return {
        "Source": printable(model.origin.source),
        "Streams": several(model.tasks, NAMES_IN_FACTS),
        "Tuned on": f"the first {counted(head, 'round')}, up to {tuned_until(model)}{some}"
        if head
        else "earlier data, not in this table",
        **made,
        "Typical step": step_in_words(model.clock.step, model.is_dated),
        "Learned": f"{counted(model.rounds, 'round')}, {first} to {last}; {counted(model.samples, 'sample')}",
        "Gaps": f"{model.gaps:,}; {counted(model.irregular, 'other step')} longer than typical",
        "Missing values": f"{model.absent:,}; {counted(model.unforecast, 'other')} had no forecast"
        + f"; {model.too_large:,} were too large to use" * bool(model.too_large),
        "Breakdowns": f"{model.breakdowns:,}",
        **({"Health": _health(model.learner)} if isinstance(model, LearnerEngine) else {}),
    }


def _made_of(model: LearnerEngine) -> dict[str, str]:
    """Say what learns, from which features, in which units."""
    method, lags = method_of(model), model.preparation.lags
    features = [f"the last {counted(lags.count, 'change')}"]
    features += ["its level"] * lags.level
    features += [f"the last {lags.neighbours} of the neighbours' mean"] * bool(lags.neighbours)
    features += ["the gap to their level"] * lags.gap + ["a constant"] * lags.bias
    extras = model.n_extras
    features += [f"{counted(extras, 'further column')}, standardised"] * bool(extras)
    scale = "each stream's typical change is 1" + ", that of its logarithm" * model.units.logarithm
    return {
        "Method": f"{method.title}: {method.about}",
        "Parameters": ", ".join(f"{name} {value}" for name, value in _parameters(model)),
        "Ties": _ties(model),
        "Features": ", ".join(features),
        "Units": f"{scale} (measured in the tuning period)",
    }


def _ties(model: LearnerEngine) -> str:
    """Say to how many others each stream is tied, and the solver in use."""
    if not model.learner.shares:
        return "none: each stream has its own weights"
    S = model.graph.similarity
    ties = (S.nnz if model.graph.is_sparse else np.count_nonzero(S)) / len(model.tasks)
    solver = f', solver "{model.learner.uses}"' if isinstance(model.learner, MTWRLS) else ""
    return f"each stream to {counted(round(ties), 'other')}, on average{solver}"


def _health(learner: Learner) -> str:
    health, said = learner.health, []
    if not np.isnan(health.largest_variance):
        size = f"{health.largest_variance:.2g} times that of the noise, {health.spread:.2g} times the smallest"
        said = [f"largest variance of a weight {size}"]
        said += [f"covariance rebuilt: {health.guarded:,}"] * bool(health.guarded)
    said += [f"{counted(health.dictionary, 'input')} kept"] * bool(health.dictionary)
    said += [f"far off, and given less weight: {counted(health.unusual, 'value')}"] * bool(health.unusual)
    return "; ".join(said) or "nothing to report"


def _parameters(forecaster: LearnerEngine) -> list[tuple[str, str]]:
    if forecaster.origin.choice is not None:
        return [(name, value_of(value)) for name, value in forecaster.origin.choice.best.parameters.items()]
    return [(name, repr(getattr(forecaster.learner, name))) for name in forecaster.learner.parameters]


def method_of(forecaster: Engine) -> Method:
    """Return the method that was chosen; a forecaster made by hand goes by its name."""
    if isinstance(forecaster, AutoEngine):
        return AUTO
    if forecaster.origin.choice is not None:
        return METHODS[forecaster.origin.choice.best.method]
    kind = METHODS["mt-wrls"] if forecaster.shares else SINGLE
    return replace(kind, title=forecaster.name, about="made by hand")


def tuned_until(forecaster: Engine) -> str:
    """Return the last time of the tuning period."""
    position = forecaster.origin.position
    return time_in_words(NEVER if position is None else position.tuning_end, forecaster.is_dated)
