"""Online sparse least squares support vector regression (Algorithm 2), for F dictionaries of growing size m.

It is recursive least squares in the coordinates of the dictionary. With K = U'U its kernel matrix and
φ(x) = U⁻ᵀ k(D, x), the defining problem ‖C K α − y‖² + λ α'Kα is a ridge regression on φ with weights β = U α,
so P̃ = (Φ'Φ + λI)⁻¹ and β follow the plain recursion, and a new dictionary element is a new coordinate with
prior variance 1/λ. The paper's P is U' P̃ U and its α is U⁻¹ β. No inverse of K is ever formed: K⁻¹ updated by
recursion loses all digits for small novelty, the triangular factor does not.

A dictionary that has outgrown its budget loses the element that matters least, as in KRLS-T (Van Vaerenbergh,
Lázaro-Gredilla & Santamaría, IEEE Transactions on Neural Networks and Learning Systems 23, 2012), where late inputs
count. Its coordinates are turned until one of them is what that element alone can express, and that one is dropped:
what is known of all the others stays as it is.
"""

from typing import NamedTuple

import numpy as np

from braided._compiled import compiled
from braided._compiled.linear import dot
from braided._compiled.step import (
    FOLD,
    SCALE,
    correct_inplace,
    deviation,
    fold_inplace,
    gain_inplace,
    lose_inplace,
    quadratic,
    rounding,
)
from braided.types import Flags, Floats, Ints

CONSTANT, LINEAR, RBF, POLYNOMIAL, ADD, MULTIPLY = range(6)  # the operations of a kernel's program
UNBOUNDED = 2**62  # a budget of this size or more is none
LATELY = 10  # times the budget is how many inputs the usage of an element remembers
LEAST = 1e-280  # a novelty below has no inverse
ROUNDING = 16.0 * 2.0**-52  # in δ, as a share of k(x, x)


class Dictionaries(NamedTuple):
    """State of F dictionaries with room for `capacity` elements each."""

    inputs: Floats  # (F, capacity, d) the elements
    rows: Ints  # (F, capacity) the row of `prior` each element belongs to
    norms: Floats  # (F, capacity) k(x, x) of the elements, the diagonal of K
    factor: Floats  # (F, capacity, capacity) U, upper triangular, K = U'U
    precision: Floats  # (F, capacity) the diagonal of K⁻¹
    usage: Floats  # (F, capacity) mean square of an element's share a in later inputs; where there is a budget
    age: Floats  # (F, capacity) inputs that it is the mean of
    weights: Floats  # (F, capacity) β
    covariance: Floats  # (F, capacity, capacity) lower triangle of P̃ / scale
    totals: Floats  # (F, 3) as in rls.Filters
    sizes: Ints  # (F,) elements in use, m
    prior: Floats  # (R, R) A⁻¹: the prior covariance between the tasks
    places: Ints  # (T, 2) each task's dictionary, and its row of `prior`
    errors: Floats  # (T + 1, 3) as in rls.Filters
    evicted: Ints  # (F,) elements that had to go


class Limits(NamedTuple):
    """The parameters of a dictionary."""

    penalty: float
    novelty: float
    relative: bool  # novelty is a share of k(x, x)
    budget: int  # no dictionary outgrows this
    coherence: float  # an input more alike than this to an element is no news
    along: float  # what is known of a sample's direction fades by this
    shrink: float  # what is known of everything fades by this towards the prior, when a round opens
    robust: float  # deviations beyond which an innovation weighs less; 0 for none


@compiled
def evaluate(program: Floats, stack: Floats, a: Floats, b: Floats) -> float:
    """κ(a, b) by the kernel's program, in postfix order, rows of (operation, parameters)."""
    inner, gap = 0.0, 0.0
    for k in range(a.size):
        inner += a[k] * b[k]
        gap += (a[k] - b[k]) ** 2
    top = -1
    for step in program:
        operation = step[0]
        if operation == ADD:
            stack[top - 1] += stack[top]
            top -= 1
        elif operation == MULTIPLY:
            stack[top - 1] *= stack[top]
            top -= 1
        else:
            top += 1
            if operation == CONSTANT:
                stack[top] = step[1]
            elif operation == LINEAR:
                stack[top] = inner
            elif operation == RBF:
                stack[top] = np.exp(-0.5 * gap / step[1] ** 2)
            else:
                stack[top] = (inner + step[1]) ** step[2]
    return stack[0]


