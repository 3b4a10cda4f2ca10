"""The features of all streams, round by round, from what was known before the round; and forecasts by simple rules.

A stream's values come as *levels* Z, in units. D[t] = Z[t] − Z[t−1] is its change, which is there if both levels are.
N is the mean over a stream's neighbours, weighted by similarity, M the mean over all streams; both of what is there.
A feature that is not known is 0. The features stand in this order, so that most members read the first few columns:

| group      | columns                                                                                  |
|------------|------------------------------------------------------------------------------------------|
| bias       | 1                                                                                        |
| recent     | D[−1], D[−2]                                                                             |
| older      | D[−3] … D[−9]                                                                            |
| level      | Z[−1]                                                                                    |
| near       | N(D)[−1]; older: N(D)[−2], N(D)[−3]; gap: N(Z)[−1] − Z[−1]                               |
| mean       | M(D)[−1]; older: M(D)[−2]; gap: M(Z)[−1] − Z[−1]                                         |
| seasons    | each: Z[−s] − Z[−1], D[−s], D[−s−1], N(D)[−s]                                            |
| phases     | each season: mean change at this phase of the season so far, the old fading              |
| known      | what the caller gives: further columns as known last, and holidays of the coming round   |
| planned    | what the caller knows ahead: of the coming round, and of the last one                    |
| waves      | each season: cos and sin of 2π k · phase                                                 |
| others     | 1, D[−1] … D[−3], level; and D[−1], D[−2], level of each of the streams most alike       |

The last group's levels are less their running mean. Where a gap in time comes before a round, its change is missing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from braided._compiled import compiled
from braided.types import Flags, Floats, Ints

OWN_LAGS = 9
RECENT_LAGS = 2
ROUNDS_PER_LAG = 4  # lag k is used from this many rounds times k on, so that few rounds have few features
NEIGHBOUR_LAGS = 3
MEAN_LAGS = 2
SEASON_FEATURES = 4
OTHERS_OWN_LAGS = 3
OTHERS_LAGS = 2
CLIP_CHANGES_AT = 10.0  # units; in means and in `others`
PHASE_FADE = 0.9  # per visit
PHASE_PRIOR = 0.5  # visits at which nothing changed
MEAN_MEMORY = 1.0 - 0.5 ** (1.0 / 500.0)  # half-life of 500 rounds
LEVEL_WEIGHT, CHANGE_WEIGHT, COMMON_WEIGHT = 0.2, 0.1, 0.3  # of the newest value, in exponential means
SCALE_FADE, LEAST_SCALE = 0.97, 0.05
RULES = 8  # and two for each season
LAST, SCALE, LEVELS, LEVEL_MEAN, LEVEL_RECENT, CHANGES, CHANGE_MEAN, CHANGE_RECENT, CENTRE = range(9)  # of tallies
ROUNDS, MEAN_RECENT, MEAN_LEVEL = range(3)  # of totals
BY_STREAM = ("levels", "changes", "near", "gaps", "phase_sums", "phase_visits", "tallies")  # arrays, a column a stream


class Panel(NamedTuple):
    """What is remembered of T streams over the last H rounds; row r % H is that of round r."""

    levels: Floats  # (H, T)
    changes: Floats  # (H, T)
    near: Floats  # (H, T) N(D), 0 where no neighbour has a change
    mean: Floats  # (H,) M(D), 0 where no stream has one
    gaps: Floats  # (2, T) N(Z) − Z and M(Z) − Z of the last round, 0 where unknown
    phase_sums: Floats  # (B, T) faded sums of changes by phase, those of all seasons in turn
    phase_visits: Floats  # (B, T)
    tallies: Floats  # (9, T) last level, typical change, and running means of levels and changes with their counts
    totals: Floats  # (3,) rounds, recent mean change, mean level of the last round

    @property
    def last(self) -> Floats:
        """The last known level (T,) of each stream, NaN before the first."""
        return self.tallies[LAST]

    @property
    def scale(self) -> Floats:
        """The typical change (T,) of each stream lately."""
        return self.tallies[SCALE]

    def with_stream(self, levels: Floats) -> Panel:
        """Return the panel with one more stream, whose last levels (m, 1) are known; its phases are not."""
        n_rounds, n_bins = len(self.levels), len(self.phase_sums)
        one, m = fresh_panel(1, n_rounds, n_bins), len(levels)
        one.totals[ROUNDS] = self.totals[ROUNDS] - m  # so that its rows are those of the others
        none = np.zeros((m, 0), np.int64)
        calendar = Calendar(none, none, none.astype(np.float64), np.zeros(m, np.bool_))
        made = Described(
            np.empty((m, 1, feature_groups(0, 0, 0)["others"])), *np.empty((1, m, 1, RULES)), *np.empty((3, m, 1))
        )
        progressive_inplace(one, Ties.none(1), calendar, levels, np.empty((m, 1, 0)), made)
        parts = {name: np.concatenate([getattr(self, name), getattr(one, name)], axis=-1) for name in BY_STREAM}
        return self._replace(**parts)


class Ties(NamedTuple):
    """Which streams are related, and the seasons that all have."""

    starts: Ints  # (T + 1,)
    neighbours: Ints
    similarity: Floats
    alike: Ints  # (T, m) the most similar streams, −1 where there are fewer
    waves: Ints  # (S,) harmonics of each season
    bins: Ints  # (S + 1,) where the phases of each season begin
    known_from: Ints  # (S,) rounds from which features of each season are used

    @classmethod
    def none(cls, n_streams: int) -> Ties:
        """Return what streams without neighbours and seasons have."""
        empty, nobody = np.empty(0, np.int64), np.empty((n_streams, 0), np.int64)
        starts, bins = np.zeros(n_streams + 1, np.int64), np.zeros(1, np.int64)
        return cls(starts, empty, np.empty(0), nobody, empty, bins, empty)


class Calendar(NamedTuple):
    """Where n rounds stand in each of S seasons."""

    back: Ints  # (n, S) how many rounds ago it was one season ago; 0 where there was no such round
    phase: Ints  # (n, S) bin of the phase
    angle: Floats  # (n, S) phase from 0 to 1
    is_after_gap: Flags  # (n,)


def feature_groups(n_waves: int, n_seasons: int, n_alike: int, n_given: int = 0, n_planned: int = 0) -> dict[str, int]:
    """Return where each group of features ends, in order."""
    sizes = {
        "bias": 1,
        "recent": RECENT_LAGS,
        "older": OWN_LAGS - RECENT_LAGS,
        "level": 1,
        "near": 1,
        "near, older": NEIGHBOUR_LAGS - 1,
        "near, gap": 1,
        "mean": 1,
        "mean, older": MEAN_LAGS - 1,
        "mean, gap": 1,
        "seasons": SEASON_FEATURES * n_seasons,
        "phases": n_seasons,
        "known": n_given,
        "planned": n_planned,
        "waves": 2 * n_waves,
        "others": 2 + OTHERS_OWN_LAGS + n_alike * (OTHERS_LAGS + 1),
    }
    return dict(zip(sizes, np.cumsum(list(sizes.values())).tolist(), strict=True))


def fresh_panel(n_streams: int, n_rounds: int, n_bins: int) -> Panel:
    """Return the state before the first round, which will remember that many rounds."""
    tallies = np.zeros((9, n_streams))
    tallies[[LAST, LEVEL_RECENT]] = np.nan
    tallies[SCALE] = 1.0
    unknown = np.full((2, n_rounds, n_streams), np.nan)
    phases = np.zeros((2, n_bins, n_streams))
    near, gaps = np.zeros((n_rounds, n_streams)), np.zeros((2, n_streams))
    return Panel(unknown[0], unknown[1], near, np.zeros(n_rounds), gaps, phases[0], phases[1], tallies, np.zeros(3))


@compiled
def known(value: float) -> float:
    """The value, or 0 where it is missing."""
    return value if value == value else 0.0


@compiled
def clipped(change: float) -> float:
    """A change, clipped; 0 where it is missing."""
    return min(max(known(change), -CLIP_CHANGES_AT), CLIP_CHANGES_AT)


@compiled
def describe_inplace(
    panel: Panel, ties: Ties, back: Ints, phase: Ints, angle: Floats, given: Floats, X: Floats, rules: Floats
) -> None:
    """Write the features (T, F) and the rules' forecasts (T, K) of the next round, NaN where a rule has none."""
    Z, D, near, tallies, r = panel.levels, panel.changes, panel.near, panel.tallies, int(panel.totals[ROUNDS])
    H, T, S, E = Z.shape[0], Z.shape[1], back.size, given.shape[1]
    last = (r - 1) % H
    for t in range(T):
        x, j = X[t], 1
        x[0] = 1.0
        for k in range(1, OWN_LAGS + 1):
            x[j] = known(D[(r - k) % H, t]) if r >= ROUNDS_PER_LAG * k else 0.0
            j += 1
        x[j] = known(Z[last, t])
        j += 1
        for k in range(1, NEIGHBOUR_LAGS + 1):
            x[j] = near[(r - k) % H, t]
            j += 1
        x[j] = panel.gaps[0, t]
        j += 1
        for k in range(1, MEAN_LAGS + 1):
            x[j] = panel.mean[(r - k) % H]
            j += 1
        x[j] = panel.gaps[1, t]
        j += 1
        for s in range(S):
            for k in range(SEASON_FEATURES):
                x[j + k] = 0.0
            if 0 < back[s] < H - 1 and r >= ties.known_from[s]:
                then = (r - back[s]) % H
                x[j] = known(Z[then, t] - Z[last, t])
                x[j + 1] = known(D[then, t])
                x[j + 2] = known(D[(then - 1) % H, t])
                x[j + 3] = near[then, t]
            j += SEASON_FEATURES
        for s in range(S):
            b = ties.bins[s] + phase[s]
            x[j] = panel.phase_sums[b, t] / (panel.phase_visits[b, t] + PHASE_PRIOR)
            j += 1
        for k in range(E):
            x[j] = known(given[t, k])
            j += 1
        for s in range(S):
            for k in range(1, ties.waves[s] + 1):
                if t == 0:
                    x[j], x[j + 1] = np.cos(2.0 * np.pi * k * angle[s]), np.sin(2.0 * np.pi * k * angle[s])
                else:  # the same for all streams
                    x[j], x[j + 1] = X[0, j], X[0, j + 1]
                j += 2
        x[j] = 1.0
        j += 1
        for k in range(1, OTHERS_OWN_LAGS + 1):
            x[j] = clipped(D[(r - k) % H, t])
            j += 1
        x[j] = known(Z[last, t] - tallies[CENTRE, t])
        j += 1
        for i in range(ties.alike.shape[1]):
            o = ties.alike[t, i]
            for k in range(1, OTHERS_LAGS + 1):
                x[j] = clipped(D[(r - k) % H, o]) if o >= 0 else 0.0
                j += 1
            x[j] = known(Z[last, o] - tallies[CENTRE, o]) if o >= 0 else 0.0
            j += 1
        _apply_rules_inplace(panel, back, t, rules[t])


