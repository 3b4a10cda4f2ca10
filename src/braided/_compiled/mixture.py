"""Bernstein online aggregation (Wintenberger 2017): forecasts of many members, weighted by how good they have been.

Each stream has weights of its own, and all streams together have one more set; the forecast is the mean of both. For a
member with the forecast f, the mixture's forecast ŷ and the value y, in units of the stream's typical error q:

    r = 2 (ŷ − y) (f − ŷ) / q²,  both differences clipped at 5 q      its regret is −Σ r
    E = max(0.99 E, |r|),  V = Σ r²,  η = min(1 / 2E, √(ln K / V)),  L = Σ r (1 + η r),  weight ∝ prior · η · exp(−η L)

E fades, so that a mixture that met a wild value learns again at its old pace. (Without that, E = max |r|.)

q² is a running mean, in which one unit counts as two errors; once there are a hundred, the old ones fade.

A member without a forecast sleeps: the others share its weight, and it learns nothing. But its E rises with what is
at stake among those awake, |r| in the mean: with E near 0, η would be so large that the first few rounds after it wakes
decide everything.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from braided._compiled import compiled
from braided.types import Floats

CLIP_ERRORS_AT = 5.0  # typical errors
ERROR_MEMORY = 0.01  # weight of the newest error in q², once there are enough
FIRST_ERRORS = 2.0  # errors that the unit counts for, in q²
WAKING = 0.2  # of the mean |r| of the members awake: the least E of one that sleeps
LARGEST_FADE = 0.99
LEAST_SQUARE = 1e-12  # of a typical error: that of a stream without errors must not vanish
UNTRIED_RATE = 0.5  # η before the first r that is more than rounding
LEAST_SQUARES = 1e-20  # V of nothing but rounding, as of a member that is the only one awake
FIRST_UPDATE = 3.0  # rounds
COMMON_SHARE = 0.5  # of the weights that all streams share, in the forecast
LARGEST, SQUARES, LOSS, RATE = range(4)  # E, V, L, η
ROUNDS, SHARE = range(2)  # of totals
OWN, COMMON = range(2)  # the weights that forecast: the stream's own, or those of all streams
SEEN = 2  # of errors, beside OWN and COMMON


class Mixture(NamedTuple):
    """State of the weights of K members, for T streams and all of them."""

    regrets: Floats  # (4, T + 1, K) E, V, L, η; the last row is that of all streams together
    errors: Floats  # (3, T) q², of the streams' own weights and of the common ones; number of errors so far
    totals: Floats  # (2,) rounds seen, share of the common weights in the forecast
    prior: Floats  # (K,) weights at the start

    @property
    def fresh_regrets(self) -> Floats:
        """Regrets (4, 1, K) of a stream that comes later: the common ones, or none where streams share no weights."""
        return self.regrets[:, -1:] if self.totals[SHARE] > 0.0 else fresh_regrets(1, len(self.prior))

    def with_stream(self) -> Mixture:
        """Return the mixture with one more stream."""
        regrets = np.concatenate([self.regrets[:, :-1], self.fresh_regrets, self.regrets[:, -1:]], axis=1)
        return self._replace(regrets=regrets, errors=np.hstack([self.errors, fresh_errors(1)]))


def take_over_inplace(mixture: Mixture, before: Mixture, ratio: Floats) -> None:
    """Go on with the weights of a mixture of the same members, and of the first streams here.

    `ratio` is how large units were, in units of now.
    """
    n = before.errors.shape[1]
    mixture.regrets[:, :n], mixture.regrets[:, -1] = before.regrets[:, :n], before.regrets[:, -1]
    mixture.regrets[:, n:-1] = before.fresh_regrets
    mixture.errors[:, :n] = before.errors
    mixture.errors[:SEEN, :n] *= ratio**2
    mixture.totals[:] = before.totals


def fresh_mixture(prior: Floats, n_streams: int, common: float = COMMON_SHARE) -> Mixture:
    """Return the state before the first round; with common = 0, streams share no weights."""
    totals = np.array([0.0, common])
    return Mixture(fresh_regrets(n_streams + 1, len(prior)), fresh_errors(n_streams), totals, prior)


def fresh_regrets(n_rows: int, n_members: int) -> Floats:
    """Return regrets (4, n, K) before the first."""
    regrets = np.zeros((4, n_rows, n_members))
    regrets[RATE] = UNTRIED_RATE
    return regrets


def fresh_errors(n_streams: int) -> Floats:
    """Return q² and the number of errors (3, T) before the first."""
    return np.repeat([[1.0], [1.0], [0.0]], n_streams, axis=1)


@compiled
def learning_rate(largest: float, squares: float, n_members: int) -> float:
    """η of a member."""
    if squares <= LEAST_SQUARES:
        return UNTRIED_RATE
    return min(0.5 / largest, np.sqrt(np.log(n_members) / squares))


@compiled
def weigh_inplace(mixture: Mixture, row: int, weights: Floats) -> None:
    """Write the weights of one row, up to a common factor."""
    losses, rates, prior = mixture.regrets[LOSS, row], mixture.regrets[RATE, row], mixture.prior
    least = np.inf
    for k in range(weights.size):
        weights[k] = rates[k] * losses[k]
        least = min(least, weights[k])
    for k in range(weights.size):
        weights[k] = prior[k] * rates[k] * np.exp(least - weights[k])


@compiled
def mean_of(weights: Floats, forecasts: Floats) -> float:
    """The mean of the forecasts that are there; 0 if none is."""
    total, weight = 0.0, 0.0
    for k in range(weights.size):
        if forecasts[k] == forecasts[k]:
            total += weights[k] * forecasts[k]
            weight += weights[k]
    return total / weight if weight > 0.0 else 0.0


@compiled
def clip(value: float, limit: float) -> float:
    """The value between −limit and limit."""
    return min(max(value, -limit), limit)


@compiled
def combine_inplace(mixture: Mixture, forecasts: Floats, weights: Floats, mean: Floats) -> None:
    """Write the weights (T + 1, K) and the forecasts (2, T) by own and by common weights, from the members' (T, K)."""
    T = forecasts.shape[0]
    weigh_inplace(mixture, T, weights[T])
    for t in range(T):
        weigh_inplace(mixture, t, weights[t])
        mean[OWN, t] = mean_of(weights[t], forecasts[t])
        mean[COMMON, t] = mean_of(weights[T], forecasts[t])


