"""Online sparse least squares support vector regression (Algorithm 2), for F dictionaries of growing size m.

It is recursive least squares in the coordinates of the dictionary. With K = U'U its kernel matrix and
φ(x) = U⁻ᵀ k(D, x), the defining problem ‖C K α − y‖² + λ α'Kα is a ridge regression on φ with weights β = U α,
so P̃ = (Φ'Φ + λI)⁻¹ and β follow the plain recursion, and a new dictionary element is a new coordinate with
prior variance 1/λ. The paper's P is U' P̃ U and its α is U⁻¹ β. No inverse of K is ever formed: K⁻¹ updated by
recursion loses all digits for small novelty, the triangular factor does not.
"""

from typing import NamedTuple

import numpy as np

from braided._compiled import compiled
from braided._compiled.linear import dot
from braided._compiled.rls import SCALE, deviation, learn_inplace, quadratic
from braided.types import Floats, Ints

CONSTANT, LINEAR, RBF, POLYNOMIAL, ADD, MULTIPLY = range(6)  # the operations of a kernel's program
ROUNDING = 2.0**-52
CLEAR = 1e-6  # a novelty above this share of k(x, x) is news without a doubt


class Dictionaries(NamedTuple):
    """State of F dictionaries with room for `capacity` elements each."""

    inputs: Floats  # (F, capacity, d) the elements
    rows: Ints  # (F, capacity) the row of `prior` each element belongs to
    factor: Floats  # (F, capacity, capacity) U, upper triangular, K = U'U
    weights: Floats  # (F, capacity) β
    covariance: Floats  # (F, capacity, capacity) lower triangle of P̃
    totals: Floats  # (F, 3) as in rls.Filters
    sizes: Ints  # (F,) elements in use, m
    prior: Floats  # (R, R) A⁻¹: the prior covariance between the tasks
    places: Ints  # (T, 2) each task's dictionary, and its row of `prior`


class Limits(NamedTuple):
    """The parameters of a dictionary."""

    penalty: float
    novelty: float
    relative: bool  # novelty is a share of k(x, x)
    budget: int  # no dictionary outgrows this


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
) -> float:
    """k ← k(D, x) by the multi-task kernel A⁻¹[s, t] κ(x, x'); returns k(x, x)."""
    f, row = dictionaries.places[task, 0], dictionaries.places[task, 1]
    relation = dictionaries.prior[row]
    for j in range(dictionaries.sizes[f]):
        kappa = evaluate(program, stack, dictionaries.inputs[f, j], x)
        k[j] = relation[dictionaries.rows[f, j]] * kappa  # Eq. 31
    return relation[row] * evaluate(program, stack, x, x)


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
def rounding(U: Floats, phi: Floats, m: int) -> float:
    """The rounding in δ, as a share of k(x, x): U'U is K up to rounding, and a = U⁻¹φ brings that into δ, squared."""
    a, total = phi[:m].copy(), 1.0
    for i in range(m - 1, -1, -1):
        a[i] = (a[i] - dot(U[i, i + 1 : m], a[i + 1 :])) / U[i, i]
        total += a[i] * a[i]
    return 16.0 * ROUNDING * total


@compiled
def spread(dictionaries: Dictionaries, limits: Limits, f: int, phi: Floats, delta: float) -> float:
    """Deviation of a forecast; what the dictionary can't explain, δ, keeps its prior variance δ/λ."""
    totals = dictionaries.totals[f]
    known = totals[SCALE] * quadratic(dictionaries.covariance[f], 0, phi[: dictionaries.sizes[f]])
    return deviation(totals, known + delta / limits.penalty)


@compiled
def coordinates_inplace(
    phi: Floats, dictionaries: Dictionaries, program: Floats, stack: Floats, x: Floats, task: int
) -> tuple[float, float]:
    """phi ← φ(x); returns its novelty δ and k(x, x)."""
    f = dictionaries.places[task, 0]
    kxx = kernel_inplace(phi, dictionaries, program, stack, x, task)
    explained = whiten_inplace(phi, dictionaries.factor[f], dictionaries.sizes[f])
    return max(kxx - explained, 0.0), kxx  # δ of Eq. 29


@compiled
def forecast(dictionaries: Dictionaries, f: int, phi: Floats) -> float:
    """φ'β."""
    m = dictionaries.sizes[f]
    return dot(dictionaries.weights[f, :m], phi[:m])


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
    y: float,
    weight: float,
) -> bool:
    """Learn one sample, given its coordinates φ (with room for one more); False where the arithmetic breaks down."""
    f, row = dictionaries.places[task, 0], dictionaries.places[task, 1]
    m = dictionaries.sizes[f]
    w, P, totals = dictionaries.weights[f], dictionaries.covariance[f], dictionaries.totals[f]
    if not np.isfinite(kxx):
        return False
    novelty = limits.novelty * (kxx if limits.relative else 1.0)
    grows = delta > novelty and m < limits.budget and weight > 0.0
    if grows and delta < CLEAR * kxx:
        grows = delta > rounding(dictionaries.factor[f], phi, m) * kxx
    if grows:  # x is news: one more coordinate, zero for all samples so far
        phi[m] = np.sqrt(delta)
        P[m, :m] = 0.0
        P[m, m] = 1.0 / (limits.penalty * totals[SCALE])
        w[m] = 0.0
        m += 1
    if not learn_inplace(w, P, totals, g, m, 0, phi[:m], y, weight, 1.0, 1.0, 1.0):
        return False
    if grows:
        dictionaries.inputs[f, m - 1] = x
        dictionaries.rows[f, m - 1] = row
        dictionaries.factor[f, :m, m - 1] = phi[:m]
        dictionaries.sizes[f] = m
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
        delta, _ = coordinates_inplace(phi, dictionaries, program, stack, X[i], tasks[i])
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
    mean: Floats,
    std: Floats,
) -> tuple[int, bool]:
    """Forecast, then learn, group by group (`ends` holds their ends).

    Returns how many samples were learned, and whether it stopped for want of room (before a group, never inside).
    """
    capacity = dictionaries.inputs.shape[1]
    phi, g = np.empty(capacity), np.empty(capacity)
    stack = np.empty(program.shape[0])
    first = 0
    for end in ends:
        if min(dictionaries.sizes.max() + end - first, limits.budget) > capacity:
            return first, True
        alone = end == first + 1  # then the coordinates of the forecast serve for learning too
        if not alone:
            deviations = std[first:end] if std.size else std
            predict(dictionaries, limits, program, X[first:end], tasks[first:end], mean[first:end], deviations)
        for i in range(first, end):
            f = dictionaries.places[tasks[i], 0]
            delta, kxx = coordinates_inplace(phi, dictionaries, program, stack, X[i], tasks[i])
            if alone:
                mean[i] = forecast(dictionaries, f, phi)
                if std.size:
                    std[i] = spread(dictionaries, limits, f, phi, delta)
            if not absorb_inplace(dictionaries, limits, g, X[i], tasks[i], phi, delta, kxx, y[i], weights[i]):
                return i, False
        first = end
    return first, False
