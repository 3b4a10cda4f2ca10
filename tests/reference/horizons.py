"""Forecasts of several rounds ahead, one stream, one round and one horizon at a time, straight from the docstrings."""

import numpy as np

from tests.reference.auto import at, changes_of, faded_mean, mean_all, mean_near
from tests.reference.linear import stack


def obvious_phase_mean(D, phases, phase, r, t):
    """Mean change of stream t at a phase before round r, the old fading."""
    visits = [D[m, t] for m in range(r) if phases[m] == phase and not np.isnan(D[m, t])]
    fades = 0.9 ** np.arange(len(visits))[::-1]
    return fades @ visits / (fades.sum() + 0.5) if visits else 0.0


def obvious_seasons(Z, D, calendar, targets, remembered, r, t, h):
    """Z[m], Z[m] − Z[m − h] and the summed mean changes of each season; NaN where a round is not known."""
    for s, ago in enumerate(targets.back[r, h - 2]):
        m = r - ago
        there = Z[m, t] if 0 < ago < remembered - h and m >= 0 else np.nan
        change = there - Z[m - h, t] if m >= h else np.nan
        yield (
            there,
            change,
            sum(obvious_phase_mean(D, calendar.phase[:, s], phase, r, t) for phase in targets.phase[r, :h, s]),
        )


def obvious_far_features(Z, S, calendar, targets, known_from, remembered, r, t, h):
    """The features of stream t from which the round h − 1 after r is forecast before round r."""
    D, o, x = changes_of(Z, calendar.is_after_gap), r - 1, [1.0]
    x += [at(D, o, t) if r >= 4 else 0.0, at(D, o - 1, t) if r >= 8 else 0.0, at(Z, o, t)]
    x += [
        np.nan_to_num(mean(Z) - Z[o, t]) if r else 0.0
        for mean in (lambda Z: mean_near(Z, S, o, t), lambda Z: mean_all(Z, o))
    ]
    for s, (there, change, means) in enumerate(obvious_seasons(Z, D, calendar, targets, remembered, r, t, h)):
        is_known = r >= known_from[s]
        x += [np.nan_to_num(there - Z[o, t]) if is_known else 0.0, np.nan_to_num(change) if is_known else 0.0, means]
    return np.array(x)


def obvious_far_rules(Z, calendar, targets, known_from, remembered, r, t, h):
    """What each rule forecasts, before round r, for stream t in the round h − 1 after it."""
    D = changes_of(Z, calendar.is_after_gap)
    levels, changes = Z[:r, t][~np.isnan(Z[:r, t])], D[:r, t][~np.isnan(D[:r, t])]
    last, made = levels[-1] if len(levels) else np.nan, [0.0]
    made += [levels.mean() - last, faded_mean(levels[1:], 0.2, levels[0]) - last] if len(levels) else [np.nan] * 2
    made += [h * changes.mean(), h * faded_mean(changes, 0.1, 0.0)] if len(changes) else [np.nan] * 2
    made += [h * faded_mean([mean_all(D, m, 10.0) for m in range(r)], 0.3, 0.0) if r else np.nan]
    for s, (there, change, means) in enumerate(obvious_seasons(Z, D, calendar, targets, remembered, r, t, h)):
        made += [there - last, change, means if r >= known_from[s] else np.nan]
    return np.array(made)


def obvious_square(squares, h):
    """Running mean of the squares of innovations; the first guess of it, h, counts for two of them."""
    mean = h
    for n, square in enumerate(squares, start=1):
        mean += (square - mean) / (min(n, 200) + 2)
    return mean


def obvious_innovation(seen, h, e, robust):
    """An innovation after those that were seen, clipped at a number of deviations."""
    most = robust * np.sqrt(obvious_square(np.square(seen), h)) if robust else np.inf
    return np.clip(e, -most, most)


def obvious_followers(X, gains, y, n_filters, robust):
    """Forecasts (K, n, T) from rows of X (K + n, T, d), with the gains of others, that learn y (K, n, T)."""
    (K, n, T), (d, m), made = y.shape, (X.shape[2], gains.shape[2]), np.empty(y.shape)
    for k in range(K):
        W, seen = np.zeros((n_filters, m)), [[] for _ in range(T)]
        for i in range(n):
            now, then = (
                [stack(x, t, T) if m > d else x for t, x in enumerate(X[row])] for row in (K + i, K + i - k - 1)
            )
            which = [t if n_filters > 1 else 0 for t in range(T)]
            made[k, i] = [W[f] @ z for f, z in zip(which, now, strict=True)]
            for t, g in enumerate(gains[K + i - k - 1]):
                if np.isnan(g).any():
                    W[:] = 0.0
                elif not np.isnan(y[k, i, t]):
                    e = obvious_innovation(seen[t], k + 2.0, y[k, i, t] - W[which[t]] @ then[t], robust)
                    seen[t].append(e)
                    W[which[t]] += e * g
    return made


