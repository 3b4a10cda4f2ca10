"""The state of F recursive least squares filters that each serve an equal share of the tasks, and one step of one.

F = 1 is MT-WRLS (one filter of size dT serves all), F = T is WRLS (one filter of size d per task).

P need not be touched at every sample: with terms pending (pending.py), a gain is P z − G'L(G z), and once there are r
of them, P takes them up together (`solver="blocked"`). Without room for pending terms, P takes up each sample as it
comes (`solver="dense"`).
"""

from typing import NamedTuple

import numpy as np

from braided._compiled import compiled, inlined, uncounted
from braided._compiled.linear import dot
from braided._compiled.pending import WIDE, lose_all_inplace
from braided._compiled.rls_step import (
    SCALE,
    correct_inplace,
    deviation,
    fade_evidence_inplace,
    fade_own_inplace,
    fresh_errors,
    fresh_totals,
    gain_inplace,
    lose_inplace,
    quadratic,
    rounding,
)
from braided.types import Floats, Ints


class Filters(NamedTuple):
    """State of F filters of size n = d T / F."""

    weights: Floats  # (F, n) the tasks' weights, stacked
    covariance: Floats  # (F, n, n) lower triangle of P / scale, without the pending terms
    totals: Floats  # (F, 3) scale of P, minimum of the objective, effective number of samples
    terms: Floats  # (F, r, n) G, gains that P has yet to take up
    losses: Floats  # (F, r) L, the loss along each; 0 where there is none
    pending: Ints  # (F,) number of pending terms
    base: Floats  # (F, n, n) scale times the information of the prior
    gained: Floats  # (T, d, d) scale times the information of the samples, task by task
    errors: Floats  # (T + 1, 3) if robust: mean of innovation² / variance, its count, unusual ones; last row: all tasks
    guarded: Ints  # (F,) how often P was rebuilt from the information


def fresh_filters(
    weights: Floats, covariance: Floats, information: Floats, d: int, noise: float = 0.0, room: int = 0
) -> Filters:
    """Return F filters before the first sample: weights (F, n), covariances and informations (F, n, n)."""
    n_filters, n = weights.shape
    gained = np.zeros((n_filters * n // d, d, d))
    return Filters(
        weights=weights,
        covariance=np.tril(covariance),
        totals=fresh_totals(n_filters, noise),
        terms=np.zeros((n_filters, room, n)),
        losses=np.zeros((n_filters, room)),
        pending=np.zeros(n_filters, np.int64),
        base=information,
        gained=gained,
        errors=fresh_errors(len(gained), noise),
        guarded=np.zeros(n_filters, np.int64),
    )


def covariances(filters: Filters) -> Floats:
    """Return the lower triangles of P, of all filters."""
    taken = np.einsum("fk,fki,fkj->fij", filters.losses, filters.terms, filters.terms, optimize=True)
    return (filters.covariance - np.tril(taken)) * filters.totals[:, SCALE, None, None]


def variances(filters: Filters) -> Floats:
    """Return the diagonals of P, of all filters."""
    taken = np.einsum("fk,fki->fi", filters.losses, filters.terms**2)
    diagonals: Floats = (filters.covariance.diagonal(axis1=1, axis2=2) - taken) * filters.totals[:, SCALE, None]
    return diagonals.ravel()


@compiled
def room_for(W: Floats, losses: Floats) -> Floats:
    """Return workspace: for a gain, and for pending terms while P takes them up."""
    return np.empty(W.shape[1] + losses.shape[1] * WIDE)


@compiled
def flush_inplace(P: Floats, G: Floats, losses: Floats, work: Floats) -> None:
    """Let P take up the pending terms; `work` is from `room_for`."""
    lose_all_inplace(P, G, losses, work[P.shape[0] :])
    for k in range(losses.size):
        losses[k] = 0.0


@inlined
def learn_inplace(
    filters: Filters, task: int, x: Floats, y: float, weight: float, fade: Floats, robust: float, work: Floats
) -> tuple[float, float]:
    """Forget, then learn one sample of a task; its weight, or −1, and the loss of P along g, which is left in `work`.

    As `correct_inplace` says; `work` is from `room_for`.
    """
    one = filters.weights.shape[0] == 1
    f, start = 0 if one else task, task * x.size if one else 0
    w, P, totals, errors = filters.weights[f], filters.covariance[f], filters.totals[f], filters.errors
    G, losses, pending = filters.terms[f], filters.losses[f], filters.pending
    n, stop, waiting, g = w.size, start + x.size, pending[f], work[: w.size]
    gain_inplace(g, P, start, x)
    for k in range(waiting):
        lost, row = losses[k] * dot(G[k, start:stop], x), G[k]
        for i in range(n):
            g[i] -= lost * row[i]
    doubt = rounding(P, start, x)
    own = fade[1]
    sample = (start, x, y, weight, fade[0], own, fade[2])
    weight, loss = correct_inplace(w, totals, g, *sample, errors, task, robust, doubt)
    if weight >= 0.0:
        # if P faded alone, the pending terms would have to cancel with it later
        if waiting > 0 and (waiting == losses.size or own != 1.0):
            flush_inplace(P, G, losses, work)
            waiting = 0
        if own != 1.0:
            fade_own_inplace(P, start, x.size, own)
        if losses.size == 0:
            lose_inplace(P, g, loss)
        else:
            for i in range(n):
                G[waiting, i] = g[i]
            losses[waiting] = loss
            pending[f] = waiting + 1
    return weight, loss


@compiled
def move_inplace(filters: Filters, d: int, factor: float, shrink: float, noise: Floats) -> None:
    """Let all information fade by `factor`, then w ← shrink w, P ← shrink² P + noise ⊗ I."""
    n = filters.weights.shape[1]
    for f in range(filters.weights.shape[0]):
        P, totals = filters.covariance[f], filters.totals[f]
        totals[SCALE] *= shrink * shrink / factor
        fade_evidence_inplace(totals, factor)
        for i in range(n):
            filters.weights[f, i] *= shrink
        for t in range(n // d):
            for s in range(t + 1):
                more = noise[f, t, s] / totals[SCALE]
                for k in range(d):
                    P[t * d + k, s * d + k] += more


def _forecast(
    mean: Floats,
    std: Floats,
    W: Floats,
    covariance: Floats,
    totals: Floats,
    terms: Floats,
    losses: Floats,
    pending: Ints,
    X: Floats,
    tasks: Ints,
    first: int,
    end: int,
) -> None:
    d, one = X.shape[1], W.shape[0] == 1
    for i in range(first, end):
        f, start, x = 0 if one else tasks[i], tasks[i] * d if one else 0, X[i]
        mean[i] = dot(W[f, start : start + d], x)
        if std.size:
            variance = quadratic(covariance[f], start, x)
            for k in range(pending[f]):
                variance -= losses[f, k] * dot(terms[f, k, start : start + d], x) ** 2
            std[i] = deviation(totals[f], totals[f, SCALE] * variance)


forecast_arrays_inplace = inlined(_forecast)  # for compiled loops
_forecast_inplace = uncounted(_forecast)  # for Python, which calls it most for one sample


def forecast_inplace(filters: Filters, X: Floats, tasks: Ints, mean: Floats, std: Floats) -> None:
    """Predict samples into `mean`, and their standard deviations into `std` unless it is empty."""
    known = filters.weights, filters.covariance, filters.totals
    _forecast_inplace(mean, std, *known, filters.terms, filters.losses, filters.pending, X, tasks, 0, len(tasks))
