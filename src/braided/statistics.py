"""Compare methods over many problems: mean ranks, Friedman's test, and the least significant difference of ranks.

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

References: Lencione & Von Zuben, arXiv 2308.01938, Tables 2 and 4; Friedman, The use of ranks to avoid the assumption
of normality implicit in the analysis of variance, JASA 32 (1937).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from braided.errors import InputError
from braided.types import Floats, Ints
from braided.validate import count, floats


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
