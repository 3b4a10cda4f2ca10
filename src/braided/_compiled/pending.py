"""Rank-one terms that P takes up together: the same arithmetic, but P is read and written once for several samples.

With terms pending, the covariance is P − G'LG, with gains as rows of G and losses L.
"""

from braided._compiled import compiled
from braided._compiled.rls_step import ROUNDING
from braided.types import Floats

GROUP = 8  # terms that P takes up in one pass
WIDE, HIGH = 256, 128  # columns and rows of the tiles of P


@compiled
def pack_inplace(packed: Floats, G: Floats, first: int, last: int) -> None:
    """packed ← columns `first` to `last` of G, row after row, WIDE apart, so that the compiler sees no overlap."""
    for k in range(G.shape[0]):
        for j in range(last - first):
            packed[k * WIDE + j] = G[k, first + j]


@compiled
def lose_group_inplace(
    P: Floats, top: int, bottom: int, first: int, last: int, G: Floats, losses: Floats, packed: Floats
) -> None:
    """P ← P − Σ loss g g' over eight terms, in rows `top` to `bottom` and columns `first` to `last`, all even numbers.

    Two rows at a time, so that each loaded number of a term serves both.
    """
    for i in range(top, bottom, 2):
        a, b, c, d = losses[0] * G[0, i], losses[1] * G[1, i], losses[2] * G[2, i], losses[3] * G[3, i]
        e, f, g, h = losses[4] * G[4, i], losses[5] * G[5, i], losses[6] * G[6, i], losses[7] * G[7, i]
        o = i + 1
        p, q, r, s = losses[0] * G[0, o], losses[1] * G[1, o], losses[2] * G[2, o], losses[3] * G[3, o]
        t, u, v, w = losses[4] * G[4, o], losses[5] * G[5, o], losses[6] * G[6, o], losses[7] * G[7, o]
        row, other = P[i, first : min(last, o)], P[o, first : min(last, o)]
        for j in range(row.size):
            ka, kb, kc, kd = packed[j], packed[WIDE + j], packed[2 * WIDE + j], packed[3 * WIDE + j]
            ke, kf, kg, kh = packed[4 * WIDE + j], packed[5 * WIDE + j], packed[6 * WIDE + j], packed[7 * WIDE + j]
            row[j] -= a * ka + b * kb + c * kc + d * kd + e * ke + f * kf + g * kg + h * kh
            other[j] -= p * ka + q * kb + r * kc + s * kd + t * ke + u * kf + v * kg + w * kh
        if o < last:  # its own place on the diagonal
            for k in range(GROUP):
                P[o, o] -= losses[k] * G[k, o] * G[k, o]


@compiled
def lose_all_inplace(P: Floats, G: Floats, losses: Floats, packed: Floats) -> None:
    """P ← P − Σ loss g g' over all terms, a multiple of eight; tile by tile, so that each stays in the cache.

    `packed` is workspace, WIDE numbers for each term.
    """
    n = P.shape[0]
    even = n - n % 2
    for first in range(0, even, WIDE):
        last = min(first + WIDE, even)
        pack_inplace(packed, G, first, last)
        for top in range(first, even, HIGH):
            bottom = min(top + HIGH, even)
            for k in range(0, losses.size, GROUP):
                group = slice(k, k + GROUP)
                lose_group_inplace(P, top, bottom, first, last, G[group], losses[group], packed[k * WIDE :])
    for i in range(even, n):  # the last row of an odd number
        for k in range(losses.size):
            factor = losses[k] * G[k, i]
            for j in range(n):
                P[i, j] -= factor * G[k, j]
    for i in range(n):
        if not P[i, i] > 0.0:  # negative by rounding
            P[i, i] = 0.0
            for k in range(losses.size):
                P[i, i] += ROUNDING * abs(losses[k]) * G[k, i] * G[k, i]
