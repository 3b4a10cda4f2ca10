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
from braided._compiled.rls_step import FOLD, LARGEST_ENTRY, LARGEST_SIZE
from braided.types import Floats, Ints

ROWS_AT_ONCE = 16  # whose gains are in the cache while all horizons learn them
FIRST_SAMPLES = 2.0  # that the first guess of a deviation counts for
DEVIATION_WINDOW = 200.0  # samples
SQUARE, SEEN = 0, 1  # of squares
SCALE, TRACE = 0, 1  # of sizes
OF_FILTERS = ("weights", "covariance", "sizes")


class Followers(NamedTuple):
    """Weights of F filters of size m for each of K horizons, and the size of their innovations."""

    weights: Floats  # (K, F, m)
    squares: Floats  # (K, 2, T) running mean square of the innovations, and their number


def fresh_followers(n_horizons: int, n_filters: int, size: int, n_streams: int) -> Followers:
    """Return the followers before the first sample."""
    return Followers(np.zeros((n_horizons, n_filters, size)), fresh_squares(n_horizons, n_streams))


def fresh_squares(n_horizons: int, n_streams: int) -> Floats:
    """Return the size of innovations (K, 2, T) before the first: h changes are √h times as large as one."""
    squares = np.zeros((n_horizons, 2, n_streams))
    squares[:, SQUARE] = np.arange(2.0, n_horizons + 2.0)[:, None]
    return squares


@compiled
def learn_square_inplace(squares: Floats, t: int, square: float) -> None:
    """Take up the square of an innovation."""
    squares[SEEN, t] = min(squares[SEEN, t] + 1.0, DEVIATION_WINDOW)
    squares[SQUARE, t] += (square - squares[SQUARE, t]) / (squares[SEEN, t] + FIRST_SAMPLES)


@compiled
def innovation_inplace(squares: Floats, t: int, e: float, robust: float) -> float:
    """Return an innovation, clipped where `robust` is above 0, and take up its size."""
    if robust > 0.0:
        most = robust * np.sqrt(squares[SQUARE, t])
        e = min(max(e, -most), most)
    learn_square_inplace(squares, t, e * e)
    return e


@compiled
def follow_inplace(
    followers: Followers, X: Floats, gains: Floats, y: Floats, robust: float, learns: bool, made: Floats
) -> None:
    """Forecast rows of X (K + n, T, d) into `made` (K, n, T), and learn y (K, n, T), NaN where there is nothing.

    A gain (K + n, T, m) of 0 teaches nothing; one of NaN says that the filters broke down there and began again.
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
    covariance: Floats  # (K, F, d, d) P / scale
    sizes: Floats  # (K, F, 2) scale, and trace of P / scale
    squares: Floats  # (K, 2, T) running mean of innovation² / variance of each stream, and their number
    resets: Ints  # (K,) how often a filter broke down and began again


def fresh_delayed(n_horizons: int, n_filters: int, d: int, penalty: float, n_streams: int) -> DelayedFilters:
    """Return the filters before the first sample."""
    return DelayedFilters(
        weights=np.zeros((n_horizons, n_filters, d)),
        covariance=np.tile(np.eye(d) / penalty, (n_horizons, n_filters, 1, 1)),
        sizes=np.tile([1.0, d / penalty], (n_horizons, n_filters, 1)),
        squares=fresh_squares(n_horizons, n_streams),
        resets=np.zeros(n_horizons, np.int64),
    )


def with_stream(filters: DelayedFilters, n_filters: int, penalty: float) -> DelayedFilters:
    """Return the filters with room for one more stream, which has `n_filters` of its own, at the end."""
    n_horizons, _, d = filters.weights.shape
    more = fresh_delayed(n_horizons, n_filters, d, penalty, 1)
    arrays = {name: np.concatenate([getattr(filters, name), getattr(more, name)], axis=1) for name in OF_FILTERS}
    return filters._replace(**arrays, squares=np.concatenate([filters.squares, more.squares], axis=2))


@compiled
def learn_delayed_inplace(
    w: Floats, P: Floats, sizes: Floats, squares: Floats, t: int, x: Floats, y: float, setting: Floats, g: Floats
) -> bool:
    """Learn one sample of stream t; False if the filter broke down and began again. `g` is workspace.

    The past fades while the filter knows more than before its first sample. An innovation of too many deviations is
    given the weight that makes it one of that many.
    """
    penalty, fade, robust = setting
    d, variance, e = x.size, 0.0, y
    for i in range(d):
        g[i] = 0.0
    for j in range(d):  # row by row: short sums would be slower
        row, factor = P[j], x[j]
        for i in range(d):
            g[i] += row[i] * factor
    for i in range(d):
        variance += g[i] * x[i]
        e -= w[i] * x[i]
    scale = sizes[SCALE]
    if sizes[TRACE] * scale * penalty < d:
        scale /= fade
    variance *= scale
    if not (0.0 <= variance <= LARGEST_ENTRY and abs(e) <= LARGEST_SIZE):
        begin_again_inplace(w, P, sizes, penalty)
        return False
    c = 1.0 / (1.0 + variance)
    square, most = e * e * c, robust * robust * squares[SQUARE, t]
    if robust > 0.0 and square > most:
        c, square = most / (e * e), most
    learn_square_inplace(squares, t, square)
    c *= scale
    root, trace = np.sqrt(c), 0.0
    for i in range(d):
        w[i] += c * e * g[i]
        g[i] *= root
    for i in range(d):
        row = P[i]
        for j in range(d):
            row[j] -= g[i] * g[j]  # the same above and below the diagonal
        trace += row[i]
    sizes[SCALE], sizes[TRACE] = scale, trace
    if scale > FOLD:
        for i in range(d):
            for j in range(d):
                P[i, j] *= scale
        sizes[SCALE], sizes[TRACE] = 1.0, trace * scale
    return True


@compiled
def begin_again_inplace(w: Floats, P: Floats, sizes: Floats, penalty: float) -> None:
    """Forget all that a filter has learned."""
    w[:] = 0.0
    P[:] = 0.0
    for i in range(w.size):
        P[i, i] = 1.0 / penalty
    sizes[SCALE], sizes[TRACE] = 1.0, w.size / penalty


@compiled
def delayed_inplace(filters: DelayedFilters, X: Floats, places: Ints, y: Floats, setting: Floats, made: Floats) -> None:
    """Forecast rows of X (K, K + n, T, d) into `made` (K, n, T), and learn y (K, n, T), NaN where there is nothing.

    `places` (K, K + n, T) is the filter of each sample; `setting` the penalty, the factor of forgetting per sample, and
    the number of deviations at which innovations weigh less, or 0.
    """
    n_horizons, n, T = made.shape
    g = np.empty(X.shape[3])
    for k in range(n_horizons):
        W, P, sizes, squares = filters.weights[k], filters.covariance[k], filters.sizes[k], filters.squares[k]
        for i in range(n):
            now, then = n_horizons + i, n_horizons + i - k - 1
            for t in range(T):
                made[k, i, t] = dot(W[places[k, now, t]], X[k, now, t])
            for t in range(T):
                if y[k, i, t] == y[k, i, t]:
                    f = places[k, then, t]
                    sample = X[k, then, t], y[k, i, t], setting
                    if not learn_delayed_inplace(W[f], P[f], sizes[f], squares, t, *sample, g):
                        filters.resets[k] += 1
