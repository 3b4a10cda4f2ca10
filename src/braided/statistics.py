"""Compare methods: two over time, by a paired test; many over many problems, by their ranks.

Over many problems: mean ranks, Friedman's test, and the least significant difference of ranks.

| symbol | meaning                                                                     |
|--------|-----------------------------------------------------------------------------|
| n, k   | problems, methods                                                           |
| R̄_i    | mean rank of method i, 1 is best                                            |
| χ²     | 12n / (k(k+1)) · [Σ R̄² − k(k+1)²/4], with k − 1 degrees of freedom           |
| LSD    | z · √(k(k+1) / (6n)), z the two-sided quantile of the normal distribution   |

The ranks that the paper prints in its Table 2, of nine methods on thirty problems:

>>> comparison = compare_ranks([1.77, 2.00, 2.70, 5.13, 5.40, 6.10, 6.37, 7.37, 8.17], n_problems=30)
>>> round(comparison.chi_squared, 1), round(comparison.difference, 3)
(175.0, 1.386)
>>> comparison.victories.tolist()
[6, 6, 6, 2, 2, 1, 1, 0, 0]
>>> comparison.defeats.tolist()
[0, 0, 0, 3, 3, 3, 3, 5, 7]

Over time, the squared errors of two methods are summed over blocks of rounds, and the differences of the blocks are
tested with Student's t. Errors come in calm and wild spells, so what is tested are blocks and not rounds, and blocks
that resemble the one before count for less.

| symbol | meaning                                                                         |
|--------|---------------------------------------------------------------------------------|
| n, d   | blocks, and the difference of the methods' squared errors in each               |
| ρ      | correlation of d with d one block before, plus 1/n: estimates of it are too low |
| n′     | n (1 − ρ) / (1 + ρ), at most n: independent blocks that say as much             |

>>> wins = paired_over_blocks(first=[8.0, 9, 7, 8, 9, 8, 7, 9], second=[10.0] * 8, counts=[100] * 8)
>>> wins.is_sure, round(wins.gain, 3), round(wins.low, 3), round(wins.high, 3)
(True, 0.099, 0.061, 0.138)

References: Lencione & Von Zuben, arXiv 2308.01938, Tables 2 and 4; Friedman, The use of ranks to avoid the assumption
of normality implicit in the analysis of variance, JASA 32 (1937); Diebold & Mariano, Comparing predictive accuracy,
JBES 13 (1995); Marriott & Pope, Bias in the estimation of autocorrelations, Biometrika 41 (1954).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike

from braided.errors import InputError
from braided.types import Floats, Ints
from braided.validate import count, floats, same_length

MOST_BLOCKS = 32
FEWEST_BLOCKS = 8  # from which a difference can be told from chance
SURE = 0.95  # confidence, of both sides


@final
@dataclass(frozen=True, eq=False)
class Comparison:
    """The result of comparing the ranks of k methods on n problems."""

    mean_ranks: Floats  # (k,)
    chi_squared: float  # Friedman's statistic
    p_value: float  # of the hypothesis that all methods rank alike
    difference: float  # the least significant difference of two mean ranks
    victories: Ints  # (k,) methods that rank significantly worse
    defeats: Ints  # (k,) methods that rank significantly better


def compare(scores: ArrayLike, alpha: float = 0.05) -> Comparison:
    """Compare methods by their scores (problems, methods), where less is better; ties share their ranks.

    >>> compare([[0.1, 0.3, 0.2], [0.2, 0.5, 0.4]]).mean_ranks
    array([1., 3., 2.])
    """
    from scipy.stats import rankdata  # slow to import, and only needed here

    table = floats(scores, "scores", ndim=2)
    if not table.size:
        raise InputError(f"scores has shape {table.shape}: give one row per problem and one column per method")
    return compare_ranks(rankdata(table, axis=1).mean(axis=0), len(table), alpha)


def compare_ranks(mean_ranks: ArrayLike, n_problems: int, alpha: float = 0.05) -> Comparison:
    """Compare methods by their mean ranks over a number of problems."""
    from scipy.special import chdtrc, ndtri  # slow to import, and only needed here

    R, n = floats(mean_ranks, "mean_ranks", ndim=1), count(n_problems, "n_problems")
    k = R.size
    if k < 2:
        raise InputError(f"mean_ranks has {k} values: give those of two methods or more")
    if not 0.0 < alpha < 1.0:
        raise InputError(f"alpha is {alpha}: it must lie between 0 and 1")
    chi_squared = 12 * n / (k * (k + 1)) * float((R**2).sum() - k * (k + 1) ** 2 / 4)
    difference = float(ndtri(1 - alpha / 2) * np.sqrt(k * (k + 1) / (6 * n)))
    better = R[:, None] - R < -difference  # row ranks significantly before column
    p_value = float(chdtrc(k - 1, max(chi_squared, 0.0)))
    return Comparison(R.copy(), chi_squared, p_value, difference, better.sum(axis=1), better.sum(axis=0))


class Verdict(NamedTuple):
    """By which share the root mean square error of a first method is below that of a second."""

    gain: float  # NaN where there is nothing to compare, as the second made no error
    low: float  # ends of its confidence interval
    high: float
    is_sure: bool  # whether the interval leaves out 0


def paired_over_blocks(first: ArrayLike, second: ArrayLike, counts: ArrayLike) -> Verdict:
    """Compare sums of squared errors of two methods over time, bin by bin, with the number of errors in each bin.

    Bins, in order of time, are merged into at most 32 blocks of nearly equal counts; with fewer than eight blocks, no
    difference is sure. Where the difference of a block resembles that of the block before, there are fewer independent
    ones; as errors of any size may grow or have a season, differences are compared relative to the block's errors.
    """
    from scipy.special import stdtrit  # slow to import, and only needed here

    ours, theirs, sizes = floats(first, "first", 1), floats(second, "second", 1), floats(counts, "counts", 1)
    for name, column in (("second", theirs), ("counts", sizes)):
        same_length(column, name, len(ours))
    with np.errstate(over="ignore"):
        total, other = float(theirs.sum()), float(ours.sum())
    if not 0.0 < total < np.inf or not other < np.inf:
        return Verdict(np.nan, np.nan, np.nan, False)
    block = _blocks(sizes)
    others, own = np.bincount(block, theirs[sizes > 0.0]), np.bincount(block, ours[sizes > 0.0])
    differences = others - own
    n, room = len(differences), np.inf
    if n >= FEWEST_BLOCKS:
        largest = float(np.abs(differences).max()) or 1.0  # no square overflows below
        square = float((((differences - differences.mean()) / largest) ** 2).sum())
        rho = _autocorrelation(differences / np.maximum(others, own).clip(np.finfo(float).tiny)) + 1.0 / n
        effective = min(max(n * (1.0 - rho) / (1.0 + rho), 2.0), n) if rho > 0.0 else n
        error = largest * np.sqrt(square / (n - 1) / effective)
        room = n * float(stdtrit(effective - 1.0, 0.5 + SURE / 2.0)) * error
    middle = float(differences.sum())
    gain, low, high = (1.0 - np.sqrt(max(1.0 - one / total, 0.0)) for one in (middle, middle - room, middle + room))
    return Verdict(float(gain), float(low), float(high), bool(abs(middle) > room))


def _autocorrelation(values: Floats) -> float:
    deviations = values - values.mean()
    square = float(deviations @ deviations)
    return float(deviations[1:] @ deviations[:-1]) / square if square else 0.0


def _blocks(counts: Floats) -> Ints:
    """Return the block of each bin that is not empty, numbered from 0 without gaps."""
    counts = counts[counts > 0.0]
    most = min(len(counts), MOST_BLOCKS)
    shares = counts / counts.max(initial=1.0)  # no sum overflows
    middles = (shares.cumsum() - shares / 2.0) / shares.sum()
    block = np.minimum((middles * most).astype(np.int64), most - 1)
    return np.unique(block, return_inverse=True)[1]
