"""Recursive least squares, group by group: predict, then learn, by filters that may need a guard."""

from typing import NamedTuple

import numpy as np

from braided._compiled import compiled, uncounted
from braided._compiled.batch import NO_GAINS, Batch, Steps
from braided._compiled.filters import Filters, forecast_arrays_inplace, learn_inplace, move_inplace, room_for
from braided._compiled.guard import (
    account_inplace,
    rebuild_inplace,
    settle_inplace,
    take_up_inplace,
    unwind_inplace,
    wound_up,
)
from braided._compiled.rls_step import FOLD, SCALE
from braided.types import Floats

DONE, MOVE, REFUSED, SETTLE, WOUND_UP = range(5)  # why a run of samples ends
NO_MOVE: Floats = np.zeros(1)
OF_ONE_FILTER = ("weights", "covariance", "totals", "terms", "losses", "pending", "base", "guarded")


class Place(NamedTuple):
    """Where a run of samples begins."""

    sample: int
    group: int
    moved: bool  # whether the weights have moved before the sample


@uncounted
def run_inplace(
    filters: Filters,
    batch: Batch,
    fades: Floats,
    moves: Floats,
    limits: Floats,
    robust: float,
    work: Floats,
    mean: Floats,
    std: Floats,
    place: Place,
) -> tuple[Place, int]:
    """Predict and learn from a place on, until something rare must be done: where, and what.

    Doing that in here would slow down everything else. Only compiled code may call this: tuples from Python would never
    be released.
    """
    W, P, totals, base, gained = filters.weights, filters.covariance, filters.totals, filters.base, filters.gained
    X, y, tasks, weights, ends, gains = batch.X, batch.y, batch.tasks, batch.weights, batch.ends, batch.gains
    i, moved, d, one, guard = place.sample, place.moved, X.shape[1], W.shape[0] == 1, limits.size > 0
    for g in range(place.group, ends.size):
        end = ends[g]
        if not moved and (i == 0 or i == ends[g - 1]):
            forecast_arrays_inplace(
                mean, std, W, P, totals, filters.terms, filters.losses, filters.pending, X, tasks, i, end
            )
        while i < end:
            if moves[i] > 0.0 and not moved:
                return Place(i, g, False), MOVE
            moved = False
            f, start, own = 0 if one else tasks[i], tasks[i] * d if one else 0, fades[i, 1]
            weight, loss = learn_inplace(filters, tasks[i], X[i], y[i], weights[i], fades[i], robust, work)
            if weight < 0.0:
                return Place(i, g, False), REFUSED
            if gains.size:
                for j in range(W.shape[1]):
                    gains[i, j] = loss * work[j]  # Eq. 15
            settle = totals[f, SCALE] > FOLD
            if guard:
                account_inplace(base[f], gained[tasks[i]], totals[f, SCALE], start, X[i], weight, own)
                settle = settle or (own < 1.0 and wound_up(P[f], limits[f], d, start, start + d))
            i += 1
            if settle:
                return Place(i, g, False), SETTLE
    return Place(i, ends.size, False), DONE


@compiled
def steady_inplace(
    filters: Filters, batch: Batch, steps: Steps, robust: float, mean: Floats, std: Floats, place: Place
) -> tuple[Place, int, int]:
    """Run, move weights and fold scales, until P must be rebuilt: where to go on, why, and of which filter."""
    d, n, work = batch.X.shape[1], filters.weights.shape[1], room_for(filters.weights, filters.losses)
    fades, moves, limits = steps.fades, steps.moves, steps.limits
    while True:
        place, why = run_inplace(filters, batch, fades, moves, limits, robust, work, mean, std, place)
        if why == MOVE:
            place = Place(place.sample, place.group, True)
            move_inplace(filters, d, steps.moves[place.sample], steps.shrink, steps.noise)
            winds_up = False
            for f in range(filters.totals.shape[0]):
                if not 1.0 / FOLD < filters.totals[f, SCALE] < FOLD:
                    winds_up |= settle_inplace(filters, f, d, steps.limits)
            if winds_up:
                return place, WOUND_UP, -1
        elif why == SETTLE:
            f = batch.tasks[place.sample - 1] * d // n
            if settle_inplace(filters, f, d, steps.limits):
                return place, WOUND_UP, f
        else:
            return place, why, -1


