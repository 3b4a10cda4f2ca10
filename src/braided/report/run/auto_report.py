"""The report of Auto: beside the best rule, one filter per stream, itself without sharing, and "no change".

Each comparison is of the root mean square error in a stream's own units, as a mean over the streams, and says whether a
paired test over time is sure of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from braided.forecasting.auto import AutoEngine
from braided.forecasting.auto.schedule import ALONE, ONE_FILTER, SCORED_FROM, SEASONAL
from braided.forecasting.clock import NEVER
from braided.forecasting.record import MODEL, NO_CHANGE
from braided.methods import AUTO, METHODS, Method
from braided.printable import counted, printable
from braided.report.common.figures import NEIGHBOURS, Line, line_of
from braided.report.common.picture import Picture
from braided.report.common.style import panels, styled
from braided.report.common.table import Table, brief, number, several
from braided.report.run.engine_report import (
    LESS_BY_SHARING,
    NAMES_IN_FACTS,
    NAMES_IN_SENTENCE,
    STREAMS_SHOWN,
    EngineReport,
    Rival,
    links,
    ties_of,
)
from braided.report.run.rows import Column, best_first, errors_table, mean_of, signed
from braided.report.run.versus import SMALLEST_GAIN, Versus, percent
from braided.statistics import MOST_BLOCKS, SURE
from braided.types import Floats, Ints

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CLEAR_GAIN = 2.0  # per cent: more is not called about the same, even where it could be chance
UNPLANNED_FROM = 0.02  # share of the forecasts; the last rounds of a table lack what follows them
COPIES_IN_SENTENCE = 4  # groups
CARRIERS_SHOWN = 3  # members of a stream
COLUMN_OF = {ONE_FILTER: "one filter", ALONE: "unshared"}
MEMBERS_NAMED = 8  # the others are one
MOST_HORIZONS = 8  # in a table; of more, some are shown
HORIZONS_OF_QUANTILES = 4
INTERVAL_LOSS = "Loss: mean pinball loss of the interval's ends, in the stream's typical changes; less is better. "
# From dark to light, so that neighbours in a stack differ for every eye; learners are cold and rules are warm.
COLD = ("#0b3c5d", "#1f78b4", "#6fb1de", "#00695c", "#4db6a0", "#b5d8ea", "#2e4a7d", "#8fd0c1")
WARM = ("#a63c00", "#e88a1a", "#f6c667", "#7a4a1e", "#d9a35b", "#f3dcae", "#c2571a", "#ffe9b8")
OTHERS = "#d5d5d5"
PYTHON = """\
import braided as bd

forecaster = bd.Forecaster.load(MODEL)
ahead = forecaster.forecast()  # of the next rounds: ahead.tasks, .horizons, .forecast, .low, .high
# forecaster.update(times, values, streams) learns newer rounds, and forecaster.save(file) keeps them"""