@compiled
def kernel_inplace(
    k: Floats, dictionaries: Dictionaries, program: Floats, stack: Floats, x: Floats, task: int
) -> tuple[float, float]:
    """k ← k(D, x) by the multi-task kernel A⁻¹[s, t] κ(x, x'); returns k(x, x) and the coherence.

    That is the largest |k(x_j, x)| / √(k(x_j, x_j) k(x, x)) of all elements.
    """
    f, row = dictionaries.places[task, 0], dictionaries.places[task, 1]
    relation = dictionaries.prior[row]
    nearest = 0.0
    for j in range(dictionaries.sizes[f]):
        kappa = evaluate(program, stack, dictionaries.inputs[f, j], x)
        k[j] = relation[dictionaries.rows[f, j]] * kappa  # Eq. 31
        nearest = max(nearest, k[j] * k[j] / dictionaries.norms[f, j])
    kxx = relation[row] * evaluate(program, stack, x, x)
    return kxx, np.sqrt(nearest / kxx) if kxx > 0.0 else 0.0


@compiled
def whiten_inplace(k: Floats, U: Floats, m: int) -> float:
    """k ← φ = U⁻ᵀ k; returns φ'φ, the part of k(x, x) that the dictionary explains."""
    explained = 0.0
    for i in range(m):
        k[i] /= U[i, i]
        explained += k[i] * k[i]
        row = U[i]
        for j in range(i + 1, m):
            k[j] -= k[i] * row[j]
    return explained


@compiled
def unwhitened(U: Floats, phi: Floats, m: int) -> Floats:
    """a = U⁻¹φ, what the elements weigh."""
    a = phi[:m].copy()
    for i in range(m - 1, -1, -1):
        a[i] = (a[i] - dot(U[i, i + 1 : m], a[i + 1 :])) / U[i, i]
    return a


@compiled
def spread(dictionaries: Dictionaries, limits: Limits, f: int, phi: Floats, delta: float) -> float:
    """Deviation of a forecast; what the dictionary can't explain, δ, keeps its prior variance δ/λ."""
    totals = dictionaries.totals[f]
    known = totals[SCALE] * quadratic(dictionaries.covariance[f], 0, phi[: dictionaries.sizes[f]])
    return deviation(totals, known + delta / limits.penalty)


@compiled
def coordinates_inplace(
    phi: Floats, dictionaries: Dictionaries, program: Floats, stack: Floats, x: Floats, task: int
) -> tuple[float, float, float]:
    """phi ← φ(x); returns its novelty δ, k(x, x) and its coherence."""
    f = dictionaries.places[task, 0]
    kxx, coherence = kernel_inplace(phi, dictionaries, program, stack, x, task)
    explained = whiten_inplace(phi, dictionaries.factor[f], dictionaries.sizes[f])
    return max(kxx - explained, 0.0), kxx, coherence  # δ of Eq. 29


@compiled
def forecast(dictionaries: Dictionaries, f: int, phi: Floats) -> float:
    """φ'β."""
    m = dictionaries.sizes[f]
    return dot(dictionaries.weights[f, :m], phi[:m])


@compiled
def turn_inplace(U: Floats, w: Floats, P: Floats, m: int, c: int, cos: float, sin: float) -> None:
    """Turn the coordinates p = c and q = c + 1: p becomes sin q − cos p, and q becomes sin p + cos q."""
    p, q = c, c + 1
    for j in range(p, m):
        U[p, j], U[q, j] = sin * U[q, j] - cos * U[p, j], sin * U[p, j] + cos * U[q, j]
    w[p], w[q] = sin * w[q] - cos * w[p], sin * w[p] + cos * w[q]
    for j in range(p):
        P[p, j], P[q, j] = sin * P[q, j] - cos * P[p, j], sin * P[p, j] + cos * P[q, j]
    pp, qp, qq = P[p, p], P[q, p], P[q, q]
    P[p, p] = cos * cos * pp - 2.0 * cos * sin * qp + sin * sin * qq
    P[q, p] = cos * sin * (qq - pp) + (sin * sin - cos * cos) * qp
    P[q, q] = sin * sin * pp + 2.0 * cos * sin * qp + cos * cos * qq
    for i in range(q + 1, m):
        P[i, p], P[i, q] = sin * P[i, q] - cos * P[i, p], sin * P[i, p] + cos * P[i, q]


