"""Online sparse least squares support vector regression (Algorithm 2), group by group: forecast, then learn.

It is recursive least squares in the coordinates of a dictionary (dictionary.py), by a kernel (kernels.py).
"""

import numpy as np

from braided._compiled import compiled, uncounted
from braided._compiled.dictionary import (
    REMEMBERED,
    UNBOUNDED,
    Dictionaries,
    Limits,
    absorb_inplace,
    evict_least_inplace,
    is_news,
    learn_inplace,
    restore_inplace,
    spread,
    unwhiten_inplace,
    use_inplace,
    whiten_inplace,
)
from braided._compiled.kernels import coherent, evaluate_inplace, kernel_inplace
from braided._compiled.linear import dot
from braided.types import Flags, Floats, Ints

KEPT = 256  # samples of a group whose coordinates are kept, from the forecast until they are learned
DONE, FULL, REFUSED, RESTORE, NEWS = range(5)  # why a run of samples ends
SAMPLE, CHANGES = 0, 1  # the columns of what is told of kept coordinates
DELTA, KXX = 0, 1  # and of their novelty


@compiled
def coordinates_inplace(
    phi: Floats,
    novel: Floats,
    inputs: Floats,
    rows: Ints,
    U: Floats,
    relation: Floats,
    program: Floats,
    stack: Floats,
    x: Floats,
    row: int,
) -> None:
    """phi ← φ(x), novel ← its novelty δ and k(x, x), of one input (1, d) of the task with this row of the prior."""
    kernel_inplace(phi, inputs, rows, relation, program, stack, x[0])
    explained = whiten_inplace(phi, U, rows.size)
    evaluate_inplace(stack, program, x, x[0])
    novel[KXX] = relation[row] * stack[0, 0]
    novel[DELTA] = max(novel[KXX] - explained, 0.0)  # Eq. 29


@compiled
def forecast_inplace(
    mean: Floats, std: Floats, dictionaries: Dictionaries, limits: Limits, program: Floats, X: Floats, tasks: Ints
) -> None:
    """Forecast each sample into `mean`, and its deviation into `std` unless that is empty."""
    capacity = dictionaries.inputs.shape[1]
    room, novel, stack = np.empty(capacity), np.empty(2), np.empty((program.shape[0], capacity))
    for i in range(tasks.size):
        f, row = dictionaries.places[tasks[i], 0], dictionaries.places[tasks[i], 1]
        m = dictionaries.sizes[f]
        phi, x, relation = room[:m], X[i : i + 1], dictionaries.prior[row]
        elements = (dictionaries.inputs[f, :m], dictionaries.rows[f, :m], dictionaries.factor[f])
        coordinates_inplace(phi, novel, *elements, relation, program, stack, x, row)
        mean[i] = dot(dictionaries.weights[f, :m], phi)
        if std.size:
            std[i] = spread(dictionaries.totals[f], dictionaries.covariance[f], phi, novel[DELTA] / limits.penalty)