class AutoReport(EngineReport):
    """What is said of Auto, and of the members and rules that it mixes."""

    title_of_details = "What carries the forecasts"
    sample = "value"
    without_forecast = "had no earlier one"
    after_breakdown = "the affected member started again, and the others carried on"
    engine: AutoEngine

    @property
    def not_scored(self) -> str:
        """The rounds before scores, which start again if members change."""
        position = self.engine.origin.position
        if position is not None and position.tuning_end != NEVER:
            return "made before this run"
        return f"of the first {self._unscored:,} rounds"

    @property
    def _unscored(self) -> int:
        """The number of rounds before scores."""
        scored = self.engine.record.rounds
        return max(SCORED_FROM, self.engine.rounds - scored) if scored else SCORED_FROM

    @property
    def method(self) -> Method:
        """Auto."""
        return AUTO

    @property
    def measured_on(self) -> str:
        """The rounds on which everything was measured."""
        return f"first {self.engine.measured_on} rounds"

    @property
    def names(self) -> list[str]:
        """The members and rules."""
        return [] if self.engine.ensemble is None else self.engine.ensemble.names

    @property
    def rules(self) -> list[str]:
        """The rules of the record."""
        return [] if self.engine.ensemble is None else self.names[self.engine.ensemble.n_learners :]

    @cached_property
    def best_rule(self) -> str | None:
        """The rule with the least error in hindsight: mean over the streams of RMSE over that of "no change"."""
        record = self.engine.record
        none = record.rmse_of(NO_CHANGE)
        known = none > 0.0
        errors = {name: (record.rmse_of(name)[known] / none[known]).mean() for name in self.rules if known.any()}
        return min(errors, key=lambda name: errors[name], default=None)

    @property
    def copies(self) -> list[list[object]]:
        """The names of streams that are copies of each other, group by group."""
        return [[self.engine.columns[place] for place in group] for group in self.engine.copies]

    # Sentences -----------------------------------------------------------------------------------------------------

    def lead(self) -> str:
        """Say how much was forecast or, before there are scores, learned."""
        if self.summary.scored:
            return super().lead()
        return f"{self._size()}; {counted(self.engine.rounds, 'round')} learned."

    def _findings(self) -> list[str]:
        rounds = self.engine.rounds
        if newer := self._nothing_newer():
            return newer
        if self.summary.scored:
            return [*self._comparisons(), *self._intervals()]
        if rounds <= SCORED_FROM:
            return [
                f"No forecast is scored yet: scoring begins after {SCORED_FROM} rounds; learned so far: {rounds:,}."
            ]
        return [f"Nothing changed after the first {self._unscored:,} rounds, so there is no error to compare with."]

    def _trouble(self) -> list[str]:
        groups = self.copies
        listed = [equated(group) for group in groups[:COPIES_IN_SENTENCE]]
        more = len(groups) - len(listed)
        said = f"Copies of each other: {'; '.join(listed)}" + f"; and {counted(more, 'more group')}" * (more > 0)
        return [said + "."] * bool(groups) + self._unplanned() + super()._trouble()

    def _unplanned(self) -> list[str]:
        """Say how often what should be known ahead was not."""
        engine = self.engine
        if not engine.n_known:
            return []
        *missing, _ = engine.unplanned / np.maximum(engine.unplanned[-1], 1)
        ends, said = dict.fromkeys((0, engine.horizon - 1)), []
        for name, share in zip(engine.known_columns, missing[1:], strict=True):
            if share.max() >= UNPLANNED_FROM:
                shares = " and ".join(f"{100.0 * share[k]:.1f} % {counted(k + 1, 'round')} ahead" for k in ends)
                said.append(f"“{printable(name)}” was not known for {shares}; these forecasts were made without it.")
        several_known = engine.n_known > 1 and said
        return said + ["Where one column is not known, no other that is known ahead is used."] * bool(several_known)

    def _unforecast(self) -> list[str]:
        return []

    def _named(self) -> dict[str, Sequence[object]]:
        engine = self.engine
        return {
            "Joined late": engine.latecomers,
            "No value lately": engine.silent,
            "Constant so far, so the forecast is “no change”": engine.constant,
            "Too few values so far, so the forecast is “no change”": engine.waiting if engine.measured_on else (),
        }

    def _comparisons(self) -> list[str]:
        record, rule, said = self.engine.record, self.best_rule, []
        are_several = int(np.count_nonzero(record.counts)) > 1
        if rule is not None:
            versus = Versus.of(record, rule)
            said.append(_compared(versus, f"the best simple rule in hindsight, “{rule}”", are_several))
            if len(versus.worse) and are_several:
                names = several([self.engine.tasks[place] for place in versus.worse], NAMES_IN_SENTENCE)
                said[-1] += f" The rule is better for {names}."
        if record.has(ONE_FILTER):
            what = "one filter per stream" if are_several else "one filter on the stream's own past"
            said.append(_compared(Versus.of(record, ONE_FILTER), what, are_several))
        if record.has(ALONE):
            said.append(_compared(Versus.of(record, ALONE), "without sharing", are_several))
        elif self.engine.shares:
            said.append("How much sharing helps was not measured: --compare does that, but takes about twice as long.")
        elif are_several:
            said.append("Nothing is shared: each stream has its own mixture.")
        if rule != NO_CHANGE:
            what = "“no change”, the forecast that the next value equals the last"
            said.append(_compared(Versus.of(record, NO_CHANGE), what, are_several))
        return said

    def _baselines(self) -> dict[str, str]:
        """Explain what the mixture is compared with, and when a difference is sure."""
        said = {
            "Best simple rule": f"Of {len(self.rules)} rules without a model, the one with the least error over "
            "the whole run, which can't be known beforehand.",
            "One filter per stream": "Recursive least squares on the stream's own past, one of the members.",
        }
        if self.engine.record.has(ALONE):
            said["Without sharing"] = (
                "The same mixture for each stream alone: any further gain comes from the other streams."
            )
        return said | {
            "Sure": f"A paired test of the errors in up to {MOST_BLOCKS} stretches of time is {100 * SURE:g} % sure "
            "that there is a difference; otherwise it could be chance."
        }

    def python(self, model: str = '"model.braided"') -> str:
        """Return the Python that loads the model as a `Forecaster`, which takes no columns but those known ahead."""
        if self.engine.n_extras > self.engine.n_known:
            return super().python(model)
        return PYTHON.replace("MODEL", model)

    # Tables and facts ----------------------------------------------------------------------------------------------

    def errors(self, most: int = STREAMS_SHOWN) -> Table:
        """Return the errors of each stream, the largest gain over the best rule first; empty without any."""
        record, rule = self.engine.record, self.best_rule
        if not self.summary.scored or rule is None:
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
        held, loss = 100.0 * record.coverage, record.pinball
        columns.append(Column("interval", "holds, %", [number(value, ".1f") for value in (*held, mean_of(held))]))
        columns.append(Column("interval", "loss", [brief(value) for value in (*loss, mean_of(loss))]))
        note = (
            "RMSE in the units of the values. Error over that of no change: below 1 is better. Gain: how much less "
            f"the error is. Best rule: “{rule}”, chosen in hindsight. One filter: one per stream, on its own past. "
        )
        note += "Unshared: the same mixture without the other streams. " * record.has(ALONE)
        note += INTERVAL_LOSS
        some_lack = still.n_known < len(rmse)  # an error of no change to compare with
        note += "Last row: means over the streams" + " that have a number in the column" * some_lack + "."
        last = f"{still.n_known:,} of {len(rmse):,}" * some_lack
        ends = "largest gain over the best rule", "smallest"
        return errors_table(self.engine.tasks, columns, Versus.of(record, rule).ratio, ends, most, note, last)

    def tables(self) -> list[Table]:
        """Return errors by horizon and what carries the forecasts: members, similar streams, copies."""
        graph = self.engine.graph
        similar = [links(graph, self.engine.latecomers)] if graph is not None and self.engine.shares else []
        return [self.by_horizon(), self.quantiles(), self.carriers(), *similar, self.copied()]

    tables_of_page = tables

    def by_horizon(self) -> Table:
        """Return the errors of forecasts 1, 2, … rounds ahead, of some horizons if there are many; empty for one."""
        title = "Errors by horizon"
        columns = ("Rounds ahead", "no change", "no change", "seasonal", "holds, %", "loss")
        records = self.engine.records
        if len(records) == 1 or not self.summary.scored:
            return Table("horizons", title, "synchronous", columns, ())
        rows = []
        for h in shown_horizons(len(records)):
            record = records[h - 1]
            still = Versus.of(record, NO_CHANGE)
            naive = Versus.of(record, SEASONAL) if record.has(SEASONAL) else None
            held = 100.0 * mean_of(record.coverage)
            gains = [still.gain, np.nan if naive is None else naive.gain]
            cells = brief(mean_of(still.ratio)), *map(signed, gains), number(held, ".1f")
            rows.append((f"{h}", *cells, brief(mean_of(record.pinball))))
        note = (
            "Means over the streams; forecasts of later rounds are scored when their values come. Seasonal: the "
            "value as many of the shortest season before as it takes to be known when the forecast is made. "
            + INTERVAL_LOSS
        ).strip()
        groups = (("", 1), ("error over", 1), ("gain % over", 2), ("interval", 2))
        return Table("horizons", title, "synchronous", columns, tuple(rows), note, groups)

    def quantiles(self) -> Table:
        """Return the share of the values below each quantile, and its loss, for some horizons; empty without any."""
        every = shown_horizons(self.engine.horizon)
        few = np.linspace(0.0, len(every) - 1.0, min(len(every), HORIZONS_OF_QUANTILES)).round().astype(int)
        horizons = [every[place] for place in few]
        records = [self.engine.records[h - 1] for h in horizons]
        rows = []
        for place, level in enumerate(self.engine.levels if self.summary.scored else ()):
            shares = [100.0 * mean_of(record.quantile_coverage[:, place]) for record in records]
            losses = [mean_of(record.quantile_pinball[:, place]) for record in records]
            rows.append((f"{level:g}", *(number(share, ".1f") for share in shares), *map(brief, losses)))
        ahead = [f"{h} ahead" for h in horizons]
        return Table(
            name="quantiles",
            title="Quantiles",
            group="synchronous",
            columns=("Level", *ahead, *ahead),
            rows=tuple(rows),
            note="Means over the streams. Below: the share of the values below the quantile; it should be the level. "
            "Loss: mean pinball loss, where 1 is the stream's typical change.",
            groups=(("", 1), ("below, %", len(ahead)), ("loss", len(ahead))),
        )

    def carriers(self, most: int = STREAMS_SHOWN) -> Table:
        """Return the members and rules with the most weight for each stream; empty without any."""
        weights, names, constant = self.mean_weights(), self.names, {*self.engine.constant}
        rows = []
        for place, shares in zip(self.engine.places[:most], weights, strict=False):
            largest = np.argsort(-shares, kind="stable")[:CARRIERS_SHOWN]
            cells = [f"{names[k]} {100 * shares[k]:.0f} %" for k in largest if shares[k] > 0.0]
            if (stream := self.engine.columns[place]) in constant:
                cells = [f"{NO_CHANGE} 100 %"]
            rows.append((printable(stream), *cells, *[""] * (CARRIERS_SHOWN - len(cells))))
        more = len(weights) - most
        return Table(
            name="carriers",
            title="Which members carry each stream",
            group="other",
            columns=("Stream", "most weight", "then", "then"),
            rows=tuple(rows),
            note=f"Mean weight in the forecasts after round {self.engine.measured_on:,}, when units, similar streams "
            "and seasons were last measured." + f" {more:,} more streams are not shown." * (more > 0),
        )

    def mean_weights(self) -> Floats:
        """Return the mean weights (T, K) of members and rules since everything was measured; no row without any."""
        used = np.empty((0, 0)) if self.engine.ensemble is None else self.engine.ensemble.used
        total = used.sum(axis=1, keepdims=True)
        mean: Floats = used / np.where(total > 0.0, total, 1.0)
        return mean if total.any() else mean[:0]

    def copied(self) -> Table:
        """Return which streams are copies of each other."""
        head = counted(self.engine.measured_on, "round")
        return Table(
            name="copies",
            title="Streams that are copies of each other",
            group="other",
            columns=("Stream", "copies of it"),
            rows=tuple((printable(group[0]), several(group[1:], NAMES_IN_FACTS)) for group in self.copies),
            note=f"In the first {head}, their changes are the same, apart from the unit.",
        )

    def _made_of(self) -> dict[str, str]:
        """Say what is mixed, how streams share, which seasons and bounds there are, and in which units."""
        engine, auto = self.engine, self.engine.auto
        made = {"Method": "Auto, a mixture of learners and rules, weighted by their past errors"}
        if engine.ensemble is None:
            made["Members"] = "“no change” only, as there are too few rounds"
        else:
            learners, seasons = self.names[: engine.ensemble.n_learners], engine.ensemble.seasons.in_words
            measured = f"measured on the first {counted(engine.measured_on, 'round')}"
            made |= {
                "Learners": "; ".join(map(printable, learners)) or "none yet, as there are too few rounds",
                "Rules": "; ".join(self.rules),
                "Sharing": "none: each stream has its own mixture",
                "Seasons": " and ".join(seasons) if seasons else "none",
                "Units": f"each stream's typical change is 1 ({measured})",
            }
            if engine.shares:
                made["Sharing"] = f"each stream is tied to {ties_of(engine.ensemble.graph)}"
        made["Time zone"] = self._timezone()
        made["Holidays"] = f"{auto.holidays}: they count as days off, like weekends" if auto.holidays else "none given"
        bounds = {"at least": auto.low, "at most": auto.high}
        given = [f"{word} {bound:g}" for word, bound in bounds.items() if bound is not None]
        made |= {"Bounds": ", ".join(given)} if given else {}
        n_last = engine.n_extras - engine.n_known
        made |= {"Further columns": f"{n_last}, standardised; their last values"} if n_last else {}
        return made | ({"Known ahead": ", ".join(map(printable, engine.known_columns))} if engine.n_known else {})

    def _timezone(self) -> str:
        engine = self.engine
        if not engine.is_dated:
            return "none, as times are whole numbers"
        zone, is_utc = engine.auto.timezone, engine.origin.is_utc
        if zone is None:
            return "none given: seasons follow UTC" if is_utc else "none given: seasons follow the times as they are"
        return f"{zone}; times are in UTC, and converted to it" if is_utc else f"{zone}; times are taken to be local"

    def _scored(self) -> dict[str, str]:
        rounds = self.engine.record.rounds
        return {"Scored": f"the last {counted(rounds, 'round')}" if rounds else "nothing yet"}

    # Pictures ------------------------------------------------------------------------------------------------------

    def shown_beside(self) -> list[tuple[str, str, Line]]:
        """Return the contenders whose error is drawn over time, with their titles and lines."""
        rule, has = self.best_rule, self.engine.record.has
        single = line_of(METHODS["wrls"])
        shown = [(MODEL, AUTO.title, line_of(AUTO))]
        shown += [(rule, f"Best rule (“{rule}”)", line_of(METHODS["no-change"]))] if rule is not None else []
        shown += [(ONE_FILTER, "One filter per stream", single)] if has(ONE_FILTER) else []
        shown += [(ALONE, "Without sharing", single | {"linestyle": NEIGHBOURS})] if has(ALONE) else []
        return shown

    def rivals(self) -> list[Rival]:
        """Return what gains are drawn over: the best rule, and without sharing if that is known."""
        rule, record = self.best_rule, self.engine.record
        found: list[Rival] = []
        if len(best_first(self.summary.to_no_change)) < 2:
            return found
        if rule is not None:
            words = f"How much smaller the error is than that of “{rule}”, the best simple rule in hindsight."
            title, label = "Gain over the best simple rule", "Less error than the best rule, %"
            found.append(Rival("gains", title, words, label, Versus.of(record, rule)))
        if record.has(ALONE):
            words = "How much smaller the error is than that of the same mixture without sharing."
            found.append(Rival("sharing", "Gain of sharing", words, LESS_BY_SHARING, Versus.of(record, ALONE)))
        return found

    def own_pictures(self) -> list[Picture]:
        """Draw the weights of the members over time; nothing before scores begin."""
        curve, ensemble = self.engine.weights, self.engine.ensemble
        if curve is None or ensemble is None or not curve.rounds:
            return []
        ends = curve.ends
        shares = curve.sums[: len(ends)] / np.diff(ends, prepend=0)[:, None]
        named = np.argsort(-shares.mean(axis=0), kind="stable")[:MEMBERS_NAMED]
        named = np.append(named[named < ensemble.n_learners], named[named >= ensemble.n_learners])
        names = [ensemble.names[k] for k in named]
        rest = 1.0 - shares[:, named].sum(axis=1)
        n_learners, n_others = int((named < ensemble.n_learners).sum()), len(ensemble.names) - len(named)
        colours = [*COLD[:n_learners], *WARM[: len(named) - n_learners]]
        layers = [*zip(names, shares[:, named].T, colours, strict=True)]
        layers += [(f"the other {n_others}", rest, OTHERS)] if n_others else []
        last = "; ".join(f"{name}: {100 * share[-1]:.0f} %" for name, share, _ in layers)
        return [
            Picture(
                "weights",
                "The members' weights",
                "Weights of the members in the forecasts, mean over the streams. Blue and green: learners; orange and "
                "brown: rules.",
                f"Stacked areas of the weights of the members over the rounds. At the end: {last}.",
                _stacked(ends, layers),
                headline=False,
            )
        ]