@compiled
def run_one_inplace(
    filters: Filters,
    x: Floats,
    y: float,
    task: int,
    weight: float,
    fades: Floats,
    moves: Floats,
    limits: Floats,
    robust: float,
    moved: bool,
    gains: Floats,
) -> int:
    """Run one sample; why that ended."""
    X, row, tasks, ends = x.reshape(1, -1), np.empty((3, 1)), np.empty(1, np.int64), np.ones(1, np.int64)
    row[0, 0], row[1, 0], tasks[0] = y, weight, task
    batch = Batch(X, row[0], tasks, row[1], ends, np.ones(1, np.bool_), tasks, 0, gains)
    work, std = room_for(filters.weights, filters.losses), np.empty(0)
    place = Place(0, 0, moved)
    _, why = run_inplace(filters, batch, fades, moves, limits, robust, work, row[2], std, place)
    return why


def rescue_inplace(filters: Filters, f: int, batch: Batch, i: int, steps: Steps, robust: float) -> int:
    """Learn sample i, which was refused; why that ended. If it is refused again, nothing is changed.

    First by a P that has taken up its pending terms, which has more correct digits; then by a rebuilt one, if there is
    a `relation` to rebuild it with.
    """
    d, m = batch.X.shape[1], filters.weights.shape[1] // batch.X.shape[1]
    own = [getattr(filters, name)[f : f + 1] for name in OF_ONE_FILTER] + [filters.gained[f * m : (f + 1) * m]]
    before = [array.copy() for array in own]
    sample = batch.X[i], batch.y[i], batch.tasks[i], batch.weights[i], steps.fades[i : i + 1], NO_MOVE, steps.limits
    why = REFUSED
    if filters.pending[f]:
        take_up_inplace(filters, f)
        why = run_one_inplace(filters, *sample, robust, True, batch.gains[i : i + 1])
    if why == REFUSED and steps.relation.size and rebuild_inplace(filters, f, d, steps.relation):
        why = run_one_inplace(filters, *sample, robust, True, batch.gains[i : i + 1])
    if why == REFUSED:
        for array, old in zip(own, before, strict=True):
            array[:] = old
    return why


def progressive_inplace(filters: Filters, batch: Batch, steps: Steps, robust: float, mean: Floats, std: Floats) -> int:
    """Predict, then learn, group by group; return the number of samples learned.

    `robust` is the number of deviations beyond which an innovation weighs less, 0 for none. It is not compiled itself,
    so that the guard is compiled only when it is needed.
    """
    d, n = batch.X.shape[1], filters.weights.shape[1]
    place = Place(0, 0, False)
    while True:
        place, why, f = steady_inplace(filters, batch, steps, robust, mean, std, place)
        i = place.sample
        if why == DONE:
            return i
        if why == REFUSED:
            f = int(batch.tasks[i] * d // n)
            why = rescue_inplace(filters, f, batch, i, steps, robust)
            if why == REFUSED:
                return i
            place = Place(i + 1, place.group, False)
            if not (why == SETTLE and settle_inplace(filters, f, d, steps.limits)):
                continue
        unwind_inplace(filters, f, d, steps.relation, steps.limits)


def learn_one_inplace(
    filters: Filters, x: Floats, y: float, task: int, weight: float, steps: Steps, robust: float
) -> bool:
    """Fast path for one sample; return False, with nothing changed, where it takes more than one run."""
    fades, moves, limits = steps.fades, steps.moves, steps.limits
    why = run_one_inplace(filters, x, y, task, weight, fades, moves, limits, robust, False, NO_GAINS)
    if why == SETTLE:
        f, d = task * x.size // filters.weights.shape[1], x.size
        if settle_inplace(filters, f, d, steps.limits):
            unwind_inplace(filters, f, d, steps.relation, steps.limits)
    return why in (DONE, SETTLE)
