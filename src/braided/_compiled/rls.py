"""Recursive least squares, group by group: forecast, then learn, by filters that may need a guard."""

from typing import Any

import numpy as np

from braided._compiled import compiled, uncounted
from braided._compiled.filters import Filters, forecast_inplace, learn_inplace, move_inplace, room_for
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

NOTHING: Floats = np.empty(0)
END_OF_ONE: Ints = np.array([1])  # of the groups, where there is one sample
NO_MOVE: Floats = np.zeros(1)
DONE, MOVE, REFUSED, SETTLE, WOUND_UP = range(5)  # why a run of samples ends


@uncounted
def run_inplace(
    W: Floats,
    covariance: Floats,
    totals: Floats,
    terms: Floats,
    losses: Floats,
    pending: Ints,
    base: Floats,
    gained: Floats,
    errors: Floats,
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
    """Forecast and learn from sample i of a group on, up to where something rare is to be done: next, group, what.

    Doing it in here, or passing the arrays on as a whole, would slow down all the rest.
    """
    d, one, guard = X.shape[1], W.shape[0] == 1, limits.size > 0
    for g in range(group, ends.size):
        end = ends[g]
        if not moved and (i == 0 or i == ends[g - 1]):
            forecast_inplace(mean, std, W, covariance, totals, terms, losses, pending, X, tasks, i, end)
        while i < end:
            if moves[i] > 0.0 and not moved:
                return i, g, MOVE
            moved = False
            f, start, own = 0 if one else tasks[i], tasks[i] * d if one else 0, fades[i, 1]
            weight = learn_inplace(
                W[f],
                covariance[f],
                totals[f],
                terms[f],
                losses[f],
                pending,
                f,
                work,
                start,
                X[i],
                y[i],
                weights[i],
                fades[i],
                errors,
                tasks[i],
                robust,
            )
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


@compiled
def steady_inplace(
    filters: Filters,
    X: Floats,
    y: Floats,
    tasks: Ints,
    weights: Floats,
    ends: Ints,
    fades: Floats,
    moves: Floats,
    shrink: float,
    noise: Floats,
    limits: Floats,
    robust: float,
    mean: Floats,
    std: Floats,
    i: int,
    group: int,
    moved: bool,
) -> tuple[int, int, bool, int, int]:
    """Run, move weights and fold scales, up to where P has to be made anew: next, group, moved, why, which filter."""
    d, n, work = X.shape[1], filters.weights.shape[1], room_for(filters.weights, filters.losses)
    while True:
        samples = (X, y, tasks, weights, ends, fades, moves)
        i, group, why = run_inplace(*filters[:9], *samples, limits, robust, work, mean, std, i, group, moved)
        moved = why == MOVE
        if why == MOVE:
            move_inplace(filters, d, moves[i], shrink, noise)
            winds_up = False
            for f in range(filters.totals.shape[0]):
                if not 1.0 / FOLD < filters.totals[f, SCALE] < FOLD:
                    winds_up |= settle_inplace(filters, f, d, limits)
            if winds_up:
                return i, group, True, WOUND_UP, -1
        elif why == SETTLE:
            f = tasks[i - 1] * d // n
            if settle_inplace(filters, f, d, limits):
                return i, group, False, WOUND_UP, f
        else:
            return i, group, False, why, -1


def _run_one(
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
) -> int:
    """Run one sample; why that ended."""
    sample: tuple[Any, ...] = (x.reshape(1, -1), np.array([y]), np.array([task]), np.array([weight]), END_OF_ONE)
    room = room_for(filters.weights, filters.losses)
    rest: tuple[Any, ...] = (fades, moves, limits, robust, room, np.empty(1), NOTHING, 0, 0, moved)
    *_, why = run_inplace(*filters[:9], *sample, *rest)
    return int(why)


def rescue_inplace(
    filters: Filters,
    f: int,
    x: Floats,
    y: float,
    task: int,
    weight: float,
    fades: Floats,
    limits: Floats,
    robust: float,
    relation: Floats,
) -> int:
    """Learn a sample that was refused; why that ended. Nothing is changed if it is refused once more.

    First by a P that has taken up what is pending, whose digits tell more; then by one made anew, if there is a
    `relation` to make it by.
    """
    d, m = x.size, filters.weights.shape[1] // x.size
    own = [array[f : f + 1] for array in (*filters[:7], filters.guarded)]
    own.append(filters.gained[f * m : (f + 1) * m])
    before = [array.copy() for array in own]
    sample: tuple[Any, ...] = (x, y, task, weight, fades, NO_MOVE, limits, robust, True)
    why = REFUSED
    if filters.pending[f]:
        take_up_inplace(filters, f)
        why = _run_one(filters, *sample)
    if why == REFUSED and relation.size and rebuild_inplace(filters, f, d, relation):
        why = _run_one(filters, *sample)
    if why == REFUSED:
        for array, old in zip(own, before, strict=True):
            array[:] = old
    return why


def progressive_inplace(
    filters: Filters,
    X: Floats,
    y: Floats,
    tasks: Ints,
    weights: Floats,
    ends: Ints,
    fades: Floats,
    moves: Floats,
    shrink: float,
    noise: Floats,
    relation: Floats,
    limits: Floats,
    robust: float,
    mean: Floats,
    std: Floats,
) -> int:
    """Forecast, then learn, group by group (`ends` holds their ends); the number of samples learned.

    `fades` (n, 3) is what everything, the sample's own task, and its direction fades by before each sample; where
    `moves` is above 0, all information fades by it, and all weights move, by `shrink` and `noise`. `relation` (F, m, m)
    is the information of the prior and `limits` (F, m) its variances, for the guard against wind-up; empty without.
    `robust` is the number of deviations beyond which an innovation weighs less, 0 for none.

    Not compiled itself, and so neither is the guard before there is need of it.
    """
    d, n = X.shape[1], filters.weights.shape[1]
    samples = (X, y, tasks, weights, ends, fades, moves, shrink, noise, limits, robust, mean, std)
    i, group, moved = 0, 0, False
    while True:
        i, group, moved, why, f = steady_inplace(filters, *samples, i, group, moved)
        if why == DONE:
            return i
        if why == REFUSED:
            f, sample = int(tasks[i] * d // n), (X[i], y[i], tasks[i], weights[i], fades[i : i + 1])
            why = rescue_inplace(filters, f, *sample, limits, robust, relation)
            if why == REFUSED:
                return i
            i += 1
            if not (why == SETTLE and settle_inplace(filters, f, d, limits)):
                continue
        unwind_inplace(filters, f, d, relation, limits)


def learn_one_inplace(
    filters: Filters,
    x: Floats,
    y: float,
    task: int,
    weight: float,
    fades: Floats,
    moves: Floats,
    shrink: float,
    noise: Floats,
    relation: Floats,
    limits: Floats,
    robust: float,
) -> bool:
    """Learn one sample as `progressive_inplace` does, without ado; False, and nothing changed, where it takes more."""
    why = _run_one(filters, x, y, task, weight, fades, moves, limits, robust, False)
    if why == SETTLE:
        f, d = task * x.size // filters.weights.shape[1], x.size
        if settle_inplace(filters, f, d, limits):
            unwind_inplace(filters, f, d, relation, limits)
    return why in (DONE, SETTLE)