class ObviousFilter:
    """Recursive least squares in information form."""

    def __init__(self, d, penalty):
        self.w, self.information = np.zeros(d), penalty * np.eye(d)

    def learn(self, x, y, penalty, fade, most):
        """Learn a sample, with less weight if its innovation² / variance is above `most`; return that."""
        if np.trace(np.linalg.inv(self.information)) * penalty < len(x):
            self.information *= fade
        v, e, weight = x @ np.linalg.solve(self.information, x), y - self.w @ x, 1.0
        if e**2 / (1.0 + v) > most:
            weight = 1.0 / (e**2 / most - v)
        self.information += weight * np.outer(x, x)
        self.w = self.w + weight * e * np.linalg.solve(self.information, x)
        return min(e**2 / (1.0 + v), most)


def obvious_delayed(X, places, y, n_filters, setting):
    """Forecasts (K, n, T) from rows of X (K, K + n, T, d), that learn y (K, n, T); and the number of new beginnings."""
    (K, n, T), d, made, resets = y.shape, X.shape[3], np.empty(y.shape), np.zeros(len(y), int)
    penalty, fade, robust = setting
    for k in range(K):
        filters, squares = [ObviousFilter(d, penalty) for _ in range(n_filters)], [[] for _ in range(T)]
        for i in range(n):
            made[k, i] = [filters[places[k, K + i, t]].w @ X[k, K + i, t] for t in range(T)]
            for t in np.flatnonzero(~np.isnan(y[k, i])):
                place, x = places[k, K + i - k - 1, t], X[k, K + i - k - 1, t]
                if max(*np.abs(x), abs(y[k, i, t])) > 1e140:
                    filters[place], resets[k] = ObviousFilter(d, penalty), resets[k] + 1
                else:
                    most = robust**2 * obvious_square(squares[t], k + 2.0) if robust else np.inf
                    squares[t].append(filters[place].learn(x, y[k, i, t], penalty, fade, most))
    return made, resets


def obvious_spread(errors, unit, delay, misses, log_factor, levels):
    """Half-widths, offsets of quantiles (Q, n, T) and typical errors; errors (n, T) come `delay` rounds later.

    `levels` are given with their first multiples.
    """
    (n, T), h = errors.shape, delay + 1.0
    fast = 0.5 / h**0.25
    own, seen, log, scales, widths = np.empty((2, T)), np.zeros(T), np.full(T, log_factor), *np.empty((2, n, T))
    square, c, common, rounds = h, 1.0, 0.0, 0
    share, offsets = np.array([*levels])[:, None], np.empty((len(levels), n, T))
    multiples, shared = np.arcsinh(np.tile([*levels.values()], (T, 1))).T, np.zeros((len(levels), 1))
    for i in range(n):
        scales[i] = np.where(
            seen > 0, own[0] ** ((1.0 - fast) / 2.0) * own[1] ** (fast / 2.0) + 0.0 * unit, unit * np.sqrt(square)
        )
        widths[i] = np.exp(log + common) * c ** (0.5 / h**0.125) * scales[i]
        offsets[:, i] = np.sinh(multiples + shared) * c ** (0.5 / h**0.125) * scales[i]
        widths[i, np.isinf(widths[i])] = np.nan
        t = np.flatnonzero(~np.isnan(errors[i] + widths[i - delay]) & (scales[i - delay] > 0.0)) if i >= delay else []
        if len(t) == 0:
            continue
        e, s, miss = errors[i, t], scales[i - delay, t], (np.abs(errors[i, t]) > widths[i - delay, t]) - misses
        own[:, t] = np.where(seen[t] > 0, own[:, t], s**2)
        seen[t] += 1
        lower, says = share - (e <= offsets[:, i - delay, t]), np.abs(e) > 1e-3 * s
        for row, memory, learns in zip(own, (0.005, 0.1 / np.sqrt(h)), (says, True), strict=True):
            clipped = np.minimum(e**2, 100 * np.maximum(s, 0.1 * unit[t]) ** 2)
            row[t] += learns * np.maximum(memory, 1 / (seen[t] + 2)) * (clipped - row[t])
        step = says * 0.5 * np.maximum(0.25 * seen[t] ** -0.6, 0.02) / h
        log[t] += step * miss
        multiples[:, t] += step * lower
        if not says.any():
            continue
        t, e, s, miss, rounds = t[says], e[says], s[says], miss[says], rounds + 1
        square += (np.minimum((e / unit[t]) ** 2, 100 * square).mean() - square) / (rounds + 1)
        memory = max(min(len(t) / (500 * np.sqrt(h)), 0.3), 1 / (rounds + 1))
        c += memory * (np.minimum((e / s) ** 2, 25).mean() - c)
        step = 0.7 * max(0.25 * rounds**-0.6, 0.02) / h
        common += step * miss.mean()
        shared += step * lower[:, says].mean(axis=1, keepdims=True)
    return widths, offsets, scales
