"""Figures of a study: one function each, which returns a figure, or None where the study has nothing to show.

A family of methods has one colour and one mark in all of them. Every figure is 4.8 inches wide with text of at least
nine points (except the names of many streams), so that a phone shows it at full size. The same results give the same
bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from braided.evaluation import Protocol
from braided.report.common.figures import error_lines, line_of, similarities
from braided.report.common.style import (
    ACTUAL,
    COLOURS,
    FAINT,
    GREY,
    INK,
    MARKS,
    POINTS,
    WIDTH,
    legend,
    panels,
    rows,
    styled,
)
from braided.report.common.table import SYMBOLS, brief, short, value_of
from braided.study import METHODS, Method, Results
from braided.types import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SYNCHRONOUS: Protocol = "synchronous"


@styled
def series(results: Results) -> Figure:
    """Draw the changes of three streams in four windows, one trace above the other."""
    windows, tasks = _spread(results.windows, 4), results.tasks[:3]
    changes = [np.diff(results.series(window)[:, : len(tasks)], axis=0) for window in windows]
    room = 2.4 * max(float(np.quantile(np.abs(np.concatenate(changes)), 0.995)), 1e-300)
    figure, axes = panels(len(windows), each=0.45 + 0.32 * len(tasks))
    for axis, window, change in zip(axes, windows, changes, strict=True):
        offset, label = _clock(results, window)
        steps = offset + 1 + np.arange(len(change))
        for place in range(len(tasks)):
            axis.plot(steps, np.clip(change[:, place], -room / 2, room / 2) - place * room, color=INK, linewidth=0.6)
        for split, train in results.about["splits"].items():
            axis.axvline(offset + train, color=GREY, linewidth=0.9, linestyle=(0, (3, 2)))
            axis.text(offset + train, room / 2, split, ha="center", va="bottom", color=GREY, fontsize=10)
        axis.set_yticks([-place * room for place in range(len(tasks))], [short(task, 14) for task in tasks])
        axis.set_ylim(-(len(tasks) - 0.5) * room, room / 2)
        axis.set_title(_window_title(results, window), pad=4)
        axis.spines["left"].set_visible(False)
        axis.tick_params(axis="y", length=0)
        axis.margins(x=0.0)
    _scale_bar(axes[0], room)
    axes[-1].set_xlabel(label)
    return figure


def _scale_bar(axis: Axes, room: float) -> None:
    """Draw a bar of 1, 2 or 5 units, the largest that fits into half a trace."""
    power = 10.0 ** np.floor(np.log10(room / 2))
    size = power * max(step for step in (1, 2, 5) if step * power <= room / 2)
    place = axis.get_yaxis_transform()
    axis.plot([1.015, 1.015], [-size / 2, size / 2], transform=place, color=INK, linewidth=1.6, clip_on=False)
    axis.text(1.03, 0.0, f"{size:g}", transform=place, va="center", fontsize=10)


@styled
def forecasts(results: Results, stretch: int = 60) -> Figure | None:
    """Draw forecasts and actual changes of the first stream in the middle of the test period, in two windows."""
    shown = [METHODS[name] for name in ("wrls", "mt-wrls", "mt-wrls-neighbours") if METHODS[name] in results.methods]
    if not shown:
        return None
    windows = _spread(results.windows, 2)
    figure, axes = panels(len(windows), each=1.75)
    for axis, window in zip(axes, windows, strict=True):
        offset, label = _clock(results, window)
        curves = [results.curve(window, results.splits[0], SYNCHRONOUS, m.name, results.tasks[0]) for m in shown]
        first = max((len(curves[0].steps) - stretch) // 2, 0)
        part = slice(first, first + stretch)
        steps = offset + curves[0].steps[part]
        axis.axhline(0.0, color=FAINT, linewidth=0.8)
        axis.plot(steps, curves[0].actual[part], **ACTUAL)
        for method, curve in zip(shown, curves, strict=True):
            axis.plot(steps, curve.forecast[part], label=method.title, **line_of(method))
        axis.set_title(_window_title(results, window), pad=4)
        axis.set_ylabel("Change")
        axis.margins(x=0.01)
    axes[-1].set_xlabel(label)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2, handlelength=2.2, columnspacing=1.0)
    return figure


@styled
def ranks(results: Results, split: str) -> Figure | None:
    """Draw a critical difference diagram: methods joined by a bar do not differ significantly."""
    from matplotlib.figure import Figure

    ranked = results.ranked(split, SYNCHRONOUS)
    if ranked is None:
        return None
    methods, comparison = ranked
    order = np.argsort(comparison.mean_ranks, kind="stable")
    mean, count = comparison.mean_ranks[order], len(order)
    bars = joined(mean, comparison.difference)
    row, top, left, right = 19.0, 62.0, 14.0, POINTS - 14.0  # points, as all that follows
    fan = top + 12.0 + 7.0 * len(bars)  # from here on down, lines spread evenly, however close the ranks are
    stems = fan + 20.0
    height = stems + row * ((count + 1) // 2) + 2.0
    figure = Figure(figsize=(WIDTH, height / 72.0))
    axis = figure.add_axes((0.0, 0.0, 1.0, 1.0), xlim=(0.0, POINTS), ylim=(height, 0.0))
    axis.axis("off")

    def place(rank: float) -> float:
        return left + (rank - 1.0) / (count - 1) * (right - left)

    axis.plot([left, right], [top, top], color=INK, linewidth=1.0)
    for rank in range(1, count + 1):
        axis.plot([place(rank)] * 2, [top - 4.0, top], color=INK, linewidth=1.0)
        axis.text(place(rank), top - 7.0, f"{rank}", ha="center", va="bottom", fontsize=10.5)
    axis.text(right, 21.0, "mean rank", ha="right", va="bottom", fontsize=10.5, color=GREY)
    end = min(place(1.0 + comparison.difference), right)
    axis.plot([left, left, left, end, end, end], [24.0, 32.0, 28.0, 28.0, 24.0, 32.0], color=INK, linewidth=1.2)
    axis.text(left, 21.0, f"LSD {comparison.difference:.2f}", va="bottom", fontsize=10.5)
    for position, (rank, method) in enumerate(zip(mean, (methods[i] for i in order), strict=True)):
        low = position < (count + 1) // 2  # the better half is on the left, the best on top
        down = stems + row * ((position if low else count - 1 - position) + 0.5)
        edge, side, sign = (92.0, "right", -1) if low else (POINTS - 92.0, "left", 1)
        slot = 118.0 + (POINTS - 236.0) * position / (count - 1)
        style: dict[str, Any] = {"color": COLOURS[method.family]}
        axis.plot([place(rank)] * 2 + [slot, slot, edge], [top, fan, stems, down, down], **style, linewidth=1.1)
        axis.plot(place(rank), top, MARKS[method.family], **style, markersize=5)
        axis.text(edge + 3.0 * sign, down, method.title, **style, ha=side, va="center", fontsize=10.5)
        axis.text(edge - 2.0 * sign, down - 2.0, f"{rank:.1f}", ha="left" if low else "right", va="bottom", fontsize=9)
    for line, (first, last) in enumerate(bars):
        ends = [place(mean[first]) - 3.0, place(mean[last]) + 3.0]
        axis.plot(ends, [top + 10.0 + 7.0 * line] * 2, color=INK, linewidth=3.2, solid_capstyle="round")
    return figure


def joined(ranks: Floats, difference: float) -> list[tuple[int, int]]:
    """Return the largest groups (first, last) of sorted ranks within which no two differ by more than `difference`.

    >>> joined(np.array([1.0, 1.5, 2.9, 3.1, 9.0]), 2.0)
    [(0, 2), (1, 3)]
    """
    groups: list[tuple[int, int]] = []
    for first, rank in enumerate(ranks):
        last = int(np.flatnonzero(ranks - rank <= difference)[-1])
        if last > first and (not groups or last > groups[-1][1]):
            groups.append((first, last))
    return groups


@styled
def errors(results: Results, split: str) -> Figure:
    """Draw every method's error relative to "no change": windows (or streams of a single one), quartiles, median."""
    values = spread_of_errors(results, split)
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75), axis=0)
    order = np.argsort(middle, kind="stable")
    gain = max(1.0 - float(values.min()), 0.03)
    left, right = 1.0 - gain, float(max(1.0 + 0.6 * gain, 1.02 * np.quantile(middle, 0.6)))
    right = min(right, max(float(values.max()), 1.0))
    pad = 0.04 * (right - left)
    figure, axis = rows([results.methods[i] for i in order], above=0.42)
    axis.axvline(1.0, color=INK, linewidth=1.0)
    for row, i in enumerate(order):
        method, colour, here = results.methods[i], COLOURS[results.methods[i].family], values[:, i]
        axis.plot(here[here <= right], np.full((here <= right).sum(), row), ".", color=colour, alpha=0.3, markersize=5)
        axis.plot(np.clip([low[i], high[i]], left, right + pad), [row, row], color=colour, linewidth=2.4)
        if middle[i] <= right:
            axis.plot(middle[i], row, MARKS[method.family], color=colour, markersize=7, markeredgecolor="white")
        axis.text(1.02, row, brief(middle[i]), transform=axis.get_yaxis_transform(), va="center", fontsize=10.5)
        if here.max() > right:  # write the largest at the edge
            white = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
            style: dict[str, Any] = {"ha": "right", "va": "center", "fontsize": 9, "color": GREY, "bbox": white}
            axis.text(1.0, row, f"{brief(here.max())} ▸", transform=axis.get_yaxis_transform(), **style)
    axis.set_xlim(left - pad, right + pad)
    axis.set_xlabel("RMSE over that of “no change”")
    axis.text(1.02, -0.95, "median", transform=axis.get_yaxis_transform(), va="center", fontsize=10, color=GREY)
    legend(figure, results.methods)
    return figure


