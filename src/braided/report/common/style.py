"""The style of the figures: colours, fonts and layouts that they share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from braided.methods import Method

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Made = TypeVar("Made")
Arguments = ParamSpec("Arguments")

WIDTH = 4.8  # inches
POINTS = 72.0 * WIDTH
INK, GREY, FAINT, PALE = "#222222", "#5a5a5a", "#d5d5d5", "#f0efec"
# Distinct with every kind of colour blindness, and dark enough for text on white.
COLOURS = {"multi-task": "#0068a6", "single-task": "#c24e00", "batch": "#00795a", "baseline": "#6b6b6b"}
ACTUAL: dict[str, Any] = {"color": "#8a8a8a", "linewidth": 1.0, "marker": ".", "markersize": 4, "label": "Actual"}
MARKS = {"multi-task": "o", "single-task": "s", "batch": "^", "baseline": "D"}
STYLE = Path(__file__).with_name("figures.mplstyle")


def styled(draw: Callable[Arguments, Made]) -> Callable[Arguments, Made]:
    """Draw in the style of the report, whatever the user's matplotlib settings."""

    @wraps(draw)
    def drawn(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Made:
        from matplotlib import rc_context

        with rc_context(fname=STYLE):
            return draw(*args, **kwargs)

    return drawn


def panels(count: int, each: float, shared: bool = True) -> tuple[Figure, list[Axes]]:
    """Return a figure of panels below each other, with their height in inches; with one scale if `shared`."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, 0.6 + each * count), layout="constrained")
    return figure, list(figure.subplots(count, 1, squeeze=False, sharex=True, sharey=shared)[:, 0])


def rows(methods: Sequence[Method], above: float) -> tuple[Figure, Axes]:
    """Return a figure with one row per method, the first on top."""
    figure, axis = named_rows([method.title for method in methods], above)
    for label, method in zip(axis.get_yticklabels(), methods, strict=True):
        label.set_color(COLOURS[method.family])
    return figure, axis


def named_rows(names: Sequence[str], above: float) -> tuple[Figure, Axes]:
    """Return a figure with one row per name, the first on top."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, above + 0.75 + 0.235 * len(names)), layout="constrained")
    axis = figure.add_subplot()
    axis.set_yticks(range(len(names)), names)
    axis.set_ylim(len(names) - 0.4, -0.6)
    axis.grid(axis="x")
    axis.spines["left"].set_visible(False)
    axis.tick_params(axis="y", length=0)
    return figure, axis


def legend(figure: Figure, methods: Sequence[Method]) -> None:
    """Show which colour is which family."""
    from matplotlib.lines import Line2D

    present = [name for name in COLOURS if name in {method.family for method in methods}]
    marks = [Line2D([], [], color=COLOURS[name], marker=MARKS[name], linestyle="", label=name) for name in present]
    figure.legend(handles=marks, loc="outside upper center", ncols=4, handletextpad=0.1, columnspacing=1.0)
