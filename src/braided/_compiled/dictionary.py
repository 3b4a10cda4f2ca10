"""F dictionaries of growing size m: recursive least squares in their coordinates; elements join and leave.

With K = U'U the kernel matrix of a dictionary and φ(x) = U⁻ᵀ k(D, x), the problem ‖C K α − y‖² + λ α'Kα is a ridge
regression on φ with weights β = U α. So P̃ = (Φ'Φ + λI)⁻¹ and β follow the plain recursion, and a new element is a new
coordinate with prior variance 1/λ. The paper's P is U' P̃ U and its α is U⁻¹ β. K⁻¹ is never formed: updated by
recursion it loses all digits for small novelty, which the triangular factor does not.

A dictionary above its budget drops the element that matters least to recent inputs, as in KRLS-T (Van Vaerenbergh,
Lázaro-Gredilla & Santamaría, IEEE Transactions on Neural Networks and Learning Systems 23, 2012). The coordinates are
turned until one of them is what that element alone can express, and only that one is lost.
"""

from typing import NamedTuple

import numpy as np

from braided._compiled import compiled
from braided._compiled.linear import FOUR, dot
from braided._compiled.rls_step import (
    FOLD,
    ROUNDING,
    SCALE,
    correct_inplace,
    deviation,
    fold_inplace,
    lose_inplace,
    quadratic,
)
from braided.types import Floats, Ints

UNBOUNDED = 2**62  # a budget this large means none
USAGE_WINDOW = 10  # times the budget: inputs over which the usage of an element is averaged
SMALLEST_NOVELTY = 1e-280  # a novelty below has no inverse
DELTA_ROUNDING = 16.0 * 2.0**-52  # in δ, as a share of k(x, x)


class Dictionaries(NamedTuple):
    """State of F dictionaries with room for `capacity` elements each."""

    norms: Floats  # (F, capacity) k(x, x) of the elements, the diagonal of K
    precision: Floats  # (F, capacity) the diagonal of K⁻¹
    inputs: Floats  # (F, capacity, d) the elements
    rows: Ints  # (F, capacity) the row of `prior` each element belongs to
    factor: Floats  # (F, capacity, capacity) U, upper triangular, K = U'U
    usage: Floats  # (F, capacity) mean square of an element's share a in later inputs; with a budget only
    age: Floats  # (F, capacity) number of inputs in that mean
    weights: Floats  # (F, capacity) β
    covariance: Floats  # (F, capacity, capacity) lower triangle of P̃ / scale
    totals: Floats  # (F, 3) as in filters.Filters
    sizes: Ints  # (F,) elements in use, m
    prior: Floats  # (R, R) A⁻¹: the prior covariance between the tasks
    places: Ints  # (T, 2) each task's dictionary, and its row of `prior`
    errors: Floats  # (T + 1, 3) as in filters.Filters
    evicted: Ints  # (F,) number of elements dropped


class Limits(NamedTuple):
    """The parameters of a dictionary."""

    penalty: float
    novelty: float
    relative: bool  # novelty is a share of k(x, x)
    budget: int  # largest size of a dictionary
    coherence: float  # an input more coherent with an element than this does not join
    along: float  # factor by which knowledge in the direction of a sample fades
    shrink: float  # factor by which all knowledge fades towards the prior when a round opens
    robust: float  # standard deviations beyond which an innovation weighs less; 0 for none


class Elements(NamedTuple):
    """The m elements of one dictionary."""

    inputs: Floats  # (m, d)
    rows: Ints  # (m,)
    factor: Floats  # U


class Known(NamedTuple):
    """What is known in the coordinates of one dictionary."""

    weights: Floats  # (m,) β
    covariance: Floats  # P̃ / scale
    totals: Floats  # (3,)
    errors: Floats  # (T + 1, 3) of all tasks


class Sample(NamedTuple):
    """One sample, and its coordinates in its dictionary."""

    x: Floats  # (d,)
    task: int
    y: float
    weight: float
    phi: Floats  # its coordinates φ, with room for one more
    delta: float  # δ, the part of k(x, x) that the dictionary can't explain
    kxx: float  # k(x, x)
    coherence: float  # with the nearest element


@compiled
def is_news(limits: Limits, delta: float, kxx: float, weight: float) -> bool:
    """Whether enough of k(x, x) is unexplained for a sample of this weight to join."""
    return weight > 0.0 and delta > limits.novelty * (kxx if limits.relative else 1.0)