@compiled
def _apply_rules_inplace(panel: Panel, back: Ints, t: int, rules: Floats) -> None:
    """Write what each rule forecasts for stream t, as a change from its last known level."""
    tallies, H, r = panel.tallies, panel.levels.shape[0], int(panel.totals[ROUNDS])
    level, has_change = tallies[LAST, t], tallies[CHANGES, t] > 0.0
    rules[0] = 0.0  # no change
    rules[1] = tallies[LEVEL_MEAN, t] - level if tallies[LEVELS, t] > 0.0 else np.nan
    rules[2] = tallies[LEVEL_RECENT, t] - level
    rules[3] = tallies[CHANGE_MEAN, t] if has_change else np.nan
    rules[4] = tallies[CHANGE_RECENT, t] if has_change else np.nan
    rules[5] = panel.changes[(r - 1) % H, t] if r > 0 else np.nan
    rules[6] = panel.mean[(r - 1) % H] if r > 0 else np.nan
    rules[7] = panel.totals[MEAN_RECENT] if r > 0 else np.nan
    for s in range(back.size):
        rules[RULES + 2 * s], rules[RULES + 2 * s + 1] = np.nan, np.nan
        if 0 < back[s] < H - 1 and back[s] <= r:
            then = (r - back[s]) % H
            rules[RULES + 2 * s] = panel.levels[then, t] - level
            rules[RULES + 2 * s + 1] = panel.changes[then, t]