@compiled
def least_relevant(dictionaries: Dictionaries, f: int) -> int:
    """The element without which the forecasts of late inputs change least, in the mean square.

    Without j, the forecast of x changes by a_j(x) α_j / (K⁻¹)_jj, where a = K⁻¹k(D, x).
    """
    m = dictionaries.sizes[f]
    alpha = unwhitened(dictionaries.factor[f], dictionaries.weights[f], m)
    return int(np.argmin((alpha / dictionaries.precision[f, :m]) ** 2 * dictionaries.usage[f, :m]))


@compiled
def evict_inplace(dictionaries: Dictionaries, f: int, gone: int) -> None:
    """Drop an element, and with it what only it can express, v with U'v = e_gone, of what is known."""
    m = dictionaries.sizes[f]
    last = m - 1
    U, P, w = dictionaries.factor[f], dictionaries.covariance[f], dictionaries.weights[f]
    v = np.zeros(m)
    v[gone] = 1.0
    whiten_inplace(v, U, m)
    column = unwhitened(U, v, m)  # of K⁻¹
    for c in range(gone, last):
        length = np.hypot(v[c], v[c + 1])
        turn_inplace(U, w, P, m, c, v[c + 1] / length, v[c] / length)
        v[c + 1] = length
    for i in range(last):
        for j in range(max(gone, i), last):
            U[i, j] = U[i, j + 1]
    for j in range(last):
        after = j if j < gone else j + 1
        dictionaries.inputs[f, j] = dictionaries.inputs[f, after]
        dictionaries.rows[f, j] = dictionaries.rows[f, after]
        dictionaries.norms[f, j] = dictionaries.norms[f, after]
        dictionaries.usage[f, j] = dictionaries.usage[f, after]
        dictionaries.age[f, j] = dictionaries.age[f, after]
        shared = column[after] * column[after] / column[gone]
        dictionaries.precision[f, j] = max(dictionaries.precision[f, after] - shared, 1.0 / dictionaries.norms[f, j])
    dictionaries.sizes[f] = last
    dictionaries.evicted[f] += 1


@compiled
def restore_inplace(dictionaries: Dictionaries, limits: Limits) -> None:
    """β ← ρ β, P̃ ← ρ² P̃ + (1 − ρ²) I/λ, of all dictionaries."""
    for f in range(dictionaries.sizes.size):
        P, totals = dictionaries.covariance[f], dictionaries.totals[f]
        totals[SCALE] *= limits.shrink * limits.shrink
        more = (1.0 - limits.shrink * limits.shrink) / (limits.penalty * totals[SCALE])
        for i in range(dictionaries.sizes[f]):
            dictionaries.weights[f, i] *= limits.shrink
            P[i, i] += more
        if totals[SCALE] < 1.0 / FOLD:
            fold_inplace(P, totals, dictionaries.sizes[f])


