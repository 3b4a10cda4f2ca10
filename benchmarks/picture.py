"""Draw the picture of the README: the error of Auto on the panels that come with the package, beside what people use.

It reads the scores that the suite wrote, and prints them; writes docs/picture.svg.

    braided study --suite forecasting
    python benchmarks/picture.py [braided-suite]
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from pyarrow import csv

SHOWN = {  # by the name in the file: the label, the colour, the mark and its size
    "single": ("one filter per stream", "#9aa5ad", "s", 8),
    "best-rule": ("best simple rule, in hindsight", "#3c4650", "^", 9),
    "lightgbm": ("LightGBM", "#d1862c", "D", 8),
    "auto-alone": ("braided without sharing", "#6fb1cf", "o", 9),
    "auto": ("braided", "#0b6e99", "o", 12),
}
PANELS = {
    "la-haute-borne": "wind, 4 turbines, every 10 minutes",
    "us-incomes": "income, 48 states, yearly",
    "us-employment": "employees, 145 sectors, monthly",
    "melbourne-pedestrians": "pedestrians, 4 places, hourly",
}
STYLE = {"font.family": "DejaVu Sans", "font.size": 11, "svg.hashsalt": "braided", "svg.fonttype": "path"}


def scores(folder):
    """The mean over the streams of each method's error, by panel."""
    table = csv.read_csv(folder / "suite.csv").to_pydict()
    rows = zip(table["panel"], table["method"], table["rmse_to_no_change"], strict=True)
    found = {}
    for panel, method, error in rows:
        found.setdefault((panel, method), []).append(np.nan if error is None else error)
    return {key: float(np.nanmean(errors)) for key, errors in found.items() if not np.isnan(errors).all()}


def main():
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "braided-suite")
    error = scores(folder)
    figure = Figure(figsize=(9, 3.3), layout="constrained")
    axes = figure.subplots()
    for row, panel in enumerate(reversed(PANELS)):
        axes.axhline(row, color="#e4e8eb", linewidth=1, zorder=0)
        for name, (label, colour, mark, size) in SHOWN.items():
            if (panel, name) in error:
                axes.plot(
                    error[panel, name], row, mark, color=colour, markersize=size, label=label if row == 0 else None
                )
                print(f"{panel:22s} {label:32s} {error[panel, name]:.3f}")
    axes.axvline(1.0, color="#3c4650", linewidth=1, linestyle=":")
    axes.set_yticks(range(len(PANELS)), [PANELS[panel] for panel in reversed(PANELS)])
    axes.set(xlabel="error (RMSE) over that of “no change”: further left is better", ylim=(-0.5, len(PANELS) - 0.5))
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    figure.legend(frameon=False, ncols=3, loc="outside upper left")
    path = Path(__file__).parents[1] / "docs" / "picture.svg"
    figure.savefig(path, metadata={"Date": None})
    print(f"wrote {path}")


if __name__ == "__main__":
    with rc_context(STYLE):
        main()
