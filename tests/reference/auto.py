"""Auto's features, rules and mixture, one stream and one round at a time, straight from their docstrings."""

import numpy as np


def changes_of(Z, is_after_gap):
    """D, NaN in the first round and after a gap in time."""
    D = np.vstack([np.full((1, Z.shape[1]), np.nan), np.diff(Z, axis=0)])
    D[is_after_gap] = np.nan
    return D


def at(values, r, t):
    """The value of round r, 0 where it is missing or before the first round."""
    return 0.0 if r < 0 or np.isnan(values[r, t]) else values[r, t]


def mean_near(values, S, r, t):
    """Mean over the neighbours of what is there, NaN if nothing is."""
    weights = np.where(np.isnan(values[r]), 0.0, S[t]) if r >= 0 else np.zeros(len(S))
    return np.nansum(weights * values[r]) / weights.sum() if weights.sum() > 0.0 else np.nan


def mean_all(values, r, most=np.inf):
    """Mean over all streams of what is there, clipped; 0 if nothing is."""
    there = values[r][~np.isnan(values[r])] if r >= 0 else np.empty(0)
    return np.clip(there, -most, most).mean() if len(there) else 0.0


def obvious_features(Z, S, alike, calendar, given, waves, known_from, r, t):
    """The features of stream t before round r."""
    back, phase, angle, is_after_gap = calendar
    D = changes_of(Z, is_after_gap)
    last, x = r - 1, [1.0]
    x += [at(D, r - k, t) if r >= 4 * k else 0.0 for k in range(1, 10)] + [at(Z, last, t)]
    x += [np.nan_to_num(mean_near(D, S, r - k, t)) for k in range(1, 4)]
    x += [np.nan_to_num(mean_near(Z, S, last, t) - Z[last, t]) if r else 0.0]
    x += [mean_all(D, r - k, 10.0) for k in (1, 2)] + [np.nan_to_num(mean_all(Z, last) - Z[last, t]) if r else 0.0]
    for s in range(back.shape[1]):
        then = r - back[r, s]
        if back[r, s] > 0 and r >= known_from[s]:
            near = np.nan_to_num(mean_near(D, S, then, t))
            x += [np.nan_to_num(Z[then, t] - Z[last, t]), at(D, then, t), at(D, then - 1, t), near]
        else:
            x += [0.0] * 4
    for s in range(back.shape[1]):
        visits = [D[m, t] for m in range(r) if phase[m, s] == phase[r, s] and not np.isnan(D[m, t])]
        fades = 0.9 ** np.arange(len(visits))[::-1]
        x += [fades @ visits / (fades.sum() + 0.5) if visits else 0.0]
    x += [at(given[r], t, k) for k in range(given.shape[2])]
    for s in range(back.shape[1]):
        for k in range(1, waves[s] + 1):
            x += [np.cos(2 * np.pi * k * angle[r, s]), np.sin(2 * np.pi * k * angle[r, s])]
    x += [1.0] + [np.clip(at(D, r - k, t), -10, 10) for k in (1, 2, 3)] + [centred(Z, last, t)]
    for o in alike[t]:
        x += [np.clip(at(D, r - k, o), -10, 10) for k in (1, 2)] + [centred(Z, last, o)] if o >= 0 else [0.0] * 3
    return np.array(x)


def centred(Z, last, t):
    """The last level less its running mean; 0 where it is missing."""
    if last < 0 or np.isnan(Z[last, t]):
        return 0.0
    mean = 0.0
    for n, z in enumerate((z for z in Z[: last + 1, t] if not np.isnan(z)), start=1):
        mean += (z - mean) * max(1.0 / n, 1.0 - 0.5 ** (1.0 / 500.0))
    return Z[last, t] - mean


def faded_mean(values, rate, start):
    """Exponential mean of the values."""
    for value in values:
        start += rate * (value - start)
    return start