def shown_horizons(longest: int) -> list[int]:
    """Return the horizons to show: all of a few, or some of many.

    >>> shown_horizons(4), shown_horizons(48)
    ([1, 2, 3, 4], [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48])
    """
    if longest <= MOST_HORIZONS:
        return list(range(1, longest + 1))
    steps = [h for power in range(longest.bit_length()) for h in (2**power, 3 * 2**power) if h < longest]
    return sorted({*steps, longest})


def _compared(versus: Versus, what: str, are_several: bool) -> str:
    """Say how much lower the error is than that of something, how sure that is, and for how many streams."""
    gain = versus.gain
    if abs(gain) < SMALLEST_GAIN:
        said = f"The same error as {what}."
    elif versus.is_sure:
        said = f"{percent(gain)} error than {what} ({100 * SURE:g} % sure)."
    else:
        said = f"About the same error as {what}: the difference ({percent(gain)}) could be chance."
        if abs(gain) >= CLEAR_GAIN:
            said = f"{percent(gain)} error than {what}, but that could be chance."
    n, known = versus.n_lower, versus.n_known
    if not are_several:
        return said
    how_many = f"all {known:,}" if n == known else f"{n:,} of {known:,}" if n else f"none of {known:,}"
    return f"{said} Less error for {how_many} streams."