@compiled
def whiten_inplace(k: Floats, U: Floats, m: int) -> float:
    """k ← φ = U⁻ᵀ k, four coordinates at a time; returns φ'φ, the part of k(x, x) that the dictionary explains."""
    full = m - m % FOUR
    for i in range(0, full, FOUR):
        rest, a, b, c, d = k[i:m], U[i, i:m], U[i + 1, i:m], U[i + 2, i:m], U[i + 3, i:m]
        a_inverse, b_inverse, c_inverse, d_inverse = 1.0 / a[0], 1.0 / b[1], 1.0 / c[2], 1.0 / d[3]  # in parallel
        p = rest[0] * a_inverse
        q = (rest[1] - p * a[1]) * b_inverse
        r = (rest[2] - p * a[2] - q * b[2]) * c_inverse
        s = (rest[3] - p * a[3] - q * b[3] - r * c[3]) * d_inverse
        rest[0], rest[1], rest[2], rest[3] = p, q, r, s
        rest, a, b, c, d = rest[FOUR:], a[FOUR:], b[FOUR:], c[FOUR:], d[FOUR:]
        for j in range(rest.size):
            rest[j] -= p * a[j] + q * b[j] + r * c[j] + s * d[j]
    for i in range(full, m):
        k[i] /= U[i, i]
        for j in range(i + 1, m):
            k[j] -= k[i] * U[i, j]
    return dot(k[:m], k[:m])


@compiled
def unwhiten_inplace(a: Floats, U: Floats, phi: Floats, m: int) -> None:
    """a ← U⁻¹φ, the shares of the elements."""
    for i in range(m - 1, -1, -1):
        a[i] = (phi[i] - dot(U[i, i + 1 : m], a[i + 1 : m])) / U[i, i]


@compiled
def unwhitened(U: Floats, phi: Floats, m: int) -> Floats:
    """a = U⁻¹φ."""
    a = np.empty(m)
    unwhiten_inplace(a, U, phi, m)
    return a


@compiled
def spread(totals: Floats, P: Floats, phi: Floats, unexplained: float) -> float:
    """Deviation of a forecast; the part that the dictionary can't explain has its prior variance δ/λ."""
    return deviation(totals, totals[SCALE] * quadratic(P, 0, phi) + unexplained)


@compiled
def product_inplace(g: Floats, P: Floats, x: Floats) -> float:
    """g ← P x from the lower triangle of P, four rows at a time; returns Σ x² P_ii, for `rounding`."""
    m, own = x.size, 0.0
    full = m - m % FOUR
    for i in range(0, full, FOUR):
        a, b, c, d = P[i], P[i + 1], P[i + 2], P[i + 3]
        p, q, r, s = x[i], x[i + 1], x[i + 2], x[i + 3]
        own += a[i] * p * p + b[i + 1] * q * q + c[i + 2] * r * r + d[i + 3] * s * s
        ax = a[i] * p + b[i] * q + c[i] * r + d[i] * s
        bx = b[i] * p + b[i + 1] * q + c[i + 1] * r + d[i + 1] * s
        cx = c[i] * p + c[i + 1] * q + c[i + 2] * r + d[i + 2] * s
        dx = d[i] * p + d[i + 1] * q + d[i + 2] * r + d[i + 3] * s
        for j in range(i):
            g[j] += a[j] * p + b[j] * q + c[j] * r + d[j] * s
            ax += a[j] * x[j]
            bx += b[j] * x[j]
            cx += c[j] * x[j]
            dx += d[j] * x[j]
        g[i], g[i + 1], g[i + 2], g[i + 3] = ax, bx, cx, dx
    for i in range(full, m):
        row, p, ax = P[i], x[i], P[i, i] * x[i]
        own += ax * p
        for j in range(i):
            g[j] += row[j] * p
            ax += row[j] * x[j]
        g[i] = ax
    return own


@compiled
def learn_inplace(known: Known, limits: Limits, g: Floats, phi: Floats, y: float, weight: float, task: int) -> float:
    """Learn one sample, given its coordinates φ; its weight, or −1 (`correct_inplace`). g is room for as many."""
    w, P, totals, errors = known.weights, known.covariance, known.totals, known.errors
    along, robust = limits.along, limits.robust
    doubt = ROUNDING * phi.size * product_inplace(g, P, phi)
    given, loss = correct_inplace(w, totals, g, 0, phi, y, weight, 1.0, 1.0, along, errors, task, robust, doubt)
    if given >= 0.0:
        lose_inplace(P, g, loss)
    return given


