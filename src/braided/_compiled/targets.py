"""Features and rules for several rounds ahead, from what was known before the first of them.

Round r is the next one, and `far` forecasts rounds r + 1, r + 2, … for the horizons h = 2, 3, …; o is the last known
round, r − 1. What differs by the round that is forecast, the *target*, is seen as of the target: its phase, and the
round m a whole number of seasons before it, the last of these that is not after o. The features are

| columns       |                                                                                            |
|---------------|--------------------------------------------------------------------------------------------|
| 1             | bias                                                                                       |
| 2 – 6         | D[o], D[o − 1], level Z[o], gaps N(Z)[o] − Z[o] and M(Z)[o] − Z[o]                         |
| each season   | Z[m] − Z[o], Z[m] − Z[m − h], and the mean changes at the phases from r to the target, summed |

and the rules, as changes from the last known level: no change · mean so far · recent mean · h times the mean change so
far, the recent one, and that of all streams · each season: value at m, change from m − h to m, summed mean changes.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from braided._compiled import compiled
from braided._compiled.panel import (
    CHANGE_MEAN,
    CHANGE_RECENT,
    CHANGES,
    LAST,
    LEVEL_MEAN,
    LEVEL_RECENT,
    LEVELS,
    MEAN_RECENT,
    OWN_LAGS,
    PHASE_PRIOR,
    ROUNDS,
    SCALE,
    Calendar,
    Described,
    Panel,
    Ties,
    absorb_inplace,
    describe_inplace,
    feature_groups,
    known,
)
from braided.types import Floats, Ints

LEVEL = OWN_LAGS + 1  # columns of the features of the next round
NEAR_GAP, MEAN_GAP = (feature_groups(0, 0, 0)[name] - 1 for name in ("near, gap", "mean, gap"))
FAR_FEATURES, FAR_SEASON_FEATURES = 6, 3
FAR_RULES, FAR_SEASON_RULES = 6, 3
FAR_OF_OTHERS = slice(4, 6)  # columns that see other streams


class Targets(NamedTuple):
    """Where the rounds that n forecasts are for stand in each of S seasons, by horizon."""

    back: Ints  # (n, H − 1, S) how many rounds m is before r, for h = 2 … H; 0 where there is no such round
    phase: Ints  # (n, H, S) bin of the phase, for h = 1 … H

    @classmethod
    def none(cls, n: int, n_seasons: int) -> Self:
        """Return the targets where only the next round is forecast."""
        return cls(np.zeros((n, 0, n_seasons), np.int64), np.zeros((n, 1, n_seasons), np.int64))


class Far(NamedTuple):
    """What n forecasts are made from, for h = 2 … H, in the last n rows; earlier ones are of earlier forecasts."""

    X: Floats  # (H − 1, m + n, T, F) features
    rules: Floats  # (H − 1, m + n, T, K) changes from the last known level, NaN where a rule has no forecast

    @classmethod
    def fresh(cls, n_horizons: int, n: int, n_streams: int, n_seasons: int) -> Self:
        """Return room for n rows."""
        n_features, n_rules = FAR_FEATURES + FAR_SEASON_FEATURES * n_seasons, FAR_RULES + FAR_SEASON_RULES * n_seasons
        return cls(
            np.zeros((n_horizons, n, n_streams, n_features)), np.full((n_horizons, n, n_streams, n_rules), np.nan)
        )


@compiled
def describe_targets_inplace(
    panel: Panel, ties: Ties, back: Ints, phase: Ints, X: Floats, far: Far, i: int, means: Floats
) -> None:
    """Write the features and rules of forecast i, from the features (T, F) of the next round; `means` is workspace."""
    Z, tallies, r = panel.levels, panel.tallies, int(panel.totals[ROUNDS])
    H, T, S = Z.shape[0], Z.shape[1], phase.shape[1]
    last = (r - 1) % H
    for t in range(T):
        level, has_change = tallies[LAST, t], tallies[CHANGES, t] > 0.0
        for s in range(S):
            means[s] = phase_mean(panel, ties.bins[s] + phase[0, s], t)
        for k in range(back.shape[0]):
            h = k + 2
            x, rules = far.X[k, i, t], far.rules[k, i, t]
            x[0], x[1], x[2], x[3] = 1.0, X[t, 1], X[t, 2], X[t, LEVEL]
            x[4], x[5] = X[t, NEAR_GAP], X[t, MEAN_GAP]
            rules[0] = 0.0
            rules[1] = tallies[LEVEL_MEAN, t] - level if tallies[LEVELS, t] > 0.0 else np.nan
            rules[2] = tallies[LEVEL_RECENT, t] - level
            rules[3] = h * tallies[CHANGE_MEAN, t] if has_change else np.nan
            rules[4] = h * tallies[CHANGE_RECENT, t] if has_change else np.nan
            rules[5] = h * panel.totals[MEAN_RECENT] if r > 0 else np.nan
            for s in range(S):
                j, rule = FAR_FEATURES + FAR_SEASON_FEATURES * s, FAR_RULES + FAR_SEASON_RULES * s
                means[s] += phase_mean(panel, ties.bins[s] + phase[k + 1, s], t)
                there, change = np.nan, np.nan
                if 0 < back[k, s] < H - h and back[k, s] <= r:
                    there = Z[(r - back[k, s]) % H, t]
                    if back[k, s] + h <= r:
                        change = there - Z[(r - back[k, s] - h) % H, t]
                is_known = r >= ties.known_from[s]
                x[j] = known(there - Z[last, t]) if is_known else 0.0
                x[j + 1] = known(change) if is_known else 0.0
                x[j + 2] = means[s]
                rules[rule], rules[rule + 1] = there - level, change
                rules[rule + 2] = means[s] if is_known else np.nan


@compiled
def phase_mean(panel: Panel, b: int, t: int) -> float:
    """The mean change of stream t at a phase, so far; the old fading."""
    return panel.phase_sums[b, t] / (panel.phase_visits[b, t] + PHASE_PRIOR)


@compiled
def progressive_inplace(
    panel: Panel,
    ties: Ties,
    calendar: Calendar,
    targets: Targets,
    levels: Floats,
    given: Floats,
    made: Described,
    far: Far,
) -> None:
    """Describe each round of levels (n, T), and those after it, from what was known before; then take it up."""
    means, before = np.empty(targets.phase.shape[2]), far.X.shape[1] - levels.shape[0]
    for i in range(levels.shape[0]):
        back, phase, angle = calendar.back[i], calendar.phase[i], calendar.angle[i]
        describe_inplace(panel, ties, back, phase, angle, given[i], made.X[i], made.rules[i])
        if far.X.shape[0] > 0:
            ahead = targets.back[i], targets.phase[i]
            describe_targets_inplace(panel, ties, *ahead, made.X[i], far, before + i, means)
        made.last[i] = panel.tallies[LAST]
        made.scale[i] = panel.tallies[SCALE]
        absorb_inplace(panel, ties, phase, calendar.is_after_gap[i], levels[i], made.y[i])