@compiled
def learn_regret_inplace(mixture: Mixture, row: int, k: int, r: float) -> None:
    """Take up r of one member."""
    E, V, L = mixture.regrets[LARGEST], mixture.regrets[SQUARES], mixture.regrets[LOSS]
    E[row, k] = max(LARGEST_FADE * E[row, k], abs(r))
    V[row, k] += r * r
    rate = learning_rate(E[row, k], V[row, k], mixture.prior.size)
    mixture.regrets[RATE, row, k] = rate
    L[row, k] += r * (1.0 + rate * r)


@compiled
def wake_inplace(mixture: Mixture, row: int, regrets: Floats) -> None:
    """Raise E of the members that sleep, whose r (K,) is NaN, to a share of the mean |r| of the others."""
    total, awake = 0.0, 0
    for r in regrets:
        if r == r:
            total += abs(r)
            awake += 1
    for k in range(regrets.size):
        if regrets[k] != regrets[k] and awake > 0:
            E, V = mixture.regrets[LARGEST, row], mixture.regrets[SQUARES, row]
            E[k] = max(E[k], WAKING * total / awake)
            mixture.regrets[RATE, row, k] = learning_rate(E[k], V[k], regrets.size)


@compiled
def learn_regrets_inplace(mixture: Mixture, row: int, regrets: Floats) -> None:
    """Take up r (K,) of all members, NaN of those that sleep; the first rounds teach nothing."""
    if mixture.totals[ROUNDS] < FIRST_UPDATE:
        return
    wake_inplace(mixture, row, regrets)
    for k in range(regrets.size):
        if regrets[k] == regrets[k]:
            learn_regret_inplace(mixture, row, k, regrets[k])