@compiled
def absorb_inplace(panel: Panel, ties: Ties, phase: Ints, is_after_gap: bool, row: Floats, y: Floats) -> None:
    """Store the levels (T,) of a round, NaN where missing, and write its changes into y."""
    Z, D, near, tallies, totals = panel.levels, panel.changes, panel.near, panel.tallies, panel.totals
    H, T = Z.shape
    r = int(totals[ROUNDS])
    now, last = r % H, (r - 1) % H
    change_sum, changes, level_sum, levels = 0.0, 0, 0.0, 0
    for t in range(T):
        z = row[t]
        Z[now, t] = z
        D[now, t] = z - Z[last, t] if r > 0 and not is_after_gap else np.nan
        y[t] = D[now, t]
        if z == z:
            level_sum += z
            levels += 1
            _remember_level_inplace(tallies, t, z)
        if y[t] == y[t]:
            change_sum += clipped(y[t])
            changes += 1
            _remember_change_inplace(panel, ties, phase, t, y[t])
    panel.mean[now] = change_sum / changes if changes > 0 else 0.0
    totals[MEAN_LEVEL] = level_sum / levels if levels > 0 else 0.0
    totals[MEAN_RECENT] += COMMON_WEIGHT * (panel.mean[now] - totals[MEAN_RECENT])
    totals[ROUNDS] += 1.0
    for t in range(T):
        change, by_change, level, by_level = 0.0, 0.0, 0.0, 0.0
        for m in range(ties.starts[t], ties.starts[t + 1]):
            o, similarity = ties.neighbours[m], ties.similarity[m]
            if D[now, o] == D[now, o]:
                change += similarity * D[now, o]
                by_change += similarity
            if row[o] == row[o]:
                level += similarity * row[o]
                by_level += similarity
        near[now, t] = change / by_change if by_change > 0.0 else 0.0
        panel.gaps[0, t] = known(level / by_level - row[t]) if by_level > 0.0 else 0.0
        panel.gaps[1, t] = known(totals[MEAN_LEVEL] - row[t])