def spread_of_errors(results: Results, split: str) -> Floats:
    """Return the methods' errors per window, or per stream of a single window."""
    errors = results.by_task(split, SYNCHRONOUS, "rmse_to_no_change")
    return errors.mean(axis=2) if results.windows > 1 else errors[0].T


def graph(results: Results) -> Figure | None:
    """Draw the similarities of the first window."""
    return similarities(results.similarity(0, results.splits[0]), results.tasks) if len(results.tasks) > 1 else None


@styled
def choices(results: Results, names: Sequence[str]) -> Figure | None:
    """Draw how often each value of some parameters was chosen, over all windows and splits."""
    counts = {method: results.chosen(protocol=SYNCHRONOUS, method=method.name) for method in results.methods}
    shown = [method for method in results.methods if counts[method].keys() & set(names)]
    grids = {name: values for name in names if (values := _values(results, name, shown))}
    if not shown:
        return None
    figure, axis = rows(shown, above=0.75)
    axis.grid(False)
    spot, ticks, labels = 0.0, [], []
    for name, values in grids.items():
        axis.text(spot + (len(values) - 1) / 2, -1.1, SYMBOLS[name], ha="center", va="center", fontsize=12)
        for value in values:
            axis.axvline(spot, color="#ededed", linewidth=0.8, zorder=0)
            for row, method in enumerate(shown):
                chosen = counts[method].get(name, Counter())
                if chosen[value]:
                    size = 120.0 * chosen[value] / chosen.total()
                    axis.scatter(spot, row, s=size, color=COLOURS[method.family], linewidths=0.0)
            ticks.append(spot)
            labels.append(value_of(value))
            spot += 1.0
        spot += 0.8
    axis.set_xticks(ticks, labels, rotation=90, fontsize=9.5)
    axis.set_xlim(-0.8, spot - 1.0)
    legend(figure, shown)
    return figure


