"""Recursive least squares, group by group: predict, then learn, by filters that may need a guard."""

from typing import NamedTuple

import numpy as np

from braided._compiled import compiled, inlined, uncounted
from braided._compiled.batch import Batch, Steps
from braided._compiled.filters import Filters, forecast_arrays_inplace, learn_inplace, move_inplace, room_for
from braided._compiled.guard import (
    account_inplace,
    rebuild_inplace,
    settle_inplace,
    take_up_inplace,
    unwind_inplace,
    wound_up,
)
from braided._compiled.step import FOLD, SCALE
from braided.types import Floats, Ints

DONE, MOVE, REFUSED, SETTLE, WOUND_UP = range(5)  # why a run of samples ends
NOTHING: Floats = np.empty(0)
NO_MOVE: Floats = np.zeros(1)
OF_ONE_FILTER = ("weights", "covariance", "totals", "terms", "losses", "pending", "base", "guarded")


class Place(NamedTuple):
    """Where a run of samples begins."""

    sample: int
    group: int
    moved: bool  # whether the weights have moved before the sample


START = Place(0, 0, False)
AFTER_MOVE = Place(0, 0, True)


@uncounted
def run_arrays_inplace(
    W: Floats,
    covariance: Floats,
    totals: Floats,
    terms: Floats,
    losses: Floats,
    pending: Ints,
    base: Floats,
    gained: Floats,
    errors: Floats,
    guarded: Ints,
    X: Floats,
    y: Floats,
    tasks: Ints,
    weights: Floats,
    ends: Ints,
    fades: Floats,
    moves: Floats,
    limits: Floats,
    robust: float,
    work: Floats,
    mean: Floats,
    std: Floats,
    i: int,
    group: int,
    moved: bool,
) -> tuple[int, int, int]:
    """Predict and learn from sample i of a group on, until something rare must be done: next sample, group, what.

    Doing that in here, or passing the arrays on as a tuple, would slow down everything else.
    """
    filters = Filters(W, covariance, totals, terms, losses, pending, base, gained, errors, guarded)
    d, one, guard = X.shape[1], W.shape[0] == 1, limits.size > 0
    for g in range(group, ends.size):
        end = ends[g]
        if not moved and (i == 0 or i == ends[g - 1]):
            forecast_arrays_inplace(mean, std, W, covariance, totals, terms, losses, pending, X, tasks, i, end)
        while i < end:
            if moves[i] > 0.0 and not moved:
                return i, g, MOVE
            moved = False
            f, start, own = 0 if one else tasks[i], tasks[i] * d if one else 0, fades[i, 1]
            weight = learn_inplace(filters, tasks[i], X[i], y[i], weights[i], fades[i], robust, work)
            if weight < 0.0:
                return i, g, REFUSED
            settle = totals[f, SCALE] > FOLD
            if guard:
                account_inplace(base[f], gained[tasks[i]], totals[f, SCALE], start, X[i], weight, own)
                settle = settle or (own < 1.0 and wound_up(covariance[f], limits[f], d, start, start + d))
            i += 1
            if settle:
                return i, g, SETTLE
    return i, ends.size, DONE


def run_inplace(
    filters: Filters, batch: Batch, steps: Steps, robust: float, work: Floats, mean: Floats, std: Floats, place: Place
) -> tuple[int, int, int]:
    """Call `run_arrays_inplace`, which takes arrays only; `work` is from `room_for`."""
    rows = (filters.weights, filters.covariance, filters.totals, filters.terms, filters.losses, filters.pending)
    rest = (filters.base, filters.gained, filters.errors, filters.guarded)
    samples = (batch.X, batch.y, batch.tasks, batch.weights, batch.ends, steps.fades, steps.moves, steps.limits)
    made = (robust, work, mean, std, place.sample, place.group, place.moved)
    return run_arrays_inplace(*(rows + rest + samples + made))


_run_inplace = inlined(run_inplace)


@compiled
def steady_inplace(
    filters: Filters, batch: Batch, steps: Steps, robust: float, mean: Floats, std: Floats, place: Place
) -> tuple[Place, int, int]:
    """Run, move weights and fold scales, until P must be rebuilt: where to go on, why, and of which filter."""
    d, n, work = batch.X.shape[1], filters.weights.shape[1], room_for(filters.weights, filters.losses)
    while True:
        i, group, why = _run_inplace(filters, batch, steps, robust, work, mean, std, place)
        place = Place(i, group, why == MOVE)
        if why == MOVE:
            move_inplace(filters, d, steps.moves[i], steps.shrink, steps.noise)
            winds_up = False
            for f in range(filters.totals.shape[0]):
                if not 1.0 / FOLD < filters.totals[f, SCALE] < FOLD:
                    winds_up |= settle_inplace(filters, f, d, steps.limits)
            if winds_up:
                return place, WOUND_UP, -1
        elif why == SETTLE:
            f = batch.tasks[i - 1] * d // n
            if settle_inplace(filters, f, d, steps.limits):
                return place, WOUND_UP, f
        else:
            return place, why, -1


def rescue_inplace(filters: Filters, f: int, batch: Batch, steps: Steps, robust: float) -> int:
    """Learn one sample that was refused; why that ended. If it is refused again, nothing is changed.

    First by a P that has taken up its pending terms, which has more correct digits; then by a rebuilt one, if there is
    a `relation` to rebuild it with.
    """
    d, m = batch.X.shape[1], filters.weights.shape[1] // batch.X.shape[1]
    own = [getattr(filters, name)[f : f + 1] for name in OF_ONE_FILTER] + [filters.gained[f * m : (f + 1) * m]]
    before = [array.copy() for array in own]
    work, mean = room_for(filters.weights, filters.losses), np.empty(1)
    why = REFUSED
    if filters.pending[f]:
        take_up_inplace(filters, f)
        *_, why = run_inplace(filters, batch, steps, robust, work, mean, NOTHING, AFTER_MOVE)
    if why == REFUSED and steps.relation.size and rebuild_inplace(filters, f, d, steps.relation):
        *_, why = run_inplace(filters, batch, steps, robust, work, mean, NOTHING, AFTER_MOVE)
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
    place = START
    while True:
        place, why, f = steady_inplace(filters, batch, steps, robust, mean, std, place)
        i = place.sample
        if why == DONE:
            return i
        if why == REFUSED:
            f, one = int(batch.tasks[i] * d // n), batch.before(i + 1).after(i)
            why = rescue_inplace(filters, f, one, steps._replace(fades=steps.fades[i : i + 1], moves=NO_MOVE), robust)
            if why == REFUSED:
                return i
            place = Place(i + 1, place.group, False)
            if not (why == SETTLE and settle_inplace(filters, f, d, steps.limits)):
                continue
        unwind_inplace(filters, f, d, steps.relation, steps.limits)


def learn_one_inplace(filters: Filters, batch: Batch, steps: Steps, robust: float, work: Floats, mean: Floats) -> bool:
    """Fast path for a batch of one sample; return False, with nothing changed, where it takes more than one run."""
    *_, why = run_inplace(filters, batch, steps, robust, work, mean, NOTHING, START)
    if why == SETTLE:
        d = batch.X.shape[1]
        f = int(batch.tasks[0]) * d // filters.weights.shape[1]
        if settle_inplace(filters, f, d, steps.limits):
            unwind_inplace(filters, f, d, steps.relation, steps.limits)
    return why in (DONE, SETTLE)