def obvious_rules(Z, calendar, r, t):
    """What each rule forecasts for stream t before round r."""
    back, D = calendar.back, changes_of(Z, calendar.is_after_gap)
    levels, changes = Z[:r, t][~np.isnan(Z[:r, t])], D[:r, t][~np.isnan(D[:r, t])]
    last = levels[-1] if len(levels) else np.nan
    means = [mean_all(D, m, 10.0) for m in range(r)]
    made = [0.0]
    made += [levels.mean() - last, faded_mean(levels[1:], 0.2, levels[0]) - last] if len(levels) else [np.nan] * 2
    made += [changes.mean(), faded_mean(changes, 0.1, 0.0)] if len(changes) else [np.nan] * 2
    made += [D[r - 1, t] if r else np.nan]
    made += [means[-1], faded_mean(means, 0.3, 0.0)] if r else [np.nan] * 2
    for ago in back[r]:
        made += [Z[r - ago, t] - last, D[r - ago, t]] if 0 < ago <= r else [np.nan] * 2
    return np.array(made)


def obvious_scales(Z, calendar, r, t):
    """The typical change of stream t before round r."""
    scale = 1.0
    for change in changes_of(Z, calendar.is_after_gap)[:r, t]:
        if not np.isnan(change):
            scale = max(np.sqrt(0.97 * scale**2 + 0.03 * np.clip(change, -10 * scale, 10 * scale) ** 2), 0.05)
    return scale


def obvious_mixture(forecasts, y, prior, shared=0.5, delay=0):
    """Forecasts (n, T), last typical squares (2, T), weights (n, T, K) of a mixture of members' forecasts (n, T, K).

    Row i of y belongs to the forecasts that were made `delay` rows before.
    """
    n, T, K = forecasts.shape
    E, V, L = np.zeros((3, T + 1, K))
    squares, made, used = np.ones((2, T)), np.empty((n, T)), np.zeros((n, T, K))
    both, there = np.zeros((n, T, 2)), ~np.isnan(forecasts)  # by own and by common weights

    def rates(row):
        with np.errstate(divide="ignore"):
            return np.where(V[row] > 1e-20, np.minimum(0.5 / E[row], np.sqrt(np.log(K) / V[row])), 0.5)

    def learn(row, r, awake):
        if awake.any():
            E[row, ~awake] = np.maximum(E[row, ~awake], 0.2 * np.abs(r[awake]).mean())
        E[row, awake] = np.maximum(0.99 * E[row, awake], np.abs(r[awake]))
        V[row, awake] += r[awake] ** 2
        L[row, awake] += (r * (1 + rates(row) * r))[awake]

    for i in range(n):
        weights = np.array([prior * rates(row) * np.exp(-rates(row) * L[row]) for row in range(T + 1)])
        common, then = np.full((T, K), np.nan), max(i - delay, 0)
        for t in range(T):
            awake, f = there[i, t], np.nan_to_num(forecasts[i, t])
            shares = [w * awake / (w @ awake) if awake.any() else np.zeros(K) for w in weights[[t, T]]]
            both[i, t] = [share @ f for share in shares]
            used[i, t] = (1.0 - shared) * shares[0] + shared * shares[1]
            made[i, t] = used[i, t] @ f
            if np.isnan(y[i, t]):
                continue
            awake, f = there[then, t], np.nan_to_num(forecasts[then, t])
            for own, mean in enumerate(both[then, t]):
                q = np.sqrt(squares[own, t])
                error = np.clip(mean - y[i, t], -5 * q, 5 * q)
                r = 2 * error * np.clip(f - mean, -5 * q, 5 * q) / q**2
                if own == 1:
                    common[t, awake] = r[awake]
                elif i >= 2:
                    learn(t, r, awake)
                seen = 1 + np.count_nonzero(~np.isnan(y[:i, t]))
                squares[own, t] = max(q**2 + max(0.01, 1 / (seen + 2)) * (error**2 - q**2), 1e-12)
        some = ~np.isnan(common).all(axis=0)
        if i >= 2:
            mean = np.zeros(K)
            mean[some] = np.nanmean(common[:, some], axis=0)
            learn(T, mean, some)
    return made, squares, used
