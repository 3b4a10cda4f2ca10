"""Ranks, Friedman's test and the least significant difference."""

import numpy as np
import pytest
import scipy.stats

import braided as bd
from braided.statistics import compare, compare_ranks

METHODS = ["MT-WRLS", "MT-OSLSSVR", "MT-WRLS + ELM", "WRLS", "WRLS + ELM", "OSLSSVR", "MOGD + ELM", "MOGD", "MADMM"]
PAPER = {  # mean ranks, chi squared, victories, defeats: Tables 2 and 4
    "I": ([1.77, 2.00, 2.70, 5.13, 5.40, 6.10, 6.37, 7.37, 8.17], 175.0),
    "II": ([1.87, 2.23, 2.50, 5.33, 5.10, 5.93, 6.27, 7.27, 8.50], 174.9),
}
VICTORIES, DEFEATS = [6, 6, 6, 2, 2, 1, 1, 0, 0], [0, 0, 0, 3, 3, 3, 3, 5, 7]


@pytest.mark.parametrize("experiment", PAPER)
def test_the_papers_tables_come_out(experiment):
    ranks, chi_squared = PAPER[experiment]
    comparison = compare_ranks(ranks, n_problems=30)
    assert round(comparison.chi_squared, 1) == chi_squared
    assert round(comparison.difference, 3) == 1.386
    assert dict(zip(METHODS, comparison.victories.tolist(), strict=True)) == dict(zip(METHODS, VICTORIES, strict=True))
    assert dict(zip(METHODS, comparison.defeats.tolist(), strict=True)) == dict(zip(METHODS, DEFEATS, strict=True))
    assert comparison.p_value < 1e-30


def test_friedman_is_scipys_where_there_are_no_ties():
    scores = np.random.default_rng(0).normal(size=(12, 5)) + np.arange(5) / 2
    expected = scipy.stats.friedmanchisquare(*scores.T)
    comparison = compare(scores)
    assert comparison.chi_squared == pytest.approx(expected.statistic)
    assert comparison.p_value == pytest.approx(expected.pvalue)


def test_ties_share_their_ranks_and_equal_methods_do_not_differ():
    comparison = compare([[1.0, 1.0, 3.0]] * 4)
    assert comparison.mean_ranks.tolist() == [1.5, 1.5, 3.0]
    alike = compare(np.ones((6, 4)))
    assert alike.chi_squared == pytest.approx(0.0)
    assert alike.p_value == pytest.approx(1.0)
    assert alike.victories.tolist() == alike.defeats.tolist() == [0] * 4


def test_victories_are_defeats_of_others():
    comparison = compare(np.random.default_rng(1).normal(size=(40, 6)) + np.arange(6))
    assert comparison.victories.sum() == comparison.defeats.sum() > 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: compare([[1.0], [2.0]]), "two methods or more"),
        (lambda: compare(np.empty((0, 3))), "one row per problem"),
        (lambda: compare([[1.0, np.nan]]), r"scores\[0, 1\] is nan"),
        (lambda: compare_ranks([1.0, 2.0], 0), "n_problems is 0"),
        (lambda: compare_ranks([1.0, 2.0], 3, alpha=1.0), "alpha is 1.0"),
    ],
)
def test_what_cannot_be_compared_is_refused(call, message):
    with pytest.raises(bd.InputError, match=message):
        call()
