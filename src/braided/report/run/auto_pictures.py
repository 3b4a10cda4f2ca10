"""Pictures of Auto: what its errors are drawn beside, and the weights of its members over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from braided.forecasting.auto import AutoEngine
from braided.forecasting.auto.engine import ALONE, ONE_FILTER
from braided.forecasting.record import MODEL
from braided.methods import AUTO, METHODS
from braided.report.common.figures import NEIGHBOURS, Line, line_of
from braided.report.common.picture import Picture
from braided.report.common.style import panels, styled
from braided.report.run.auto_summary import best_rule
from braided.report.run.versus import Versus
from braided.types import Floats, Ints

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LESS_BY_SHARING = "Less error by sharing, %"
MEMBERS_NAMED = 8  # the others are one
# From dark to light, so that neighbours in a stack differ for every eye; learners are cold and rules are warm.
COLD = ("#0b3c5d", "#1f78b4", "#6fb1de", "#00695c", "#4db6a0", "#b5d8ea", "#2e4a7d", "#8fd0c1")
WARM = ("#a63c00", "#e88a1a", "#f6c667", "#7a4a1e", "#d9a35b", "#f3dcae", "#c2571a", "#ffe9b8")
OTHERS = "#d5d5d5"


class Rival(NamedTuple):
    """What gains are drawn over, stream by stream, with its words."""

    name: str  # for files
    title: str
    caption: str
    label: str
    versus: Versus


def shown_beside(engine: AutoEngine) -> list[tuple[str, str, Line]]:
    """Return the contenders whose error is drawn over time, with their titles and lines."""
    rule, has = best_rule(engine), engine.record.has
    single = line_of(METHODS["wrls"])
    shown = [(MODEL, AUTO.title, line_of(AUTO))]
    shown += [(rule, f"Best rule (“{rule}”)", line_of(METHODS["no-change"]))] if rule is not None else []
    shown += [(ONE_FILTER, "One filter per stream", single)] if has(ONE_FILTER) else []
    shown += [(ALONE, "Without sharing", single | {"linestyle": NEIGHBOURS})] if has(ALONE) else []
    return shown


def rivals(engine: AutoEngine) -> list[Rival]:
    """Return what gains are drawn over: the best rule, and without sharing if that is known."""
    rule, record = best_rule(engine), engine.record
    found = []
    if rule is not None:
        words = f"How much smaller the error is than that of “{rule}”, the best simple rule in hindsight."
        title, label = "Gain over the best simple rule", "Less error than the best rule, %"
        found.append(Rival("gains", title, words, label, Versus.of(record, rule)))
    if record.has(ALONE):
        words = "How much smaller the error is than that of the same mixture without sharing."
        found.append(Rival("sharing", "Gain of sharing", words, LESS_BY_SHARING, Versus.of(record, ALONE)))
    return found


def weights(engine: AutoEngine) -> list[Picture]:
    """Draw the weights of the members over time; nothing before scores begin."""
    curve, ensemble = engine.weights, engine.ensemble
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
    last = ", ".join(f"{name} {100 * share[-1]:.0f} %" for name, share, _ in layers)
    return [
        Picture(
            "weights",
            "The members' weights",
            "Mean weights of the members in the forecasts, over the streams. Blue and green: learners; orange and "
            "brown: rules.",
            f"Stacked areas of the weights of the members over the rounds. At the end: {last}.",
            _stacked(ends, layers),
            headline=False,
        )
    ]


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
