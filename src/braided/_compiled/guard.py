"""The guard against wind-up: the information, P's inverse, is kept beside P, so that P can be rebuilt from it.

Where no new information comes (a silent task, a constant input), exponential forgetting fades the information without
end, and P winds up. Once a variance is far beyond that of the prior, or the arithmetic of a step breaks down, P is
rebuilt, with a little of the prior put back.
"""

import numpy as np

from braided._compiled import compiled, inlined
from braided._compiled.filters import Filters, flush_inplace, room_for
from braided._compiled.linear import dot, invert_inplace
from braided._compiled.rls_step import PRIOR_FLOOR, SCALE, fold_inplace
from braided.types import Floats

WOUND_UP_AT = 1e8  # times the prior variance


@inlined
def account_inplace(
    base: Floats, gained: Floats, scale: float, start: int, x: Floats, weight: float, own: float
) -> None:
    """Fade the information about the task of the sample that was just learned, then add the sample to it."""
    d = x.size
    if own != 1.0:
        root = np.sqrt(own)
        for k in range(start, start + d):
            for j in range(base.shape[0]):
                base[k, j] *= root
                base[j, k] *= root
    for k in range(d):
        more = weight * scale * x[k]
        for j in range(d):
            gained[k, j] = gained[k, j] * own + more * x[j]


@compiled
def fold_information_inplace(base: Floats, gained: Floats, scale: float) -> None:
    """Divide the information of a filter by the scale."""
    for i in range(base.shape[0]):
        for j in range(base.shape[1]):
            base[i, j] /= scale
    for t in range(gained.shape[0]):
        for k in range(gained.shape[1]):
            for j in range(gained.shape[2]):
                gained[t, k, j] /= scale


@compiled
def rebuild_inplace(filters: Filters, f: int, d: int, relation: Floats) -> bool:
    """Rebuild P of filter f from the information, with a little of the prior `relation` ⊗ I put back.

    Returns False, with nothing changed, if even that is not positive definite.
    """
    n, m = filters.weights.shape[1], filters.weights.shape[1] // d
    w, totals, base = filters.weights[f], filters.totals[f], filters.base[f]
    gained = filters.gained[f * m : (f + 1) * m]
    pull, information, scale = np.zeros(n), np.empty((n, n)), totals[SCALE]
    for i in range(n):
        for j in range(n):
            information[i, j] = base[i, j] / scale
    for t in range(m):
        for k in range(d):
            for j in range(d):
                information[t * d + k, t * d + j] += gained[t, k, j] / scale
            for s in range(m):
                more = PRIOR_FLOOR * relation[f, t, s]
                information[t * d + k, s * d + k] += more
                pull[t * d + k] += more * w[s * d + k]
    if not invert_inplace(information):
        return False
    for i in range(n):
        w[i] -= dot(information[i], pull)
        for j in range(i + 1):
            filters.covariance[f, i, j] = information[i, j]
    for t in range(m):
        for s in range(m):
            for k in range(d):
                base[t * d + k, s * d + k] += PRIOR_FLOOR * relation[f, t, s] * scale
    fold_information_inplace(base, gained, scale)
    totals[SCALE] = 1.0
    for k in range(filters.losses.shape[1]):
        filters.losses[f, k] = 0.0
    filters.pending[f] = 0
    filters.guarded[f] += 1
    return True


@compiled
def wound_up(P: Floats, limits: Floats, d: int, start: int, stop: int) -> bool:
    """Whether a variance between `start` and `stop` is far beyond that of the prior, one of `limits` per task."""
    for i in range(start, stop):  # noqa: SIM110 (compiled)
        if not P[i, i] <= WOUND_UP_AT * limits[i // d]:
            return True
    return False


@compiled
def take_up_inplace(filters: Filters, f: int) -> None:
    """Let P of filter f take up its pending terms."""
    if filters.pending[f] > 0:
        work = room_for(filters.weights, filters.losses)
        flush_inplace(filters.covariance[f], filters.terms[f], filters.losses[f], work)
        filters.pending[f] = 0


@compiled
def settle_inplace(filters: Filters, f: int, d: int, limits: Floats) -> bool:
    """Fold the scale of filter f; whether P has wound up far beyond the prior variances (`limits`; empty without)."""
    n = filters.weights.shape[1]
    P, totals, m = filters.covariance[f], filters.totals[f], n // d
    scale = totals[SCALE]
    take_up_inplace(filters, f)
    fold_inplace(P, totals, n)
    if limits.size == 0:
        return False
    fold_information_inplace(filters.base[f], filters.gained[f * m : (f + 1) * m], scale)
    return wound_up(P, limits[f], d, 0, n)


@compiled
def unwind_inplace(filters: Filters, f: int, d: int, relation: Floats, limits: Floats) -> None:
    """Rebuild P of filter f, or of all filters that have wound up if f is −1."""
    for other in range(filters.weights.shape[0]):
        if other == f or (f < 0 and wound_up(filters.covariance[other], limits[other], d, 0, filters.weights.shape[1])):
            rebuild_inplace(filters, other, d, relation)