@compiled
def absorb_inplace(
    dictionaries: Dictionaries,
    limits: Limits,
    g: Floats,
    x: Floats,
    task: int,
    phi: Floats,
    delta: float,
    kxx: float,
    coherence: float,
    y: float,
    weight: float,
) -> bool:
    """Learn one sample, given its coordinates φ (with room for one more); False where the arithmetic breaks down."""
    f, row = dictionaries.places[task, 0], dictionaries.places[task, 1]
    m = dictionaries.sizes[f]
    w, P, totals = dictionaries.weights[f], dictionaries.covariance[f], dictionaries.totals[f]
    if not kxx < np.inf:
        return False
    novelty = limits.novelty * (kxx if limits.relative else 1.0)
    grows = delta > novelty and coherence <= limits.coherence and weight > 0.0
    U, a = dictionaries.factor[f], phi[:0]
    bounded = limits.budget < UNBOUNDED
    if grows or bounded:
        a = unwhitened(U, phi, m)
    # U'U is K up to rounding, which a brings into δ, squared
    grows = grows and delta > ROUNDING * (1.0 + dot(a, a)) * kxx + LEAST
    if grows:  # x is news: one more coordinate, zero for all samples so far
        phi[m] = np.sqrt(delta)
        P[m, :m] = 0.0
        P[m, m] = 1.0 / (limits.penalty * totals[SCALE])
        w[m] = 0.0
        m += 1
    x_tilde, g = phi[:m], g[:m]
    gain_inplace(g, P, m, 0, x_tilde)
    doubt = rounding(P, 0, x_tilde)
    fades = 1.0, 1.0, limits.along
    sample = (0, x_tilde, y, weight, *fades)
    weight, loss = correct_inplace(w[:m], totals, g, *sample, dictionaries.errors, task, limits.robust, doubt)
    if weight < 0.0:
        return False
    lose_inplace(P, m, g, loss)
    if bounded and weight > 0.0:
        for j in range(a.size):
            dictionaries.age[f, j] = min(dictionaries.age[f, j] + 1.0, LATELY * limits.budget)
            share = 0.0 if grows else a[j]
            dictionaries.usage[f, j] += (share * share - dictionaries.usage[f, j]) / dictionaries.age[f, j]
    if grows:
        dictionaries.inputs[f, m - 1] = x
        dictionaries.rows[f, m - 1] = row
        dictionaries.norms[f, m - 1] = kxx
        U[:m, m - 1] = phi[:m]
        for j in range(m - 1):
            dictionaries.precision[f, j] += a[j] * a[j] / delta
        dictionaries.precision[f, m - 1] = 1.0 / delta
        dictionaries.usage[f, m - 1] = 1.0
        dictionaries.age[f, m - 1] = 1.0
        dictionaries.sizes[f] = m
        if m > limits.budget:
            evict_inplace(dictionaries, f, least_relevant(dictionaries, f))
    return True


@compiled
def predict(
    dictionaries: Dictionaries, limits: Limits, program: Floats, X: Floats, tasks: Ints, mean: Floats, std: Floats
) -> None:
    """Forecast each sample into `mean`, and its deviation into `std` unless that is empty."""
    phi = np.empty(dictionaries.inputs.shape[1])
    stack = np.empty(program.shape[0])
    for i in range(tasks.size):
        f = dictionaries.places[tasks[i], 0]
        delta, _, _ = coordinates_inplace(phi, dictionaries, program, stack, X[i], tasks[i])
        mean[i] = forecast(dictionaries, f, phi)
        if std.size:
            std[i] = spread(dictionaries, limits, f, phi, delta)


@compiled
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
    """
    capacity = dictionaries.inputs.shape[1]
    phi, g = np.empty(capacity), np.empty(capacity)
    stack = np.empty(program.shape[0])
    first = 0
    for end in ends:
        if min(dictionaries.sizes.max() + end - first, limits.budget + 1) > capacity:
            return first, True
        alone = end == first + 1  # then the coordinates of the forecast serve for learning too
        if not alone:
            deviations = std[first:end] if std.size else std
            predict(dictionaries, limits, program, X[first:end], tasks[first:end], mean[first:end], deviations)
        for i in range(first, end):
            f = dictionaries.places[tasks[i], 0]
            delta, kxx, coherence = coordinates_inplace(phi, dictionaries, program, stack, X[i], tasks[i])
            if alone:
                mean[i] = forecast(dictionaries, f, phi)
                if std.size:
                    std[i] = spread(dictionaries, limits, f, phi, delta)
            if opens[i] and limits.shrink < 1.0:
                restore_inplace(dictionaries, limits)
            novel = delta, kxx, coherence
            if not absorb_inplace(dictionaries, limits, g, X[i], tasks[i], phi, *novel, y[i], weights[i]):
                return i, False
        first = end
    return first, False
