"""Filters for several rounds ahead: each forecast is made now, and learned when its target comes.

Row i of `X` is the input of round i. From it, the filters of the horizon h = k + 2 forecast the change until the end of
round i + h − 1, and at that round they learn it: y[k, i] is the change that ends with round i, and X[i − h + 1] the
input from which it was forecast. The first rows of X, as many as there are horizons, are of rounds that were forecast
before this call and whose targets come in it.

* `follow_inplace`: filters with the inputs of the next round's filters also have their gains, as a gain depends on
  inputs alone. A further horizon costs O(d) for a forecast and O(size of a filter) to learn a sample. Where the gains
  are those of robust filters, an innovation is clipped instead at a number of its own deviations.
* `delayed_inplace`: filters with inputs of their own, which know when the target is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from braided._compiled import compiled
from braided._compiled.linear import dot
from braided._compiled.rls_step import (
    FOLD,
    SCALE,
    correct_inplace,
    fold_inplace,
    fresh_errors,
    fresh_totals,
    gain_inplace,
    lose_inplace,
    rounding,
)
from braided.types import Floats, Ints

ROWS_AT_ONCE = 16  # whose gains are in the cache while all horizons learn them
FIRST_SAMPLES = 2.0  # that the first guess of a deviation counts for
DEVIATION_WINDOW = 200.0  # samples
SQUARE, SEEN = 0, 1  # of squares
OF_FILTERS = ("weights", "covariance", "totals")


class Followers(NamedTuple):
    """Weights of F filters of size m for each of K horizons, and the size of their innovations."""

    weights: Floats  # (K, F, m)
    squares: Floats  # (K, 2, T) running mean square of the innovations, and their number


def fresh_followers(n_horizons: int, n_filters: int, size: int, n_streams: int) -> Followers:
    """Return the followers before the first sample; h changes are √h times as large as one."""
    squares = np.zeros((n_horizons, 2, n_streams))
    squares[:, SQUARE] = np.arange(2.0, n_horizons + 2.0)[:, None]
    return Followers(np.zeros((n_horizons, n_filters, size)), squares)


@compiled
def innovation_inplace(squares: Floats, t: int, e: float, robust: float) -> float:
    """Return an innovation, clipped where `robust` is above 0, and take up its size."""
    if robust > 0.0:
        most = robust * np.sqrt(squares[SQUARE, t])
        e = min(max(e, -most), most)
    squares[SEEN, t] = min(squares[SEEN, t] + 1.0, DEVIATION_WINDOW)
    squares[SQUARE, t] += (e * e - squares[SQUARE, t]) / (squares[SEEN, t] + FIRST_SAMPLES)
    return e


@compiled
def follow_inplace(
    followers: Followers, X: Floats, gains: Floats, y: Floats, robust: float, learns: bool, made: Floats
) -> None:
    """Forecast rows of X (K + n, T, d) into `made` (K, n, T), and learn y (K, n, T), NaN where there is nothing.

    A gain (K + n, T, m) of 0 teaches nothing; one of NaN says that the filters began again before that sample.
    """
    (n_horizons, n, T), (d, m) = made.shape, (X.shape[2], gains.shape[2])
    one = followers.weights.shape[1] == 1
    for first in range(0, n, ROWS_AT_ONCE):
        for k in range(n_horizons):
            W, squares = followers.weights[k], followers.squares[k]
            for i in range(first, min(first + ROWS_AT_ONCE, n)):
                now, then = n_horizons + i, n_horizons + i - k - 1
                for t in range(T):
                    start = (t * d) % m
                    made[k, i, t] = dot(W[0 if one else t, start : start + d], X[now, t])
                for t in range(T if learns else 0):
                    g = gains[then, t]
                    if g[0] != g[0]:
                        W[:] = 0.0
                    elif y[k, i, t] == y[k, i, t]:
                        w, start = W[0 if one else t], (t * d) % m
                        e = innovation_inplace(squares, t, y[k, i, t] - dot(w[start : start + d], X[then, t]), robust)
                        for j in range(m):
                            w[j] += e * g[j]


class DelayedFilters(NamedTuple):
    """State of F filters of d inputs for each of K horizons."""

    weights: Floats  # (K, F, d)
    covariance: Floats  # (K, F, d, d) lower triangle of P / scale
    totals: Floats  # (K, F, 3) as of `filters.Filters`
    errors: Floats  # (K, F + 1, 3) as there
    resets: Ints  # (K,) how often a filter broke down and began again


def fresh_delayed(n_horizons: int, n_filters: int, d: int, penalty: float) -> DelayedFilters:
    """Return the filters before the first sample."""
    return DelayedFilters(
        weights=np.zeros((n_horizons, n_filters, d)),
        covariance=np.tile(np.eye(d) / penalty, (n_horizons, n_filters, 1, 1)),
        totals=np.tile(fresh_totals(n_filters, 1.0), (n_horizons, 1, 1)),
        errors=np.tile(fresh_errors(n_filters, 1.0), (n_horizons, 1, 1)),
        resets=np.zeros(n_horizons, np.int64),
    )


def joined(filters: DelayedFilters, more: DelayedFilters) -> DelayedFilters:
    """Return the filters with more at the end; the last row of the errors stays that of all."""
    arrays = {name: np.concatenate([getattr(filters, name), getattr(more, name)], axis=1) for name in OF_FILTERS}
    errors = np.concatenate([filters.errors[:, :-1], more.errors[:, :-1], filters.errors[:, -1:]], axis=1)
    return DelayedFilters(**arrays, errors=errors, resets=filters.resets)


@compiled
def learn_delayed_inplace(
    filters: DelayedFilters, k: int, f: int, x: Floats, y: float, setting: Floats, g: Floats
) -> None:
    """Learn one sample; the past fades while the filter knows more than its prior did."""
    w, P, totals, errors = filters.weights[k, f], filters.covariance[k, f], filters.totals[k, f], filters.errors[k]
    penalty, fade, robust = setting
    trace = 0.0
    for j in range(x.size):
        trace += P[j, j]
    if trace * totals[SCALE] * penalty >= x.size:
        fade = 1.0
    gain_inplace(g, P, 0, x)
    sample = (g, 0, x, y, 1.0, fade, 1.0, 1.0)
    weight, loss = correct_inplace(w, totals, *sample, errors, f, robust, rounding(P, 0, x))
    if weight >= 0.0:
        lose_inplace(P, g, loss)
        if totals[SCALE] > FOLD:
            fold_inplace(P, totals, x.size)
    else:
        filters.resets[k] += 1
        w[:] = 0.0
        P[:] = 0.0
        totals[SCALE] = 1.0
        for j in range(x.size):
            P[j, j] = 1.0 / penalty


@compiled
def delayed_inplace(filters: DelayedFilters, X: Floats, places: Ints, y: Floats, setting: Floats, made: Floats) -> None:
    """Forecast rows of X (K, K + n, T, d) into `made` (K, n, T), and learn y (K, n, T), NaN where there is nothing.

    `places` (K, K + n, T) is the filter of each sample; `setting` the penalty, the factor of forgetting per sample, and
    the number of deviations at which innovations are clipped, or 0.
    """
    (n_horizons, n, T), d = made.shape, X.shape[3]
    g = np.empty(d)
    for k in range(n_horizons):
        for i in range(n):
            now, then = n_horizons + i, n_horizons + i - k - 1
            for t in range(T):
                made[k, i, t] = dot(filters.weights[k, places[k, now, t]], X[k, now, t])
            for t in range(T):
                if y[k, i, t] == y[k, i, t]:
                    learn_delayed_inplace(filters, k, places[k, then, t], X[k, then, t], y[k, i, t], setting, g)
