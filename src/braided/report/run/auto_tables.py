"""Tables and facts of a run or a saved model of Auto.

| table    | what                                                                     |
|----------|--------------------------------------------------------------------------|
| errors   | how good the forecasts of each stream are                                |
| carriers | which members carry each stream                                          |
| copies   | which streams are copies of each other                                   |
"""

from __future__ import annotations

import numpy as np

from braided.forecasting.auto import AutoEngine
from braided.forecasting.auto.engine import ALONE, ONE_FILTER
from braided.forecasting.clock import step_in_words, time_in_words
from braided.forecasting.record import MODEL, NO_CHANGE
from braided.printable import counted, printable
from braided.report.common.table import Table, brief, number, several
from braided.report.run.auto_summary import best_rule, copies_of, is_scored, rules_of
from braided.report.run.rows import Column, errors_table, mean_of, signed
from braided.report.run.versus import Versus
from braided.types import Floats

STREAMS_SHOWN = 200  # rows of a table
CARRIERS_SHOWN = 3  # members of a stream
NAMES_IN_FACTS = 100
COLUMN_OF = {ONE_FILTER: "one filter", ALONE: "unshared"}


def errors(engine: AutoEngine, most: int = STREAMS_SHOWN) -> Table:
    """Return the errors of each stream, the largest gain over the best rule first; empty without any."""
    record, rule = engine.record, best_rule(engine)
    if not is_scored(engine) or rule is None:
        return Table("streams", "Errors by stream", "synchronous", ("Stream",), ())
    still = Versus.of(record, NO_CHANGE)
    rmse = record.rmse_of(MODEL) * record.scale
    columns = [
        Column("", "RMSE", [*(number(value, ".4g") for value in rmse), ""]),
        Column("error over", "no change", [brief(value) for value in (*still.ratio, mean_of(still.ratio))]),
    ]
    rivals = {rule: "best rule"} | {name: title for name, title in COLUMN_OF.items() if record.has(name)}
    for name, title in rivals.items():
        versus = Versus.of(record, name)
        columns.append(Column("gain % over", title, [signed(gain) for gain in (*versus.gains, versus.gain)]))
    held = np.full(len(rmse), np.nan)
    np.divide(100.0 * record.covered, record.intervals, out=held, where=record.intervals > 0.0)
    columns.append(Column("interval", "holds, %", [number(value, ".1f") for value in (*held, mean_of(held))]))
    note = (
        "RMSE in the units of the values; over that of no change, below 1 is better. Gain: how much less the error is. "
        f"Best rule: “{rule}”, chosen in hindsight. One filter: one per stream, on its own past. "
    )
    note += "Unshared: the same mixture without the other streams. " * record.has(ALONE)
    note += "Last row: means over the streams."
    ends = "largest gain over the best rule", "smallest"
    return errors_table(engine.tasks, columns, Versus.of(record, rule).ratio, ends, most, note)


def carriers(engine: AutoEngine, most: int = STREAMS_SHOWN) -> Table:
    """Return the members and rules with the most weight for each stream; empty without any."""
    weights, names = mean_weights(engine), [] if engine.ensemble is None else engine.ensemble.names
    rows = []
    for place, shares in zip(engine.places[:most], weights, strict=False):
        largest = np.argsort(-shares, kind="stable")[:CARRIERS_SHOWN]
        cells = [f"{names[k]} {100 * shares[k]:.0f} %" for k in largest if shares[k] > 0.0]
        rows.append((printable(engine.columns[place]), *cells, *[""] * (CARRIERS_SHOWN - len(cells))))
    more = len(weights) - most
    return Table(
        name="carriers",
        title="Which members carry each stream",
        group="other",
        columns=("Stream", "most weight", "then", "then"),
        rows=tuple(rows),
        note=f"Mean weight in the forecasts after round {engine.measured_on:,}, when everything was measured."
        + f" {more:,} more streams are not shown." * (more > 0),
    )


