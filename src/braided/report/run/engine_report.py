"""What the page of a run, `braided run` and `braided inspect` say of an engine, whatever forecasts.

| kind of engine           | report          | file                |
|--------------------------|-----------------|---------------------|
| a subclass of a user's   | `EngineReport`  | this one            |
| a learner, tuned or not  | `LearnerReport` | `learner_report.py` |
| Auto                     | `AutoReport`    | `auto_report.py`    |
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from braided.forecasting import Engine
from braided.forecasting.clock import NEVER, step_in_words, time_in_words
from braided.forecasting.units import LARGEST_LEVEL
from braided.graph import TaskGraph, TaskKey
from braided.methods import METHODS, Method
from braided.printable import counted, printable
from braided.report.common.figures import Line, line_of
from braided.report.common.picture import Picture
from braided.report.common.table import Table, brief, number, several
from braided.report.run.rows import Column, errors_table, signed
from braided.report.run.summary import Summary
from braided.report.run.versus import SMALLEST_GAIN, Versus, percent
from braided.runs.trials import SINGLE
from braided.validate import LARGEST_VALUE

STREAMS_SHOWN = 200  # rows of a table; of more streams, the best and the worst half as many
NAMES_IN_FACTS = 100  # in a line of the facts
NAMES_IN_SENTENCE = 5
LINKS_SHOWN = 3  # neighbours of a stream
LESS_BY_SHARING = "Less error by sharing, %"


class Rival(NamedTuple):
    """What gains are drawn over, stream by stream, with its words."""

    name: str  # for files
    title: str
    caption: str
    label: str
    versus: Versus


class EngineReport:
    """What is said of an engine that a user wrote; each other kind of engine says more, or otherwise."""

    title_of_details = "What was tried"  # the second section of the page
    sample = "sample"  # what is learned, one at a time
    without_forecast = "had no forecast"  # values
    after_breakdown = "the learner started again (stronger penalties help)"
    engine: Engine

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    @property
    def not_scored(self) -> str:
        """Which forecasts do not count."""
        return "in the tuning period"

    @cached_property
    def summary(self) -> Summary:
        """Errors per stream."""
        return Summary.of(self.engine)

    @property
    def method(self) -> Method:
        """The method; an engine made by hand goes by its name."""
        kind = METHODS["mt-wrls"] if self.engine.shares else SINGLE
        return replace(kind, title=self.engine.name, about="made by hand")

    @property
    def measured_on(self) -> str:
        """The rounds on which similarities were measured."""
        return "tuning period"

    @property
    def tuned_until(self) -> str:
        """The last time of the tuning period."""
        position = self.engine.origin.position
        return time_in_words(NEVER if position is None else position.tuning_end, self.engine.is_dated)

    # Sentences -----------------------------------------------------------------------------------------------------

    def lead(self) -> str:
        """Say how much was forecast, from when to when."""
        engine, position = self.engine, self.engine.origin.position
        if not engine.record.rounds:
            return f"{self._size()}; nothing to forecast after {self.tuned_until}."
        since = f"after {self.tuned_until} and " * bool(position and position.tuning_rounds)
        end = time_in_words(engine.last_stamp, engine.is_dated)
        return f"{self._size()}; {counted(engine.record.rounds, 'round')} scored, {since}up to {end}."

    def _size(self) -> str:
        step = step_in_words(self.engine.clock.step, self.engine.is_dated)
        return f"{counted(len(self.engine.tasks), 'stream')}, typical step {step}"

    def in_words(self) -> list[str]:
        """Return what a newcomer should know, the most important first, also where it goes against the method."""
        named = [f"{what}: {several(names, NAMES_IN_SENTENCE)}." for what, names in self._named().items() if names]
        return [*self._findings(), *self._trouble(), *named]

    def sentences_of_page(self) -> list[str]:
        """Return what the page says first."""
        return self.in_words()

    def _nothing_newer(self) -> list[str]:
        """Say that a run from a saved model found no row to forecast; nothing if it did."""
        engine, position = self.engine, self.engine.origin.position
        if position is None or position.tuning_rounds or not engine.last_stamp == position.tuning_end != NEVER:
            return []
        end = time_in_words(engine.last_stamp, engine.is_dated)
        return [f"No row is newer than the model, which has learned all up to {end}: there was nothing to forecast."]

    def _findings(self) -> list[str]:
        summary, said = self.summary, self._sharing()
        if newer := self._nothing_newer():
            return newer
        if not summary.scored:
            said = ["There was nothing to forecast after the tuning period."]
        elif summary.means["to_no_change"] > 1.0 - SMALLEST_GAIN / 100.0:
            said = [f"No better than the forecast “no change”. {self._skill()}", *said]
        else:
            said.append(self._skill())
        return said + self._intervals()

    def _sharing(self) -> list[str]:
        """Say what the model gains over one filter per stream, if there is one beside it."""
        engine, summary = self.engine, self.summary
        if "single" not in engine.contenders:
            return []
        versus = Versus.of(engine.record, "single")
        how = f"{percent(versus.gain)} error than with one filter per stream, on average"
        if abs(versus.gain) < SMALLEST_GAIN:
            verdict = "makes no difference"
        elif versus.is_sure:
            verdict = f"{'helps' if versus.gain > 0.0 else 'hurts'}: {how}"
        else:
            verdict = f"makes no clear difference ({how}, could be chance)"
        subject = "Sharing" if engine.shares else "This method, which shares nothing,"
        said = f"{subject} {verdict}; it lowers the error of {versus.n_lower:,} of {counted(versus.n_known, 'stream')}"
        if len(versus.worse):
            by = [f"{summary.tasks[place]} by {-versus.gains[place]:.1f} %" for place in versus.worse]
            said += f", and raises that of {several(by, NAMES_IN_SENTENCE)}"
        return [said + "."]

    def _skill(self) -> str:
        summary = self.summary
        own, last = (100.0 * (1.0 - summary.means[name]) for name in ("to_no_change", "to_last_change"))
        said = f"{percent(own)} error than the forecast “no change”, {percent(last)} than “the last change repeats”"
        worse = [summary.tasks[place] for place in np.flatnonzero(summary.to_no_change > 1.0 + SMALLEST_GAIN / 100.0)]
        if worse:
            said += f"; “no change” is better for {several(worse, NAMES_IN_SENTENCE)}"
        return f"{said[0].upper()}{said[1:]}."

    def _intervals(self) -> list[str]:
        """Say which share of the values the intervals contained; nothing if there was none."""
        record = self.engine.record
        known = record.intervals > 0.0
        if not known.any():
            return []
        held = 100.0 * record.covered[known] / record.intervals[known]
        by_stream = f" ({held.min():.1f} to {held.max():.1f} % by stream)" * (len(held) > 1)
        coverage = f"{100 * self.engine.coverage:g} %"
        return [f"The {coverage} intervals contained {held.mean():.1f} % of the values{by_stream}."]

    def _trouble(self) -> list[str]:
        """Say what was wrong with the data, and with the arithmetic."""
        engine, said = self.engine, []
        if engine.gaps:
            said.append(f"{counted(engine.gaps, 'gap')} longer than the typical step; no feature spans a gap.")
        if engine.irregular:
            said.append(f"Longer than typical, but not gaps: {counted(engine.irregular, 'step')}.")
        if engine.too_large:
            limit = f"beyond {LARGEST_VALUE:g}, or {LARGEST_LEVEL:g} times the stream's typical change"
            n_values = counted(engine.too_large, "value")
            said.append(f"Too large to use ({limit.replace('e+', 'e')}), and taken as missing: {n_values}.")
        said += self._unforecast()
        if engine.breakdowns:
            said.append(f"The arithmetic broke down {counted(engine.breakdowns, 'time')}; {self.after_breakdown}.")
        return said

    def _unforecast(self) -> list[str]:
        n_values = self.engine.unforecast
        share = 100.0 * n_values / max(n_values + self.engine.record.counts.sum(), 1.0)
        said = f"No forecast, as the value before was missing: {counted(n_values, 'value')} ({share:.1f} %)."
        return [said] * (n_values > 0)

    def _named(self) -> dict[str, Sequence[object]]:
        """Streams to name, under what they have in common."""
        engine = self.engine
        return {
            "Joined late": engine.latecomers,
            "No value lately": engine.silent,
            "Too few values to join": engine.waiting,
        }

    def reading(self) -> dict[str, str]:
        """Explain the terms of the page."""
        coverage = f"{100 * self.engine.coverage:g} %"
        return {
            "Forecast": "Made before its value, or any other of the same moment, is learned. "
            f"Forecasts {self.not_scored} do not count.",
            **self._baselines(),
            "Interval": f"Should hold {coverage} of the values of each stream; its width adapts to the errors.",
            **({"Quantile": "Should have a share of the values below it: its level."} if self.engine.levels else {}),
        }

    def _baselines(self) -> dict[str, str]:
        """Explain what the errors are compared with, apart from "no change"."""
        return {}

    def python(self, model: str = '"model.braided"') -> str:
        """Return the Python that loads the model, whose path is given as it is written in Python."""
        return f"import braided as bd\n\nold = bd.load({model})  # continues with old.advance(times, values)"

    # Tables and facts ----------------------------------------------------------------------------------------------

    def errors(self, most: int = STREAMS_SHOWN) -> Table:
        """Return the errors of each stream, the largest gain first, and their means; empty without any."""
        summary = self.summary
        shares, means = "single" in self.engine.contenders, summary.means
        columns = [  # the heading above, the title, and the cells, with the mean as the last
            Column("", "forecasts", [f"{count:,.0f}" for count in (*summary.counts, summary.counts.sum())]),
            Column("", "RMSE", [*(number(value, ".4g") for value in summary.rmse), ""]),
        ]
        for above, title, name in (
            ("over no change", "model", "to_no_change"),
            ("over no change", "one filter", "single_to_no_change"),
            ("over last change", "model", "to_last_change"),
        ):
            if shares or name != "single_to_no_change":
                columns.append(Column(above, title, [brief(value) for value in (*getattr(summary, name), means[name])]))
        if shares:
            gains = (*summary.gains, 100.0 * (1.0 - means["to_single"]))
            columns.append(Column("", "gain, %", [signed(value) for value in gains]))
        held = (*summary.coverage, means["coverage"])
        columns.append(Column("interval", "holds, %", [number(100.0 * value, ".1f") for value in held]))
        losses = (*summary.pinball, means["pinball"])
        columns.append(Column("interval", "loss", [brief(value) for value in losses]))
        by = summary.to_single if shares else summary.to_no_change
        ends = ("largest gain", "smallest") if shares else ("smallest error over “no change”", "largest")
        note = (
            "RMSE in the units of the values. Errors over those of two baselines: below 1 is better. "
            f"{'Gain: how much less the error is than that of one filter per stream. ' * shares}"
            "Loss: mean pinball loss of the interval's ends, where 1 is the stream's typical change. "
            "Last row: all forecasts, and means over the streams."
        )
        made = errors_table(summary.tasks, columns, by, ends, most, note)
        return made if summary.scored else replace(made, rows=())

    def by_horizon(self) -> Table:
        """Return the errors of forecasts by how many rounds ahead they were made; empty if that is 1."""
        return Table("horizons", "Errors by horizon", "synchronous", ("Rounds ahead",), ())

    def quantiles(self) -> Table:
        """Return how good the quantiles are; empty without quantiles."""
        return Table("quantiles", "Quantiles", "synchronous", ("Level",), ())

    def tables(self) -> list[Table]:
        """Return further tables of the model."""
        return [] if self.engine.graph is None else [links(self.engine.graph, self.engine.latecomers)]

    def tables_of_page(self) -> list[Table]:
        """Return the tables of the second section of the page."""
        return []

    def facts(self) -> dict[str, str]:
        """Return what the model is and what it has learned."""
        engine = self.engine
        first, last = (time_in_words(stamp, engine.is_dated) for stamp in (engine.first_stamp, engine.last_stamp))
        samples = counted(engine.samples, self.sample)
        return {
            "Source": printable(engine.origin.source),
            "Streams": several(engine.tasks, NAMES_IN_FACTS),
            **self._made_of(),
            "Typical step": step_in_words(engine.clock.step, engine.is_dated),
            "Learned": f"{counted(engine.rounds, 'round')}, {first} to {last}; {samples}",
            **self._scored(),
            "Gaps": f"{engine.gaps:,}; {counted(engine.irregular, 'other step')} longer than typical",
            "Missing values": f"{engine.absent:,} in the scored rounds"
            + f"; {counted(engine.unforecast, 'value')} {self.without_forecast}"
            + f"; {engine.too_large:,} were too large to use" * bool(engine.too_large),
            "Breakdowns": f"{engine.breakdowns:,}",
        }

    def _made_of(self) -> dict[str, str]:
        """Say what learns, from what."""
        position, choice = self.engine.origin.position, self.engine.origin.choice
        head = 0 if position is None else position.tuning_rounds
        some = f"; methods on {choice.streams:,} of the streams" if choice and choice.streams else ""
        tuned = f"the first {counted(head, 'round')}, up to {self.tuned_until}{some}"
        return {"Tuned on": tuned if head else "earlier data, not in this table", "Method": self.engine.name}

    def _scored(self) -> dict[str, str]:
        """Say which forecasts are scored, where that has not been said."""
        return {}

    # Pictures ------------------------------------------------------------------------------------------------------

    def shown_beside(self) -> list[tuple[str, str, Line]]:
        """Return the contenders whose error is drawn over time, with their titles and lines."""
        shown = [("model", self.method.title, line_of(self.method))]
        if "single" in self.engine.contenders:
            shown.append(("single", f"One filter per stream ({SINGLE.title})", line_of(SINGLE)))
        return shown

    def rivals(self) -> list[Rival]:
        """Return what gains are drawn over."""
        if "single" not in self.engine.contenders:
            return []
        caption = "How much smaller the error is than with one filter per stream, tuned in the same way."
        versus = Versus.of(self.engine.record, "single")
        return [Rival("gains", "Gain of sharing", caption, LESS_BY_SHARING, versus)] if versus.n_known else []

    def own_pictures(self) -> list[Picture]:
        """Draw what only this kind of engine has."""
        return []


def links(graph: TaskGraph, late: Iterable[TaskKey] = ()) -> Table:
    """Return which streams each one is most similar to; those that joined `late` have the average similarity."""
    rows: list[tuple[str, ...]] = []
    unmeasured = {*late}
    for task in graph.tasks[:STREAMS_SHOWN]:
        if task in unmeasured:
            rows.append((printable(task), "average, not measured"))
            continue
        measured = {other: value for other, value in graph.neighbours(task).items() if other not in unmeasured}
        nearest = sorted(measured.items(), key=lambda link: -link[1])[:LINKS_SHOWN]
        rows.append((printable(task), *(f"{printable(other)} {value:.2f}" for other, value in nearest)))
    width = max((len(row) for row in rows), default=1)
    more = len(graph.tasks) - STREAMS_SHOWN
    return Table(
        name="links",
        title="Which streams are similar",
        group="other",
        columns=("Stream", *("most similar", "then", "then")[: width - 1]),
        rows=tuple((*row, *("" for _ in range(width - len(row)))) for row in rows if width > 1),
        note="Similarity: 0 is none, 1 is the same." + f" {more:,} more streams are not shown." * (more > 0),
    )


def ties_of(graph: TaskGraph) -> str:
    """Say how many others each stream is tied to."""
    ties = graph.similarity.nnz if graph.is_sparse else np.count_nonzero(graph.similarity)
    return f"{counted(round(ties / graph.n_tasks), 'other')}, on average"
