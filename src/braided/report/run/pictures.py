"""Pictures of a run: error over time, gain of sharing by stream, the last forecasts, the graph."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from braided.forecasting import Engine
from braided.forecasting.clock import DAY, as_stamps, time_in_words
from braided.printable import counted
from braided.report.common.figures import Line, error_lines, line_of, similarities
from braided.report.common.picture import Picture
from braided.report.common.style import ACTUAL, COLOURS, GREY, INK, named_rows, panels, styled
from braided.report.common.table import brief, short
from braided.report.run.engine_report import EngineReport
from braided.report.run.kinds import report_of
from braided.report.run.rows import best_first, signed
from braided.report.run.summary import Summary
from braided.runs.output import tail
from braided.runs.table import Run
from braided.types import Floats, Ints
from braided.validate import LARGEST_VALUE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMED_GAINS = 40  # streams to show by name; for more, a sorted curve
ROUNDS_DRAWN = 100  # rounds of the last forecasts
LARGEST_ON_AXIS = 2**52  # an axis can't distinguish larger numbers
DATES_ON_AXIS = as_stamps(np.array(["0001-01-01", "10000-01-01"], "datetime64[D]")).tolist()  # those between
LEAST_BEFORE = 20  # rounds before the next ones
STREAMS_IN_GRAPH = 400  # more are too many for a picture
HELPED, HURT = COLOURS["multi-task"], COLOURS["single-task"]


def pictures(run: Run) -> Iterator[Picture]:
    """Draw all figures that make sense for a run, each with its words."""
    forecaster, report = run.forecaster, report_of(run.forecaster)
    summary = report.summary
    streams = counted(len(summary.tasks), "stream")
    if summary.scored:
        curves = _curves(report)
        ends = ", ".join(f"{words} {brief(ratio[-1])}" for _, ratio, words, _ in curves)
        yield Picture(
            "over-time",
            "Error over time",
            "From the first forecast that counts to each round, over all streams, in units of their typical change. "
            "Below 1 is better than forecasting no change.",
            f"Lines of the error up to each round, relative to no change. At the end: {ends}.",
            error_lines(curves, "Rounds forecast"),
        )
    for rival in report.rivals():
        order = best_first(rival.versus.ratio)
        gains = rival.versus.gains[order]
        yield Picture(
            rival.name,
            rival.title,
            f"{rival.caption} Blue: less error; orange: more."
            + " Far larger losses are cut." * bool(gains[-1] < -_room(gains)),
            f"Gains of {counted(len(order), 'stream')}, sorted: from {signed(gains[0])} to {signed(gains[-1])} %.",
            _gains(gains, [str(summary.tasks[place]) for place in order], rival.label),
        )
    shown = _latest(run.forecasts, forecaster, summary) if run.forecasts is not None and summary.scored else []
    if shown:
        listed = ", ".join(f"{short(one.name, 40)} ({brief(one.error)})" for one in shown)
        yield Picture(
            "forecasts",
            "The last forecasts",
            f"Streams with recent values, from the smallest to the largest error over that of “no change”: {listed}. "
            f"Band: the interval that should hold {100 * forecaster.coverage:g} % of the values.",
            f"Line plots of the last values of {listed}, beside their forecasts and intervals.",
            _forecasts(shown, forecaster, line_of(report.method)),
        )
    if shown and forecaster.horizon > 1:
        listed = ", ".join(short(one.name, 40) for one in shown)
        yield Picture(
            "ahead",
            f"The next {forecaster.horizon} rounds",
            "The same streams, from the last round on. Band: the interval that should hold "
            f"{100 * forecaster.coverage:g} % of the values, round by round."
            + " Darker: between the lowest and the highest quantile, the next two, and so on."
            * (len(forecaster.levels) > 1),
            f"Line plots of the last values of {listed}, followed by forecasts and their intervals.",
            _forecasts(_continued(shown, forecaster), forecaster, line_of(report.method)),
        )
    yield from report.own_pictures()
    graph = forecaster.graph
    if graph is not None and 1 < len(summary.tasks) <= STREAMS_IN_GRAPH:
        yield Picture(
            "graph",
            "How similar the streams are",
            f"Spearman correlation of the changes in the {report.measured_on}; negative ones count as 0."
            + " Each stream is tied to the most similar ones." * graph.is_sparse
            + " The chosen method does not use it." * (not forecaster.shares),
            f"Heat map of the similarities of {streams}.",
            similarities(graph.similarity.toarray() if graph.is_sparse else graph.similarity, [*map(str, graph.tasks)]),
        )


def _curves(report: EngineReport) -> list[tuple[Ints, Floats, str, Line]]:
    """The errors so far of the model and of what it is compared with."""
    record = report.engine.record
    rounds = record.over_time.ends
    sums = {name: record.curve_of(name)[: len(rounds)].cumsum() for name in record.contenders}
    no_change = sums["no change"]
    known = no_change > 0.0
    shown = report.shown_beside()
    return [(rounds[known], np.sqrt(sums[name][known] / no_change[known]), *words) for name, *words in shown]


def _room(gains: Floats) -> float:
    """Return the largest loss to show: a far larger one would hide all others."""
    return max(2.0 * float(gains[0]), 4.0 * float(np.median(np.abs(gains))), 0.1)


@styled
def _gains(gains: Floats, names: list[str], label: str) -> Figure:
    """Draw gains in per cent, the largest first."""
    room = _room(gains)
    shown = np.maximum(gains, -room)
    ends = 1.05 * min(float(shown[-1]), -0.1), 1.05 * max(float(shown[0]), 0.1)  # less is rounding
    if len(gains) > NAMED_GAINS:
        figure, (axis,) = panels(1, each=3.3)
        for colour, part in ((HELPED, shown.clip(min=0.0)), (HURT, shown.clip(max=0.0))):
            axis.fill_between(np.arange(len(gains)) + 0.5, part, step="mid", color=colour, linewidth=0.0)
        axis.axhline(0.0, color=INK, linewidth=1.0)
        axis.set(xlim=(0.0, len(gains)), ylim=ends)
        axis.grid(axis="y")
        axis.set_xlabel("Streams, the largest gain first")
        axis.set_ylabel(label)
        if gains[-1] < -room:
            beside = float((gains >= -room).sum()) - 0.01 * len(gains)
            axis.text(beside, -room, f"{signed(gains[-1])} ▾", ha="right", va="bottom", fontsize=9, color=GREY)
        return figure
    figure, axis = named_rows([short(name, 16) for name in names], above=0.1)
    axis.barh(range(len(gains)), shown, height=0.62, color=np.where(gains >= 0.0, HELPED, HURT))
    axis.axvline(0.0, color=INK, linewidth=1.0)
    for row, gain in enumerate(gains):
        text = signed(gain) + (" ◂" if gain < -room else "")
        axis.text(1.02, row, text, transform=axis.get_yaxis_transform(), va="center", fontsize=10.5)
    axis.set_xlim(*ends)
    axis.locator_params(axis="x", nbins=5)
    axis.set_xlabel(label)
    return figure


class _Stretch(NamedTuple):
    """The last forecasts of a stream, NaN where there is none."""

    name: str
    error: float  # over that of "no change"
    times: Any  # (n,)
    columns: Floats  # (4, n): actual, forecast, low, high; of the next rounds also the quantiles


def _latest(path: Path, forecaster: Engine, summary: Summary) -> list[_Stretch]:
    """Read the last forecasts of the best, the middle and the worst stream among those that have some."""
    every = tail(path, ROUNDS_DRAWN * len(summary.tasks) * forecaster.horizon)
    table = {name: column[every["horizon"] == 1] for name, column in every.items()}
    stamps, names = as_stamps(table["time"]), np.array([*map(str, table["stream"])])
    clock = np.unique(stamps)[-ROUNDS_DRAWN:]
    gaps = forecaster.clock.gaps(clock, int(clock[0]))
    times = np.insert(clock, gaps, clock[gaps])
    there = set(names[stamps >= clock[0]]) if len(clock) > 1 else set()
    order = [place for place in best_first(summary.to_no_change) if str(summary.tasks[place]) in there]
    places = dict.fromkeys([order[0], order[len(order) // 2], order[-1]]) if order else {}
    stretches = []
    for place in places:
        name = str(summary.tasks[place])
        own = (names == name) & (stamps >= clock[0])
        columns = np.full((4, len(clock)), np.nan)
        for row, column in enumerate(("actual", "forecast", "low", "high")):
            columns[row, np.searchsorted(clock, stamps[own])] = np.asarray(table[column], dtype=np.float64)[own]
        columns = np.insert(columns, gaps, np.nan, axis=1)
        stretches.append(_Stretch(name, float(summary.to_no_change[place]), times, columns))
    return stretches


def _continued(stretches: list[_Stretch], forecaster: Engine) -> list[_Stretch]:
    """Return the ends of the stretches, continued by forecasts of the next rounds."""
    ahead = forecaster.ahead()
    names, kept = np.array([*map(str, ahead.tasks)]), max(2 * forecaster.horizon, LEAST_BEFORE)
    made = np.stack([np.full(len(names), np.nan), ahead.forecast, ahead.low, ahead.high, *ahead.quantiles.T])
    continued = []
    for one in stretches:
        own = names == one.name
        before = np.full((len(made), len(one.times)), np.nan)
        before[0] = one.columns[0]
        known = np.flatnonzero(~np.isnan(before[0]))
        before[1:, known[-1:]] = before[0, known[-1:]]  # where the forecasts start from
        times = np.concatenate([one.times[-kept:], as_stamps(ahead.times[own])])
        continued.append(one._replace(times=times, columns=np.hstack([before[:, -kept:], made[:, own]])))
    return continued


def _drawable(times: Ints, is_dated: bool) -> tuple[Any, str]:
    """Return times that an axis can show, and its label; dates need none if their years have four digits."""
    if is_dated and DATES_ON_AXIS[0] <= times[0] and times[-1] < DATES_ON_AXIS[1]:
        return times.view("datetime64[us]"), ""
    first = time_in_words(int(times[0]), is_dated)
    if is_dated:
        return (times - times[0]) / DAY, f"Days after {first}"
    return (times, "Time") if np.abs(times).max() < LARGEST_ON_AXIS else (times - times[0], f"Time after {first}")


@styled
def _forecasts(stretches: list[_Stretch], forecaster: Engine, line: Line) -> Figure:
    """Draw actual values, forecasts and intervals, one stream above the other."""
    from matplotlib import dates
    from matplotlib.ticker import MaxNLocator

    figure, axes = panels(len(stretches), each=1.45, shared=False)
    x, label = _drawable(stretches[0].times, forecaster.is_dated)
    for axis, one in zip(axes, stretches, strict=True):
        span = float(np.nanmax(one.columns[0]) - np.nanmin(one.columns[0])) or LARGEST_VALUE
        middle = float(np.nanmedian(one.columns[0]))
        actual, forecast, low, high, *quantiles = np.clip(one.columns, middle - 1.5 * span, middle + 1.5 * span)
        band = f"{100 * forecaster.coverage:g} % interval"
        axis.fill_between(x, low, high, color=line["color"], alpha=0.18, linewidth=0.0, label=band)
        for below, above in zip(quantiles[: len(quantiles) // 2], quantiles[::-1], strict=False):
            axis.fill_between(x, below, above, color=line["color"], alpha=0.18, linewidth=0.0)
        axis.plot(x, actual, **ACTUAL)
        axis.plot(x, forecast, label="Forecast", **line | {"linewidth": 1.4})
        axis.set_title(short(one.name, 40), pad=4)
        axis.margins(x=0.01)
        axis.yaxis.set_major_locator(MaxNLocator(4))
    if not label:
        kinds: Any = dates  # without types
        locator = kinds.AutoDateLocator(minticks=3, maxticks=6)
        axes[-1].xaxis.set_major_locator(locator)
        axes[-1].xaxis.set_major_formatter(kinds.ConciseDateFormatter(locator))
    else:
        axes[-1].xaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes[-1].set_xlabel(label)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, handlelength=1.6, columnspacing=1.0)
    return figure