@compiled
def learn_inplace(mixture: Mixture, forecasts: Floats, mean: Floats, y: Floats, regrets: Floats) -> None:
    """Learn how good the members' forecasts (T, K) of values y (T,) were; `regrets` (3, K) is workspace."""
    T, K = forecasts.shape
    mixture.totals[ROUNDS] += 1.0
    common, counts = regrets[1], regrets[2]
    common[:] = 0.0
    counts[:] = 0.0
    for t in range(T):
        if y[t] != y[t]:
            continue
        mixture.errors[SEEN, t] += 1.0
        memory = max(ERROR_MEMORY, 1.0 / (mixture.errors[SEEN, t] + FIRST_ERRORS))
        for which in (OWN, COMMON):
            square = mixture.errors[which, t]
            most = CLIP_ERRORS_AT * np.sqrt(square)
            error = clip(mean[which, t] - y[t], most)
            for k in range(K):
                f = forecasts[t, k]
                regrets[0, k] = 2.0 * error * clip(f - mean[which, t], most) / square if f == f else np.nan
            if which == OWN:
                learn_regrets_inplace(mixture, t, regrets[0])
            else:
                for k in range(K):
                    if regrets[0, k] == regrets[0, k]:
                        common[k] += regrets[0, k]
                        counts[k] += 1.0
            mixture.errors[which, t] = max(square + memory * (error * error - square), LEAST_SQUARE)
    for k in range(K):
        common[k] = common[k] / counts[k] if counts[k] > 0.0 else np.nan
    learn_regrets_inplace(mixture, T, common)


class Mixed(NamedTuple):
    """Forecasts of n rounds by the mixture."""

    mean: Floats  # (n, T)
    weights: Floats  # (n, K) of each member, mean over the streams
    by_stream: Floats  # (T, K) of each member, summed over the rounds


@compiled
def share_out_inplace(weights: Floats, forecasts: Floats, share: float, shares: Floats) -> None:
    """Add `share` of the weights (K,) of the members that forecast, as fractions of their sum."""
    total = 0.0
    for k in range(shares.size):
        if forecasts[k] == forecasts[k]:
            total += weights[k]
    for k in range(shares.size):
        if forecasts[k] == forecasts[k] and total > 0.0:
            shares[k] += share * weights[k] / total


@compiled
def progressive_inplace(mixture: Mixture, forecasts: Floats, y: Floats, mixed: Mixed) -> None:
    """Combine the members' forecasts (n, T, K) of each round, then learn what came, y (n, T)."""
    n, T, K = forecasts.shape
    mean, regrets, weights, shares = np.empty((2, T)), np.empty((3, K)), np.empty((T + 1, K)), np.empty(K)
    shared = mixture.totals[SHARE]
    for i in range(n):
        combine_inplace(mixture, forecasts[i], weights, mean)
        mixed.weights[i] = 0.0
        for t in range(T):
            mixed.mean[i, t] = (1.0 - shared) * mean[OWN, t] + shared * mean[COMMON, t]
            shares[:] = 0.0
            share_out_inplace(weights[t], forecasts[i, t], 1.0 - shared, shares)
            share_out_inplace(weights[T], forecasts[i, t], shared, shares)
            for k in range(K):
                mixed.by_stream[t, k] += shares[k]
                mixed.weights[i, k] += shares[k] / T
        learn_inplace(mixture, forecasts[i], mean, y[i], regrets)


@compiled
def delayed_inplace(
    mixture: Mixture,
    delay: int,
    forecasts: Floats,
    means: Floats,
    y: Floats,
    learns: bool,
    mean: Floats,
) -> None:
    """Combine forecasts of several rounds ahead, each of which is learned when its target comes.

    The last n rows of `forecasts` (p + n, T, K) are combined: by own and by common weights into `means` (p + n, 2, T),
    and into `mean` (n, T); row i of y (n, T) belongs to the forecasts that were made `delay` rows before.
    """
    (n, T), K = y.shape, forecasts.shape[2]
    regrets, weights, p, shared = np.empty((3, K)), np.empty((T + 1, K)), len(forecasts) - n, mixture.totals[SHARE]
    for i in range(n):
        combine_inplace(mixture, forecasts[p + i], weights, means[p + i])
        for t in range(T):
            mean[i, t] = (1.0 - shared) * means[p + i, OWN, t] + shared * means[p + i, COMMON, t]
        if learns:
            learn_inplace(mixture, forecasts[p + i - delay], means[p + i - delay], y[i], regrets)