def mean_weights(engine: AutoEngine) -> Floats:
    """Return the mean weights (T, K) of members and rules since everything was measured; no row where there is none."""
    if engine.ensemble is None:
        return np.empty((0, 0))
    used = engine.ensemble.used
    total = used.sum(axis=1, keepdims=True)
    if not total.any():
        return np.empty((0, used.shape[1]))
    mean: Floats = used / np.where(total > 0.0, total, 1.0)
    return mean


def copies(engine: AutoEngine) -> Table:
    """Return which streams are copies of each other."""
    groups = copies_of(engine)
    return Table(
        name="copies",
        title="Streams that are copies of each other",
        group="other",
        columns=("Stream", "copies of it"),
        rows=tuple((printable(group[0]), several(group[1:], NAMES_IN_FACTS)) for group in groups),
        note=f"On the first {counted(engine.measured_on, 'round')}, their changes are the same, apart from the unit.",
    )


def facts(engine: AutoEngine) -> dict[str, str]:
    """Return what the model is and what it has learned."""
    auto, first, last = (
        engine.auto,
        *(time_in_words(one, engine.is_dated) for one in (engine.first_stamp, engine.last_stamp)),
    )
    bounds = [
        f"{word} {bound:g}" for word, bound in (("at least", auto.low), ("at most", auto.high)) if bound is not None
    ]
    return {
        "Source": printable(engine.origin.source),
        "Streams": several(engine.tasks, NAMES_IN_FACTS),
        "Method": "Auto, a mixture of learners and rules, weighted by their past errors",
        **_made_of(engine),
        "Time zone": _timezone(engine),
        "Holidays": f"{auto.holidays}: days off, like weekends" if auto.holidays else "none given",
        **({"Bounds": ", ".join(bounds)} if bounds else {}),
        **({"Further columns": f"{engine.n_extras}, standardised"} if engine.n_extras else {}),
        "Typical step": step_in_words(engine.clock.step, engine.is_dated),
        "Learned": f"{counted(engine.rounds, 'round')}, {first} to {last}; {counted(engine.samples, 'value')}",
        "Scored": f"the last {counted(engine.record.rounds, 'round')}" if engine.record.rounds else "nothing yet",
        "Gaps": f"{engine.gaps:,}; {counted(engine.irregular, 'other step')} longer than typical",
        "Missing values": f"{engine.absent:,}; {counted(engine.unforecast, 'other')} had no value before"
        f"; {engine.too_large:,} were too large to use",
        "Breakdowns": f"{engine.breakdowns:,}",
    }


def _made_of(engine: AutoEngine) -> dict[str, str]:
    """Say what is mixed, how streams share, which seasons there are, and in which units."""
    if engine.ensemble is None:
        return {"Members": "“no change” only, as there are too few rounds"}
    learners, seasons = engine.ensemble.names[: engine.ensemble.n_learners], engine.ensemble.seasons.in_words
    return {
        "Learners": "; ".join(map(printable, learners)) or "none yet, as there are too few rounds",
        "Rules": "; ".join(rules_of(engine)),
        "Sharing": _sharing(engine),
        "Seasons": " and ".join(seasons) if seasons else "none",
        "Units": f"each stream's typical change is 1 (measured on the first {counted(engine.measured_on, 'round')})",
    }


def _sharing(engine: AutoEngine) -> str:
    graph = engine.graph
    if not engine.shares or graph is None:
        return "none: each stream has a mixture of its own"
    links = graph.similarity.nnz if graph.is_sparse else np.count_nonzero(graph.similarity)
    return f"each stream is tied to {counted(round(links / graph.n_tasks), 'other')}, on average"


def _timezone(engine: AutoEngine) -> str:
    if not engine.is_dated:
        return "none, as times are whole numbers"
    zone, is_utc = engine.auto.timezone, engine.origin.is_utc
    if zone is None:
        return "none given: seasons follow UTC" if is_utc else "none given: seasons follow the times as they are"
    return f"{zone}; times are in UTC, and converted to it" if is_utc else f"{zone}; times are taken to be of it"
