"""Pictures: the figures of a study with their words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from braided.report.common.picture import Picture
from braided.report.common.table import brief, short
from braided.report.study import figures
from braided.study import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Drawn: TypeAlias = "tuple[str, str, str, str, Figure | None]"  # name, title, caption, alt text, figure


def pictures(results: Results) -> Iterator[Picture]:
    """Draw all figures that make sense for a study, each with its words."""
    headlines = [draw(results, split) for draw in (_errors, _ranks, _over_time) for split in results.splits]
    for drawn in (headlines, _details(results)):
        for name, title, caption, alt, figure in drawn:
            if figure is not None:
                yield Picture(name, title, caption, alt, figure, headline=drawn is headlines)


def _errors(results: Results, split: str) -> Drawn:
    values = np.median(figures.spread_of_errors(results, split), axis=0)
    listed = ", ".join(f"{results.methods[i].title} {brief(values[i])}" for i in np.argsort(values, kind="stable"))
    over = f"the {len(results.tasks)} streams" if results.windows == 1 else f"the {results.windows} windows"
    return (
        f"errors-{split}",
        f"Error of every method, {split}",
        f"Below 1 is better than forecasting no change. Light dots: {over}; bar: the middle half; mark: the median. "
        "Values beyond the axis are written at its edge.",
        f"Dot plot of the error relative to no change. Medians over {over}: {listed}.",
        figures.errors(results, split),
    )


def _ranks(results: Results, split: str) -> Drawn:
    ranked = results.ranked(split, figures.SYNCHRONOUS)
    listed, said = "", ""
    if ranked:
        methods, comparison = ranked
        mean = comparison.mean_ranks
        listed = ", ".join(f"{methods[i].title} {mean[i]:.2f}" for i in np.argsort(mean, kind="stable"))
        if comparison.p_value >= 0.05:
            said = f" Here Friedman's test shows no difference (p = {comparison.p_value:.2f})."
    return (
        f"ranks-{split}",
        f"Ranks of the paper's methods, {split}",
        "Mean rank over the windows, the best on the left. Methods joined by a bar differ by less than the least "
        f"significant difference (LSD, 5 %).{said}",
        f"Critical difference diagram. Mean ranks: {listed}.",
        figures.ranks(results, split),
    )


def _over_time(results: Results, split: str) -> Drawn:
    return (
        f"over-time-{split}",
        f"Error over time, {split}",
        "From the first forecast to each round, over all streams" + " and windows" * (results.windows > 1) + ".",
        "Lines of the error up to each round, relative to no change, for methods with and without sharing.",
        figures.over_time(results, split),
    )


def _details(results: Results) -> list[Drawn]:
    listed = ", ".join(short(task, 40) for task in results.tasks[:3])
    return [
        (
            "series",
            "What is forecast",
            "Changes from step to step. Dashed: where the tuning period ends and the test begins, by experiment.",
            f"Line plots of the changes of {listed}.",
            figures.series(results),
        ),
        (
            "forecasts",
            "Forecasts and actual changes",
            f"Changes of {short(results.tasks[0], 40)} in the middle of the test period, synchronous, "
            f"experiment {results.splits[0]}. Forecast changes are mostly close to zero, because little of a change is "
            "predictable.",
            "Line plots of the actual changes and of those forecast.",
            figures.forecasts(results),
        ),
        (
            "graph",
            "How similar the streams are",
            "Spearman correlation of the changes in the tuning period of the first window; negative ones count as 0.",
            f"Heat map of the similarities of {len(results.tasks)} streams.",
            figures.graph(results),
        ),
        (
            "timings",
            "Time per sample",
            "To forecast and to learn one sample, without features and tuning; logarithmic scale.",
            "Bars of the microseconds per sample of each method.",
            figures.timings(results),
        ),
        (
            "choices",
            "Parameters chosen",
            "How often each value was best in the tuning period, over all windows and splits: the larger the dot, the "
            "more often. λ penalty, σ forgetting, γ ridge.",
            "Dots that show how often each penalty, forgetting factor and ridge was chosen by each method.",
            figures.choices(results, ("penalty", "forgetting", "ridge")),
        ),
        (
            "more-choices",
            "More parameters chosen",
            "ν novelty, H hidden units, η₀ step, ρ of ADMM, width of the RBF kernel.",
            "Dots that show how often each value of the other parameters was chosen by each method.",
            figures.choices(results, ("novelty", "hidden", "step", "rho", "width")),
        ),
    ]
