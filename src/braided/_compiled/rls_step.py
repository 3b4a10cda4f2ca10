"""One step of recursive least squares on one stored triangle, for filters and dictionaries.

Letters, as in the paper: P covariance, w weights, g = P z gain direction, e innovation, z stacked input.
The stored P is the true one divided by `scale`, so that uniform forgetting costs one division; only its lower
triangle is read or written, which keeps it symmetric (rounding asymmetry would grow like 1/forgetting^i).
"""

import numpy as np

from braided._compiled import compiled
from braided._compiled.linear import FOUR, dot
from braided.types import Floats

SCALE, RESIDUAL, COUNT = 0, 1, 2  # the columns of totals
SQUARE, SEEN, UNUSUAL = 0, 1, 2  # the columns of errors
FOLD = 2.0**10  # above this, the scale is folded into P, and P is checked for wind-up
LARGEST_ENTRY = 1e300  # of P, where there is no guard
LARGEST_SIZE = 1e140  # of inputs, targets and steps of weights: squares of later values must not overflow
EXPECTED_NOISE_WEIGHT = 1e-3  # in samples
LEAST_EVIDENCE = 1e-100  # below this, evidence no longer fades
ROUNDING = 2.0**-52
PRIOR_FLOOR = 1e-6  # share of the prior that never fades
POOLED_WEIGHT = 10.0  # weight of the pooled error, in equivalent samples of the task's own
ERROR_WINDOW = 200.0  # of the running mean square of the errors, in samples
MOST_DOUBT = 1e-2  # share of a forecast's variance that may be rounding


def fresh_totals(n_filters: int, noise: float = 0.0) -> Floats:
    """Return the totals before the first sample; expected noise, a deviation, counts as a small part of a sample."""
    weight = EXPECTED_NOISE_WEIGHT if noise > 0.0 else 0.0
    return np.tile([1.0, weight * noise * noise, weight], (n_filters, 1))


def fresh_errors(n_tasks: int, noise: float = 0.0) -> Floats:
    """Return the errors before the first sample, of each task and of all."""
    errors = np.zeros((n_tasks + 1, 3))
    errors[-1, [SQUARE, SEEN]] = noise * noise, EXPECTED_NOISE_WEIGHT if noise > 0.0 else 0.0
    return errors


def symmetric(lower: Floats) -> Floats:
    """Return the matrix, or matrices, whose lower triangle is given."""
    return np.tril(lower) + np.tril(lower, -1).swapaxes(-1, -2)


def noise_variance(totals: Floats) -> Floats:
    """Return the estimated variance of the noise of each filter; infinite before its first sample."""
    seen = totals[:, COUNT] > 0.0
    return np.where(seen, np.maximum(totals[:, RESIDUAL], 0.0) / np.where(seen, totals[:, COUNT], 1.0), np.inf)


@compiled
def gain_inplace(g: Floats, P: Floats, start: int, x: Floats) -> None:
    """g ← P z, for z that holds x from `start` on and zeros elsewhere: reads d columns of P only."""
    stop = start + x.size
    for j in range(stop):
        g[j] = 0.0
    for k in range(x.size):
        row, own, total = P[start + k], P[start + k, start : start + k], P[start + k, start + k] * x[k]
        for j in range(start):
            g[j] += row[j] * x[k]
        for j in range(k):
            g[start + j] += own[j] * x[k]
            total += own[j] * x[j]
        g[start + k] = total
    full = g.size - (g.size - stop) % FOUR
    for i in range(stop, full, FOUR):  # short sums, which need not wait for each other
        a, b, c, d = P[i, start:stop], P[i + 1, start:stop], P[i + 2, start:stop], P[i + 3, start:stop]
        p, q, r, s = 0.0, 0.0, 0.0, 0.0
        for k in range(x.size):
            p += a[k] * x[k]
            q += b[k] * x[k]
            r += c[k] * x[k]
            s += d[k] * x[k]
        g[i], g[i + 1], g[i + 2], g[i + 3] = p, q, r, s
    for i in range(full, g.size):
        g[i] = dot(P[i, start:stop], x)


@compiled
def quadratic(P: Floats, start: int, x: Floats) -> float:
    """z' P z, from the diagonal block of P that belongs to x."""
    total = 0.0
    for k in range(x.size):
        row = P[start + k]
        total += x[k] * (2.0 * dot(row[start : start + k], x[:k]) + row[start + k] * x[k])
    return total


@compiled
def rounding(P: Floats, start: int, x: Floats) -> float:
    """Bound of the rounding error of z' P z, which exceeds z' P z where P winds up in directions without samples."""
    total = 0.0
    for k in range(x.size):
        total += x[k] * x[k] * P[start + k, start + k]
    return ROUNDING * x.size * total


@compiled
def deviation(totals: Floats, variance: float) -> float:
    """Standard deviation of a forecast, √(noise variance · (1 + z'Pz)); infinite before the first sample."""
    if totals[COUNT] <= 0.0 or np.isnan(variance):
        return np.inf
    return np.sqrt(max(totals[RESIDUAL], 0.0) / totals[COUNT] * max(1.0 + variance, 0.0))


@compiled
def typical_square(errors: Floats, task: int) -> float:
    """Typical square of an innovation over its variance: mostly the task's own, and a little of all tasks'."""
    own, pooled = errors[task], errors[-1]
    return (own[SEEN] * own[SQUARE] + POOLED_WEIGHT * pooled[SQUARE]) / (own[SEEN] + POOLED_WEIGHT)


