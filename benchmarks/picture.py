"""Draw the picture of the README: the growth of incomes in 48 US states, one filter per state against braided.

The data are real, and come with the package. Every method is tuned on the first 40 rounds (forgetting included) and
forecasts the rest from scratch, each year before any state of it is learned. Prints the errors, and after how many
years one filter per state is as good over the rest as braided; writes docs/picture.svg.

    python benchmarks/picture.py
"""

from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

import braided as bd
from braided.study import METHODS, plan_for
from braided.study.run import Window, forecast, tune

BLUE, LIGHT, GREY, DARK = "#0b6e99", "#6fb1cf", "#9aa5ad", "#3c4650"
SHOWN = {
    "wrls": ("one filter per state", GREY, "-"),
    "mt-wrls-neighbours": ("braided, neighbours' growth as features", LIGHT, "-"),
    "mt-wrls": ("braided", BLUE, "-"),
    "mean-change": ("no model: mean growth of all states last year", DARK, ":"),
}
STYLE = {"font.family": "DejaVu Sans", "font.size": 10, "svg.hashsalt": "braided", "svg.fonttype": "path"}


def main():
    panel = bd.datasets.embedded("us-incomes")
    plan = plan_for(panel)
    window = Window(np.log(panel.values), panel.tasks, plan, plan.splits["II"])
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    axes = figure.subplots()
    print("US state incomes, growth per year, synchronous, tuned on the first 40 rounds; RMSE, mean over 48 states:")
    yearly = {}
    for name in ("wrls", "wrls-neighbours", "mt-wrls", "mt-wrls-neighbours", "last-change", "mean-change"):
        method = METHODS[name]
        run = forecast(method, window, "synchronous", tune(method, window, "synchronous").parameters)[0]
        print(f"  {method.title:22s} {run.scores.mean('rmse'):.4f}")
        if name in SHOWN:
            label, colour, line = SHOWN[name]
            years, of = np.unique(run.samples.steps, return_inverse=True)
            yearly[name] = squares = np.bincount(of, (run.samples.y - run.forecast) ** 2) / len(panel.tasks)
            axes.plot(panel.times[years], 100 * np.sqrt(squares), line, color=colour, linewidth=2, label=label)
    rest = {name: np.sqrt(squares[::-1].cumsum()[::-1]) for name, squares in yearly.items()}
    caught_up = np.argmax(rest["wrls"] <= 1.01 * rest["mt-wrls"])
    print(f"one filter per state is as good over the rest, within 1 %, after {caught_up} years")
    axes.set(ylabel="RMSE over the states, % points", xlim=(panel.times[years[0]], panel.times[-1]), ylim=(0, None))
    axes.set_title("Forecasting the growth of income per head in 48 US states, a year ahead", loc="left", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e4e8eb", linewidth=0.8)
    axes.legend(frameon=False, ncols=2, loc="upper right")
    path = Path(__file__).parents[1] / "docs" / "picture.svg"
    figure.savefig(path, metadata={"Date": None})
    print(f"wrote {path}")


if __name__ == "__main__":
    with rc_context(STYLE):
        main()
