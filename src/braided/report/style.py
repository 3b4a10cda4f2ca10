"""The style of the figures: colours, letters and layouts that they share, and how they become files."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar

from braided.files import mark_of
from braided.study import Method

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Made = TypeVar("Made")
Arguments = ParamSpec("Arguments")

REPORT_MARK = mark_of("report")  # also of the pages
WIDTH = 4.8  # inches
POINTS = 72.0 * WIDTH
INK, GREY, FAINT, PALE = "#222222", "#5a5a5a", "#d5d5d5", "#f0efec"
# Told apart with every kind of colour blindness, and dark enough to be read as text on white.
COLOURS = {"multi-task": "#0068a6", "single-task": "#c24e00", "batch": "#00795a", "naive": "#6b6b6b"}
MARKS = {"multi-task": "o", "single-task": "s", "batch": "^", "naive": "D"}
STYLE: dict[Any, Any] = {
    "font.family": ["DejaVu Sans"],  # comes with matplotlib, so every machine draws the same
    "font.size": 11.0,
    "axes.labelsize": 11.0,
    "axes.titlesize": 11.0,
    "axes.titlelocation": "left",
    "axes.edgecolor": "#8a8a8a",
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "legend.fontsize": 10.5,
    "text.color": INK,
    "text.parse_math": False,  # a task may be called "$x$"
    "axes.labelcolor": INK,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.color": "#8a8a8a",
    "ytick.color": "#8a8a8a",
    "xtick.labelsize": 10.5,
    "ytick.labelsize": 10.5,
    "svg.fonttype": "none",  # letters stay letters: small files, and the reader's own font
    "svg.hashsalt": "braided",
}
FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Liberation Sans', Arial, sans-serif"


def styled(draw: Callable[Arguments, Made]) -> Callable[Arguments, Made]:
    """Draw in the style of the report, whatever the reader's own settings."""

    @wraps(draw)
    def drawn(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Made:
        from matplotlib import rc_context, rcdefaults, rcParams

        with rc_context():  # puts back what was
            rcdefaults()
            rcParams.update(STYLE)
            return draw(*args, **kwargs)

    return drawn


@styled
def render(figure: Figure, kind: Literal["png", "svg"]) -> bytes:
    """Return a figure as a file, without a date."""
    buffer = io.BytesIO()
    said = {"png": {"Software": REPORT_MARK}, "svg": {"Date": None, "Creator": REPORT_MARK}}[kind]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # a letter that the font lacks is a box
        figure.savefig(buffer, format=kind, dpi=200, metadata=said)
    return buffer.getvalue().replace(b"'DejaVu Sans'", FONTS.encode())


def panels(count: int, each: float, alike: bool = True) -> tuple[Figure, list[Axes]]:
    """Return a figure of panels below each other, with their height in inches; `alike` ones share a scale."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, 0.6 + each * count), layout="constrained")
    return figure, list(figure.subplots(count, 1, squeeze=False, sharex=True, sharey=alike)[:, 0])


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
    """Say which colour is which family."""
    from matplotlib.lines import Line2D

    present = [name for name in COLOURS if name in {method.family for method in methods}]
    marks = [Line2D([], [], color=COLOURS[name], marker=MARKS[name], linestyle="", label=name) for name in present]
    figure.legend(handles=marks, loc="outside upper center", ncols=4, handletextpad=0.1, columnspacing=1.0)
