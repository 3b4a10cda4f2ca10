"""How good Auto's 90 % intervals and its quantiles are, by horizon, on real panels and on your tables.

Prints the share of the values in the intervals over a panel, in its worst tenth of the time and for its worst stream;
and the pinball loss of the intervals' ends over that of normal intervals: ± z times a running root mean square of the
errors known at the time, by stream and horizon. Then, for quantiles, the share of the values below, and their loss over
that of symmetric ones: the ends of the interval for 0.05 and 0.95, the forecast for 0.5. The first 20 rounds do not
count.

    python benchmarks/intervals.py [PANEL …] [--data FILE …] [--horizon 12]
"""

import argparse
import warnings

import numpy as np
from scipy.special import ndtri

import braided as bd
from braided.datasets import EMBEDDED, open_panel

HORIZONS = (1, 2, 3, 4, 6, 8, 12)
SHARE_OF_ROUNDS = 0.05  # the longest horizon
FIRST = 20  # rounds that do not count
LEVELS = (0.05, 0.5, 0.95)  # those of the ends of the interval, and the median
MEMORY = 0.01  # of the newest error in the running mean square


def running(errors, h):
    """Root mean squares (n, T) of the errors known h rounds before."""
    squares, seen, made = np.zeros(errors.shape[1]), np.zeros(errors.shape[1]), np.full(errors.shape, np.nan)
    for i in range(len(errors)):
        if i >= h:
            known = ~np.isnan(errors[i - h])
            seen += known
            newest = np.maximum(1.0 / np.maximum(seen, 1.0), MEMORY)
            squares = np.where(known, squares + newest * (errors[i - h] ** 2 - squares), squares)
        made[i] = np.where(seen > 0, np.sqrt(squares), np.nan)
    return made


def pinball(level, values, quantile):
    error = values - quantile
    return np.maximum(level * error, (level - 1.0) * error)


def of_ends(values, low, high):
    return 0.5 * (pinball(LEVELS[0], values, low) + pinball(LEVELS[-1], values, high))


def rows_of(panel, horizon):
    """The numbers of each horizon: those of the interval, and those of each level."""
    longest = min(horizon, int(SHARE_OF_ROUNDS * len(panel.times)))
    forecaster = bd.Forecaster(horizon=longest, quantiles=LEVELS)
    made = forecaster.update(panel.times, panel.values, panel.tasks)
    unit = np.nanstd(np.diff(panel.values, axis=0), axis=0)
    for h in [h for h in HORIZONS if h <= longest]:
        own = made.horizons == h
        error, *ends = np.full((3 + len(LEVELS), *panel.values.shape), np.nan)  # the ends as far from the forecast
        for table, column in zip([error, *ends], [made.actual, made.low, made.high, *made.quantiles.T], strict=True):
            table[np.searchsorted(panel.times, made.times[own]), made.places[own]] = (column - made.forecast)[own]
        normal = ndtri(LEVELS[-1]) * running(error, h)
        error[np.isnan(ends[0])] = error[:FIRST] = np.nan
        low, high, *quantiles = ends
        inside = np.where(np.isnan(error), np.nan, (low <= error) & (error <= high))
        times = np.array_split(np.flatnonzero(~np.isnan(inside).all(axis=1)), 10)
        worst = min(np.nanmean(inside[tenth]) for tenth in times), np.nanmin(np.nanmean(inside, axis=0))
        loss, beside = (np.nanmean(of_ends(error, *pair) / unit) for pair in ((low, high), (-normal, normal)))
        levels = []
        for level, quantile, symmetric in zip(LEVELS, quantiles, (low, 0.0, high), strict=True):
            below = np.nanmean(np.where(np.isnan(error), np.nan, error < quantile))
            one, other = (np.nanmean(pinball(level, error, end) / unit) for end in (quantile, symmetric))
            levels.append((below, one / other))
        yield h, (np.nanmean(inside), *worst), loss / beside, levels


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "panels", nargs="*", help="panels that come with braided; all by default, if there is no --data"
    )
    parser.add_argument("--data", nargs="*", default=[], help="files")
    parser.add_argument("--horizon", type=int, default=max(HORIZONS))
    given = parser.parse_args()
    print("| panel | ahead | held, % | worst tenth | worst stream | loss / normal |", end="")
    print("".join(f" below q{level} | loss / symmetric |" for level in LEVELS))
    print("|" + "---|" * (6 + 2 * len(LEVELS)))
    warnings.simplefilter("ignore", RuntimeWarning)  # means of streams without values
    for name in given.panels + given.data or [*EMBEDDED, "synthetic"]:
        panel = open_panel(name)
        for h, shares, ratio, levels in rows_of(panel, given.horizon):
            cells = [*(f"{100 * share:.1f}" for share in shares), f"{ratio:.3f}"]
            cells += [cell for below, loss in levels for cell in (f"{100 * below:.1f}", f"{loss:.3f}")]
            print(f"| {panel.name} | {h} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
