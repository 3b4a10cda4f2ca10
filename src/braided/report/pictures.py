"""Pictures: the figures of a study with their words."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, final

import numpy as np

from braided.report.figures import (
    SYNCHRONOUS,
    brief,
    choices,
    errors,
    forecasts,
    graph,
    over_time,
    ranks,
    series,
    short,
    spread_of_errors,
    timings,
)
from braided.report.style import render
from braided.study import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@final
@dataclass(frozen=True)
class Picture:
    """A figure with its words."""

    name: str  # for files
    title: str
    caption: str
    alt: str  # what a reader who can't see it should know
    figure: Figure
    headline: bool = False  # whether it stands with the results, or says more about them

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels of a page."""
        width, height = self.figure.get_size_inches()
        return round(96 * width), round(96 * height)

    @cached_property
    def png(self) -> bytes:
        """As a file for Markdown."""
        return render(self.figure, "png")

    @cached_property
    def svg(self) -> bytes:
        """As a file for the page."""
        return render(self.figure, "svg")

    @property
    def uri(self) -> str:
        """The whole figure as an address, so that the page needs no other file and ids can't clash."""
        return f"data:image/svg+xml;base64,{b64encode(self.svg).decode()}"


def pictures(results: Results) -> Iterator[Picture]:
    """Draw all figures that make sense for a study, each with its words."""
    one = results.windows == 1
    over = f"the {len(results.tasks)} tasks" if one else f"the {results.windows} windows"
    drawn: list[tuple[str, str, str, str, Figure | None]] = []
    for split in results.splits:
        values = np.median(spread_of_errors(results, split), axis=0)
        listed = ", ".join(f"{results.methods[i].title} {brief(values[i])}" for i in np.argsort(values, kind="stable"))
        drawn.append(
            (
                f"errors-{split}",
                f"Error of every method, {split}",
                f"Below 1 is better than forecasting no change. Light dots: {over}; bar: the middle half; "
                f"mark: the median. What lies outside is written at the edge.",
                f"Dot plot of the error relative to no change. Medians over {over}: {listed}.",
                errors(results, split),
            )
        )
    for split in results.splits:
        ranked = results.ranked(split, SYNCHRONOUS)
        listed, said = "", ""
        if ranked:
            methods, comparison = ranked
            mean = comparison.mean_ranks
            listed = ", ".join(f"{methods[i].title} {mean[i]:.2f}" for i in np.argsort(mean, kind="stable"))
            if comparison.p_value >= 0.05:
                said = f" Here Friedman's test shows no difference (p = {comparison.p_value:.2f})."
        drawn.append(
            (
                f"ranks-{split}",
                f"Ranks of the paper's methods, {split}",
                "Mean rank over the windows, the best on the left. Methods that a bar joins differ by less than the "
                f"least significant difference (LSD, 5 %): the windows don't tell them apart.{said}",
                f"Critical difference diagram. Mean ranks: {listed}.",
                ranks(results, split),
            )
        )
    for split in results.splits:
        drawn.append(
            (
                f"over-time-{split}",
                f"Error over time, {split}",
                "From the first forecast to each round, over all tasks" + ("." if one else " and windows."),
                "Lines of the error up to each round, relative to no change, for methods with and without sharing.",
                over_time(results, split),
            )
        )
    listed = ", ".join(short(task, 40) for task in results.tasks[:3])
    drawn += [
        (
            "series",
            "What is forecast",
            "Changes from step to step. Dashed: where tuning ends and the test begins, by experiment.",
            f"Line plots of the changes of {listed}.",
            series(results),
        ),
        (
            "forecasts",
            "Forecasts beside what came",
            f"Changes of {short(results.tasks[0], 40)} in the middle of the test part, synchronous, experiment "
            f"{results.splits[0]}. A forecast of a change is mostly close to zero: little of it can be known.",
            "Line plots of the actual changes and of those forecast.",
            forecasts(results),
        ),
        (
            "graph",
            "How alike the tasks are",
            "Spearman correlation of the changes in the training part of the first window; negative ones count as 0.",
            f"Heat map of the similarities of {len(results.tasks)} tasks.",
            graph(results),
        ),
        (
            "timings",
            "Time per sample",
            "To forecast and to learn one sample, without features and tuning; logarithmic scale.",
            "Bars of the microseconds per sample of each method.",
            timings(results),
        ),
        (
            "choices",
            "Parameters chosen",
            "How often each value was best on the training part, over all windows and splits: the larger the dot, the "
            "more often. λ penalty, σ forgetting, γ ridge.",
            "Dots that show how often each penalty, forgetting factor and ridge was chosen by each method.",
            choices(results, ("penalty", "forgetting", "ridge")),
        ),
        (
            "more-choices",
            "More parameters chosen",
            "ν novelty, H hidden units, η₀ step, ρ of ADMM, width of the RBF kernel.",
            "Dots that show how often each value of the other parameters was chosen by each method.",
            choices(results, ("novelty", "hidden", "step", "rho", "width")),
        ),
    ]
    for name, title, caption, alt, figure in drawn:
        if figure is not None:
            yield Picture(name, title, caption, alt, figure, headline=name.startswith(("errors", "ranks", "over-time")))