def _values(results: Results, name: str, methods: Sequence[Method]) -> list[float]:
    """Return all values of a parameter that were searched."""
    offered = {value for method in methods for stage in method.stages for value in stage.get(name, ())}
    if name == "forgetting" and any(name in stage for method in methods for stage in method.stages):
        offered = set(results.about["forgetting"])
    return sorted(offered)


def over_time(results: Results, split: str) -> Figure | None:
    """Draw the error up to each round relative to "no change", for the main methods and the best without a model."""
    mean = dict(zip(results.methods, results.table(split, SYNCHRONOUS, "rmse_to_no_change").mean(axis=0), strict=True))
    main = ("mt-wrls-neighbours", "mt-wrls", "wrls-neighbours", "wrls")
    shown = [METHODS[name] for name in main if METHODS[name] in mean]
    shown += sorted((method for method in mean if method.naive), key=mean.__getitem__)[:1]
    if not shown:
        return None
    offset, label = _clock(results, window=0)
    curves = []
    for method in shown:
        steps, ratio = results.error_so_far(split, SYNCHRONOUS, method.name)
        words = f"{method.title}, the best baseline" if method.naive else method.title
        curves.append((offset + steps, ratio, words, line_of(method)))
    return error_lines(curves, label)


@styled
def timings(results: Results) -> Figure:
    """Draw the microseconds that it takes to forecast and learn one sample."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    each = {method: results.seconds(method.name)[2] for method in results.methods}
    order = sorted(results.methods, key=each.__getitem__)
    figure, axis = rows(order, above=0.3)
    least, most = each[order[0]], each[order[-1]]
    start = 10.0 ** np.floor(np.log10(max(least, 1e-6)) - 0.1)
    for row, method in enumerate(order):
        axis.barh(row, each[method] - start, left=start, height=0.62, color=COLOURS[method.family])
        text = f"{each[method]:#.2g}" if each[method] < 10 else f"{each[method]:.0f}"
        axis.text(1.15 * each[method], row, text, va="center", fontsize=10)
    axis.set_xscale("log")
    axis.xaxis.set_major_locator(LogLocator(numticks=6))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_xlim(start, 4.0 * max(most, 2.0 * start))
    axis.set_xlabel("Microseconds per sample")
    legend(figure, results.methods)
    return figure


def _spread(windows: int, count: int) -> list[int]:
    """Return some windows, the first among them, evenly spread."""
    return np.linspace(0, windows - 1, min(count, windows)).round().astype(int).tolist()


def _window_title(results: Results, window: int) -> str:
    return f"Window {window + 1}" if results.windows > 1 else ""


def _clock(results: Results, window: int) -> tuple[int, str]:
    """Return the label of step 0 of a window, and what steps are: years if the times are integers."""
    first = results.about["times"][window]
    return (first, "Year") if isinstance(first, int) else (0, "Step of the window")