@compiled
def learn_error_inplace(row: Floats, square: float, unusual: bool) -> None:
    """Add the square of an innovation over its variance to one row of the errors."""
    row[SEEN] = min(row[SEEN] + 1.0, ERROR_WINDOW)
    row[SQUARE] += (square - row[SQUARE]) / row[SEEN]
    row[UNUSUAL] += unusual


@compiled
def fade_evidence_inplace(totals: Floats, factor: float) -> None:
    """Fade the evidence about the noise; the estimate stays, however long the gap between samples."""
    if totals[COUNT] * factor > LEAST_EVIDENCE:
        totals[RESIDUAL] *= factor
        totals[COUNT] *= factor


@compiled
def correct_inplace(
    w: Floats,
    totals: Floats,
    g: Floats,
    start: int,
    x: Floats,
    y: float,
    weight: float,
    everything: float,
    own: float,
    along: float,
    errors: Floats,
    task: int,
    robust: float,
    doubt: float,
) -> tuple[float, float]:
    """Forget, then learn one sample, all but P: the weight given, and the factor of g g' that P is to lose.

    The weight is −1, and nothing is changed, where the arithmetic breaks down. `everything`, `own` and `along` are the
    factors by which all tasks, in addition the sample's own, and the information along z alone fade; g = P z is
    updated for them. Where `robust` is above 0, an innovation of more deviations is given the weight that makes it one
    of that many, by the `errors` of its task so far. `doubt` is the rounding error of z'Pz.
    """
    n, stop = g.size, start + x.size
    scale = totals[SCALE] / everything
    variance, forecast, norm, size = 0.0, 0.0, 0.0, 0.0
    for k in range(x.size):
        variance += g[start + k] * x[k]
        forecast += w[start + k] * x[k]
        norm += x[k] * x[k]
    for i in range(n):
        size += abs(g[i])
    ratio = scale / own
    variance *= ratio
    s = along + weight * variance
    e = y - forecast  # Eq. 16
    c = weight / s
    square, given = along * e * e * c, weight
    if robust > 0.0:
        most = robust * robust * typical_square(errors, task)
        if square > most > 0.0:
            weight = along / (along * e * e / most - variance)
            s = along + weight * variance
            c = weight / s
            square = most
    c *= scale  # Eq. 15, k(n) = c g
    loss = c  # of P along g
    if along < 1.0 and weight * variance > 0.0:
        loss = c * (1.0 - (1.0 - along) / (weight * variance))
    sound = max(weight, 1.0) * norm <= LARGEST_SIZE * LARGEST_SIZE and weight * abs(y) <= LARGEST_SIZE
    sound = sound and 0.0 < s <= LARGEST_ENTRY and square <= LARGEST_ENTRY and abs(loss) * size * size <= LARGEST_ENTRY
    sound = sound and c * abs(e) * size <= own * LARGEST_SIZE  # the steps of the weights
    if not (sound and doubt * ratio <= MOST_DOUBT * (along + max(variance, 0.0))):
        return -1.0, 0.0
    totals[SCALE] = scale
    evidence = everything
    if own * along < 1.0:
        evidence *= (own * along) ** (x.size / max(n, 1))  # for the task's own share
    fade_evidence_inplace(totals, evidence)
    totals[RESIDUAL] += square
    totals[COUNT] += given
    if robust > 0.0 and given > 0.0:
        learn_error_inplace(errors[task], square, weight < given)
        learn_error_inplace(errors[-1], square, weight < given)
    if own != 1.0:  # g ← D P D z, see fade_own_inplace
        root = 1.0 / np.sqrt(own)
        for i in range(n):
            g[i] *= root * root if start <= i < stop else root
    for i in range(n):
        w[i] += c * e * g[i]  # Eq. 17
    return weight, loss


@compiled
def limited(value: float) -> float:
    """An entry of P, clipped before it overflows."""
    return min(max(value, -LARGEST_ENTRY), LARGEST_ENTRY)


@compiled
def fade_own_inplace(P: Floats, start: int, d: int, own: float) -> None:
    """P ← D P D, with 1/√own on the task's own places of the diagonal D and 1 elsewhere."""
    stop = start + d
    root = 1.0 / np.sqrt(own)
    for i in range(start, P.shape[0]):
        if i < stop:
            for j in range(i + 1):
                P[i, j] = limited(P[i, j] * root)
        for j in range(start, min(stop, i + 1)):
            P[i, j] = limited(P[i, j] * root)


@compiled
def fold_inplace(P: Floats, totals: Floats, n: int) -> None:
    """P ← scale P, scale ← 1."""
    for i in range(n):
        for j in range(i + 1):
            P[i, j] = limited(P[i, j] * totals[SCALE])
    totals[SCALE] = 1.0


@compiled
def lose_inplace(P: Floats, g: Floats, loss: float) -> None:
    """P ← P − loss g g'."""
    n = g.size
    for i in range(n):
        factor, row = loss * g[i], P[i]
        variance = row[i] - factor * g[i]
        for j in range(i):
            row[j] -= factor * g[j]  # Eq. 18
        row[i] = variance if variance > 0.0 else ROUNDING * factor * g[i]  # negative by rounding
