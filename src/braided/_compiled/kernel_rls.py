"""Online sparse least squares support vector regression (Algorithm 2), group by group: forecast, then learn.

It is recursive least squares in the coordinates of a dictionary (dictionary.py), by a kernel (kernels.py).
"""

import numpy as np

from braided._compiled import compiled, uncounted
from braided._compiled.batch import Batch
from braided._compiled.dictionary import (
    UNBOUNDED,
    USAGE_WINDOW,
    Dictionaries,
    Elements,
    Known,
    Limits,
    Sample,
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

KEPT_SAMPLES = 256  # of a group, whose coordinates are kept from the forecast until they are learned
DONE, FULL, REFUSED, RESTORE, NEWS = range(5)  # why a run of samples ends
SAMPLE, CHANGES = 0, 1  # columns of `owner`: whose coordinates are kept, and how often its dictionary had changed
DELTA, KXX = 0, 1  # columns of `novel`: the novelty δ of a sample whose coordinates are kept, and k(x, x)


@compiled
def coordinates_inplace(
    phi: Floats,
    novel: Floats,
    elements: Elements,
    relation: Floats,
    program: Floats,
    stack: Floats,
    x: Floats,
    row: int,
) -> None:
    """phi ← φ(x), novel ← its novelty δ and k(x, x), of one input (1, d) of the task with this row of the prior."""
    kernel_inplace(phi, elements.inputs, elements.rows, relation, program, stack, x[0])
    explained = whiten_inplace(phi, elements.factor, phi.size)
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
        elements = Elements(dictionaries.inputs[f, :m], dictionaries.rows[f, :m], dictionaries.factor[f])
        coordinates_inplace(phi, novel, elements, relation, program, stack, x, row)
        mean[i] = dot(dictionaries.weights[f, :m], phi)
        if std.size:
            std[i] = spread(dictionaries.totals[f], dictionaries.covariance[f], phi, novel[DELTA] / limits.penalty)


@uncounted
def _run_inplace(
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
    owner: Ints,
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
    """Forecast and learn from sample i on, until something rare must be done; return sample, group, and what.

    Doing it in here would slow down all the rest, and so would named tuples (`learn_one`: 15 µs with them, 8 without).
    No dictionary changes size in here. Coordinates of a group are kept; those beyond KEPT_SAMPLES share the last place.
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
                elements = Elements(inputs[f, :m], rows[f, :m], factor[f])
                coordinates_inplace(phi, novel[place], elements, prior[row], program, stack, x, row)
                owner[place, SAMPLE], owner[place, CHANGES] = j, m + evicted[f]
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
            if owner[place, SAMPLE] != i or owner[place, CHANGES] != m + evicted[f]:
                elements = Elements(inputs[f, :m], rows[f, :m], factor[f])
                coordinates_inplace(phi, novel[place], elements, prior[row], program, stack, x, row)
                owner[place, SAMPLE], owner[place, CHANGES] = i, m + evicted[f]
            delta, kxx = novel[place, DELTA], novel[place, KXX]
            if not kxx < np.inf:
                return i, n, REFUSED
            if is_news(limits, delta, kxx, weights[i]):
                return i, n, NEWS
            known = Known(betas[f, :m], covariance[f], totals[f], errors)
            given = learn_inplace(known, limits, g[:m], phi, y[i], weights[i], tasks[i])
            if given < 0.0:
                return i, n, REFUSED
            if bounded and given > 0.0:
                unwhiten_inplace(a, factor[f], phi, m)
                use_inplace(usage[f], age[f], a[:m], 1.0, USAGE_WINDOW * limits.budget)
            i += 1
    return i, ends.size, DONE


def progressive_inplace(
    dictionaries: Dictionaries, limits: Limits, program: Floats, batch: Batch, mean: Floats, std: Floats
) -> tuple[int, bool]:
    """Forecast, then learn, group by group.

    Returns how many samples were learned, and whether it stopped, before a group, because a dictionary may need room.
    It is not compiled, so that rare cases are compiled only when they occur.
    """
    state, capacity, ends = dictionaries, dictionaries.inputs.shape[1], batch.ends
    n_kept = min(int((ends[1:] - ends[:-1]).max(initial=ends[0] if ends.size else 1)), KEPT_SAMPLES)
    kept, owner, novel = np.empty((n_kept, capacity)), np.zeros((n_kept, 2), np.int64), np.empty((n_kept, 2))
    stack, work = np.empty((program.shape[0], capacity)), np.empty((2, capacity))
    elements = state.inputs, state.rows, state.factor, state.usage, state.age, state.weights, state.covariance
    known = state.totals, state.sizes, state.prior, state.places, state.errors, state.evicted
    room = stack, work, kept, owner, novel
    samples = batch.X, batch.y, batch.tasks, batch.weights, ends, batch.opens
    arguments = (*elements, *known, limits, program, *room, *samples, mean, std)
    i, group, restored = 0, 0, False
    while True:
        i, group, why = _run_inplace(*arguments, i, group, restored)
        restored = why == RESTORE
        if restored:
            restore_inplace(state, limits)
        elif why == NEWS:
            place = min(i - (0 if group == 0 else ends[group - 1]), n_kept - 1)
            delta, kxx = novel[place].tolist()
            x, task = batch.X[i], batch.tasks[i]
            coherence = _coherence(state, program, stack, x, task, kxx) if limits.coherence < 1.0 else 0.0
            sample = Sample(x, task, batch.y[i], batch.weights[i], kept[place], delta, kxx, coherence)
            if not absorb_inplace(state, limits, sample):
                return i, False
            f = state.places[task, 0]
            if state.sizes[f] > limits.budget:
                evict_least_inplace(state, f)
            i += 1
        else:
            return i, why == FULL


def _coherence(dictionaries: Dictionaries, program: Floats, stack: Floats, x: Floats, task: int, kxx: float) -> float:
    """The coherence of an input with its task's dictionary."""
    f, row = dictionaries.places[task]
    m = dictionaries.sizes[f]
    k, elements = np.empty(m), (dictionaries.inputs[f, :m], dictionaries.rows[f, :m])
    kernel_inplace(k, *elements, dictionaries.prior[row], program, stack, x)
    return coherent(k, dictionaries.norms[f, :m], kxx)