@uncounted
def run_inplace(
    inputs: Floats,
    rows: Ints,
    factor: Floats,
    usage: Floats,
    age: Floats,
    betas: Floats,
    covariance: Floats,
    totals: Floats,
    sizes: Ints,
    prior: Floats,
    places: Ints,
    errors: Floats,
    evicted: Ints,
    limits: Limits,
    program: Floats,
    stack: Floats,
    work: Floats,
    kept: Floats,
    told: Ints,
    novel: Floats,
    X: Floats,
    y: Floats,
    tasks: Ints,
    weights: Floats,
    ends: Ints,
    opens: Flags,
    mean: Floats,
    std: Floats,
    i: int,
    group: int,
    restored: bool,
) -> tuple[int, int, int]:
    """Forecast and learn from sample i of a group on, up to where something rare is to be done: next, group, what.

    Doing it in here, or passing the arrays on as a whole, would slow down all the rest. No dictionary changes in here.
    The coordinates of a group are kept; those beyond the room for them share the last place.
    """
    capacity, last, largest = inputs.shape[1], kept.shape[0] - 1, 0
    for m in sizes:
        largest = max(largest, m)
    bounded, g, a = limits.budget < UNBOUNDED, work[0], work[1]
    for n in range(group, ends.size):
        first, end = 0 if n == 0 else ends[n - 1], ends[n]
        if i == first and not restored:
            if min(largest + end - first, limits.budget + 1) > capacity:
                return i, n, FULL
            for j in range(first, end):
                f, row, place = places[tasks[j], 0], places[tasks[j], 1], min(j - first, last)
                m = sizes[f]
                phi, x = kept[place, :m], X[j : j + 1]
                coordinates_inplace(
                    phi, novel[place], inputs[f, :m], rows[f, :m], factor[f], prior[row], program, stack, x, row
                )
                told[place, SAMPLE], told[place, CHANGES] = j, m + evicted[f]
                mean[j] = dot(betas[f, :m], phi)
                if std.size:
                    std[j] = spread(totals[f], covariance[f], phi, novel[place, DELTA] / limits.penalty)
        while i < end:
            if limits.shrink < 1.0 and opens[i] and not restored:
                return i, n, RESTORE
            restored = False
            f, row, place = places[tasks[i], 0], places[tasks[i], 1], min(i - first, last)
            m = sizes[f]
            phi, x = kept[place, :m], X[i : i + 1]
            if told[place, SAMPLE] != i or told[place, CHANGES] != m + evicted[f]:
                coordinates_inplace(
                    phi, novel[place], inputs[f, :m], rows[f, :m], factor[f], prior[row], program, stack, x, row
                )
                told[place, SAMPLE], told[place, CHANGES] = i, m + evicted[f]
            delta, kxx = novel[place, DELTA], novel[place, KXX]
            if not kxx < np.inf:
                return i, n, REFUSED
            if is_news(limits, delta, kxx, weights[i]):
                return i, n, NEWS
            given = learn_inplace(
                betas[f, :m],
                covariance[f],
                totals[f],
                g[:m],
                phi,
                y[i],
                weights[i],
                limits.along,
                errors,
                tasks[i],
                limits.robust,
            )
            if given < 0.0:
                return i, n, REFUSED
            if bounded and given > 0.0:
                unwhiten_inplace(a, factor[f], phi, m)
                use_inplace(usage[f], age[f], a[:m], 1.0, REMEMBERED * limits.budget)
            i += 1
    return i, ends.size, DONE


def progressive_inplace(
    dictionaries: Dictionaries,
    limits: Limits,
    program: Floats,
    X: Floats,
    y: Floats,
    tasks: Ints,
    weights: Floats,
    ends: Ints,
    opens: Flags,
    mean: Floats,
    std: Floats,
) -> tuple[int, bool]:
    """Forecast, then learn, group by group (`ends` holds their ends, `opens` tells the first samples of rounds).

    Returns how many samples were learned, and whether it stopped for want of room (before a group, never inside).
    Not compiled itself, and so neither is what is rare before there is need of it.
    """
    capacity = dictionaries.inputs.shape[1]
    places = min(int((ends[1:] - ends[:-1]).max(initial=ends[0] if ends.size else 1)), KEPT)
    kept, told, novel = np.empty((places, capacity)), np.zeros((places, 2), np.int64), np.empty((places, 2))
    stack, work = np.empty((program.shape[0], capacity)), np.empty((2, capacity))
    i, group, restored = 0, 0, False
    while True:
        i, group, why = run_inplace(
            *dictionaries[2:],  # but for norms and precision
            limits,
            program,
            stack,
            work,
            kept,
            told,
            novel,
            X,
            y,
            tasks,
            weights,
            ends,
            opens,
            mean,
            std,
            i,
            group,
            restored,
        )
        restored = why == RESTORE
        if restored:
            restore_inplace(dictionaries, limits)
        elif why == NEWS:
            first = 0 if group == 0 else ends[group - 1]
            place = min(i - first, places - 1)
            f, row = dictionaries.places[tasks[i], 0], dictionaries.places[tasks[i], 1]
            m, kxx = dictionaries.sizes[f], novel[place, KXX]
            coherence = 0.0
            if limits.coherence < 1.0:
                elements = (dictionaries.inputs[f, :m], dictionaries.rows[f, :m], dictionaries.prior[row])
                k = np.empty(m)
                kernel_inplace(k, *elements, program, stack, X[i])
                coherence = coherent(k, dictionaries.norms[f, :m], kxx)
            new = novel[place, DELTA], kxx, coherence
            if not absorb_inplace(dictionaries, limits, X[i], tasks[i], kept[place], *new, y[i], weights[i]):
                return i, False
            if dictionaries.sizes[f] > limits.budget:
                evict_least_inplace(dictionaries, f)
            i += 1
        else:
            return i, why == FULL
