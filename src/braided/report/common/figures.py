"""Figures that studies and runs share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from braided.methods import Method
from braided.report.common.style import COLOURS, INK, PALE, WIDTH, panels, styled
from braided.report.common.table import short
from braided.types import Floats, Ints

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Line: TypeAlias = dict[str, Any]  # how a line looks
NEIGHBOURS = (0, (3.5, 1.5))  # dashes of methods that see their neighbours


def line_of(method: Method) -> Line:
    """Return how the line of a method looks."""
    dashes = NEIGHBOURS if method.inputs.neighbours else "-"
    return {"color": COLOURS[method.family], "linewidth": 1.8, "linestyle": dashes}


@styled
def error_lines(curves: Sequence[tuple[Ints, Floats, str, Line]], label: str) -> Figure:
    """Draw errors up to each round relative to "no change", each with its label and line."""
    figure, (axis,) = panels(1, each=3.3)
    ends = [1.0]
    for steps, ratio, words, line in curves:
        axis.plot(steps, ratio, label=words, marker="o" if len(steps) == 1 else "", **line)
        ends += ratio[len(ratio) // 10 :].tolist()  # the first rounds vary widely and say little
    axis.axhline(1.0, color=INK, linewidth=1.0, zorder=1)
    low, high = float(np.nanmin(ends)), min(float(np.nanmax(ends)), 2.0)
    pad = 0.06 * (high - low) or 0.1
    axis.set_ylim(low - pad, high + pad)
    axis.grid(axis="y")
    axis.margins(x=0.0)
    axis.locator_params(axis="x", integer=True)
    axis.set_xlabel(label)
    axis.set_ylabel("RMSE so far over\nthat of “no change”")
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=1, handlelength=2.2, labelspacing=0.25)
    return figure


@styled
def similarities(similarity: Floats, streams: Sequence[str]) -> Figure:
    """Draw how similar streams are; many streams are sorted so that similar ones are adjacent."""
    from matplotlib.figure import Figure

    count, few = len(streams), len(streams) <= 12
    order = np.arange(count) if few else _clustered(similarity)
    shown = similarity[np.ix_(order, order)].copy()
    np.fill_diagonal(shown, np.nan)
    named = count <= 60  # beyond, names would be too small to read
    figure = Figure(figsize=(WIDTH, 4.4 if few or not named else 0.8 + count * 9.6 / 72.0), layout="constrained")
    axis = figure.add_subplot()
    axis.set_facecolor(PALE)
    image = axis.imshow(shown, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto", interpolation="nearest")
    names = [short(streams[i], 16) for i in order]
    axis.set_yticks(np.arange(count) if named else [], names if named else [], fontsize=10.5 if few else 8.5)
    turned = 0 if count <= 4 and max(map(len, names)) < 10 else 90
    axis.set_xticks(np.arange(count) if few else [], names if few else [], rotation=turned)
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    if few:
        for (i, j), value in np.ndenumerate(shown):
            if i != j:
                text, colour = f"{value:.2f}".lstrip("0"), "white" if value > 0.6 else INK
                axis.text(j, i, text, ha="center", va="center", color=colour, fontsize=13 if count <= 6 else 9.5)
    bar = figure.colorbar(image, ax=axis, orientation="horizontal", aspect=40, pad=0.02, label="Similarity")
    bar.outline.set_visible(False)
    return figure


def _clustered(similarity: Floats) -> Ints:
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    distance = 1.0 - np.clip((similarity + similarity.T) / 2, 0.0, 1.0)
    np.fill_diagonal(distance, 0.0)
    order: Ints = leaves_list(linkage(squareform(distance, checks=False), "average", optimal_ordering=True))
    return order