@compiled
def _remember_level_inplace(tallies: Floats, t: int, z: float) -> None:
    tallies[LAST, t] = z
    tallies[LEVELS, t] += 1.0
    tallies[LEVEL_MEAN, t] += (z - tallies[LEVEL_MEAN, t]) / tallies[LEVELS, t]
    recent = tallies[LEVEL_RECENT, t]
    tallies[LEVEL_RECENT, t] = recent + LEVEL_WEIGHT * (z - recent) if recent == recent else z
    tallies[CENTRE, t] += (z - tallies[CENTRE, t]) * max(1.0 / tallies[LEVELS, t], MEAN_MEMORY)


@compiled
def _remember_change_inplace(panel: Panel, ties: Ties, phase: Ints, t: int, change: float) -> None:
    tallies = panel.tallies
    tallies[CHANGES, t] += 1.0
    tallies[CHANGE_MEAN, t] += (change - tallies[CHANGE_MEAN, t]) / tallies[CHANGES, t]
    tallies[CHANGE_RECENT, t] += CHANGE_WEIGHT * (change - tallies[CHANGE_RECENT, t])
    for s in range(phase.size):
        b = ties.bins[s] + phase[s]
        panel.phase_sums[b, t] = PHASE_FADE * panel.phase_sums[b, t] + change
        panel.phase_visits[b, t] = PHASE_FADE * panel.phase_visits[b, t] + 1.0
    scale = tallies[SCALE, t]
    most = CLIP_CHANGES_AT * scale
    size = min(max(change, -most), most)
    tallies[SCALE, t] = max(np.sqrt(SCALE_FADE * scale * scale + (1.0 - SCALE_FADE) * size * size), LEAST_SCALE)


class Described(NamedTuple):
    """What is known before each of n rounds, and what came."""

    X: Floats  # (n, T, F) features
    rules: Floats  # (n, T, K) changes that rules forecast
    last: Floats  # (n, T) last known level, NaN before the first
    scale: Floats  # (n, T) typical change lately
    y: Floats  # (n, T) changes, NaN where there is none


@compiled
def progressive_inplace(
    panel: Panel, ties: Ties, calendar: Calendar, levels: Floats, given: Floats, made: Described
) -> None:
    """Describe each round of levels (n, T) from what was known before it, then take it up."""
    for i in range(levels.shape[0]):
        back, phase, angle = calendar.back[i], calendar.phase[i], calendar.angle[i]
        describe_inplace(panel, ties, back, phase, angle, given[i], made.X[i], made.rules[i])
        made.last[i] = panel.tallies[LAST]
        made.scale[i] = panel.tallies[SCALE]
        absorb_inplace(panel, ties, phase, calendar.is_after_gap[i], levels[i], made.y[i])