@compiled
def use_inplace(usage: Floats, age: Floats, a: Floats, share: float, most: float) -> None:
    """Add the squares of the elements' shares a in a sample to their usage, times `share`."""
    for j in range(a.size):
        age[j] = min(age[j] + 1.0, most)
        usage[j] += (share * a[j] * a[j] - usage[j]) / age[j]


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
    """The element whose removal changes the forecasts of recent inputs least, in the mean square.

    Without j, the forecast of x changes by a_j(x) α_j / (K⁻¹)_jj, where a = K⁻¹k(D, x).
    """
    m = dictionaries.sizes[f]
    alpha = unwhitened(dictionaries.factor[f], dictionaries.weights[f], m)
    return int(np.argmin((alpha / dictionaries.precision[f, :m]) ** 2 * dictionaries.usage[f, :m]))


@compiled
def evict_inplace(dictionaries: Dictionaries, f: int, gone: int) -> None:
    """Drop an element, and the direction that it alone can express, v with U'v = e_gone."""
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
        for k in range(dictionaries.inputs.shape[2]):  # assigning whole rows takes two seconds to compile
            dictionaries.inputs[f, j, k] = dictionaries.inputs[f, after, k]
        dictionaries.rows[f, j] = dictionaries.rows[f, after]
        dictionaries.norms[f, j] = dictionaries.norms[f, after]
        dictionaries.usage[f, j] = dictionaries.usage[f, after]
        dictionaries.age[f, j] = dictionaries.age[f, after]
        shared = column[after] * column[after] / column[gone]
        dictionaries.precision[f, j] = max(dictionaries.precision[f, after] - shared, 1.0 / dictionaries.norms[f, j])
    dictionaries.sizes[f] = last
    dictionaries.evicted[f] += 1


@compiled
def evict_least_inplace(dictionaries: Dictionaries, f: int) -> None:
    """Drop the element that matters least."""
    evict_inplace(dictionaries, f, least_relevant(dictionaries, f))


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
def absorb_inplace(dictionaries: Dictionaries, limits: Limits, sample: Sample) -> bool:
    """Learn one sample, which joins its dictionary if it is news; False where the arithmetic breaks down."""
    f, row = dictionaries.places[sample.task, 0], dictionaries.places[sample.task, 1]
    m, phi, delta, kxx = dictionaries.sizes[f], sample.phi, sample.delta, sample.kxx
    P, totals, U = dictionaries.covariance[f], dictionaries.totals[f], dictionaries.factor[f]
    if not kxx < np.inf:
        return False
    grows = is_news(limits, delta, kxx, sample.weight) and sample.coherence <= limits.coherence
    bounded = limits.budget < UNBOUNDED
    a = unwhitened(U, phi, m) if grows or bounded else phi[:0]
    # U'U is K up to rounding, which enters δ with the square of a
    grows = grows and delta > DELTA_ROUNDING * (1.0 + dot(a, a)) * kxx + SMALLEST_NOVELTY
    if grows:  # one more coordinate, zero for all samples so far
        phi[m] = np.sqrt(delta)
        for j in range(m):
            P[m, j] = 0.0
        P[m, m] = 1.0 / (limits.penalty * totals[SCALE])
        dictionaries.weights[f, m] = 0.0
        m += 1
    known = Known(dictionaries.weights[f, :m], P, totals, dictionaries.errors)
    given = learn_inplace(known, limits, np.empty(m), phi[:m], sample.y, sample.weight, sample.task)
    if given < 0.0:
        return False
    if bounded and given > 0.0:
        share, most = 0.0 if grows else 1.0, USAGE_WINDOW * limits.budget
        use_inplace(dictionaries.usage[f], dictionaries.age[f], a, share, most)
    if grows:
        for k in range(sample.x.size):
            dictionaries.inputs[f, m - 1, k] = sample.x[k]
        dictionaries.rows[f, m - 1] = row
        dictionaries.norms[f, m - 1] = kxx
        for j in range(m):
            U[j, m - 1] = phi[j]
        for j in range(m - 1):
            dictionaries.precision[f, j] += a[j] * a[j] / delta
        dictionaries.precision[f, m - 1] = 1.0 / delta
        dictionaries.usage[f, m - 1] = 1.0
        dictionaries.age[f, m - 1] = 1.0
        dictionaries.sizes[f] = m
    return True