def equated(names: Sequence[object]) -> str:
    """Write copies of each other, and how many more there are."""
    more = len(names) - NAMES_IN_SENTENCE
    return " = ".join(map(printable, names[:NAMES_IN_SENTENCE])) + f" and {more:,} more" * (more > 0)


@styled
def _stacked(ends: Ints, layers: list[tuple[str, Floats, str]]) -> Figure:
    """Draw weights, the first at the bottom, as steps between the ends of the bins."""
    figure, (axis,) = panels(1, each=4.8)
    x = np.repeat([0, *ends], 2)[1:-1]
    below = np.zeros(len(x))
    for name, share, colour in layers:
        above = below + np.repeat(share, 2)
        axis.fill_between(x, below, above, color=colour, linewidth=0.0, label=name)
        axis.plot(x, above, color="white", linewidth=0.5)
        below = above
    axis.set(xlim=(0, ends[-1]), ylim=(0.0, 1.0))
    axis.set_xlabel("Rounds forecast")
    axis.set_ylabel("Weight")
    axis.locator_params(axis="x", integer=True)
    handles, labels = axis.get_legend_handles_labels()
    shape = {"handlelength": 1.0, "handleheight": 1.0, "labelspacing": 0.25}
    figure.legend(handles[::-1], labels[::-1], loc="outside upper left", ncols=1, **shape)  # as they are stacked
    return figure
