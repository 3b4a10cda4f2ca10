"""Ranks, Friedman's test and the least significant difference."""

import numpy as np
import pytest
import scipy.signal
import scipy.stats

import braided as bd
from braided.statistics import compare, compare_ranks, paired_over_blocks

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


def errors_over_time(rng, rounds, spells, shared=1.0):
    """Errors of two equal methods, and how wild each round is; both in calm and wild spells of this persistence."""
    steps = np.sqrt(1.0 - spells**2) * rng.normal(size=rounds)
    log_size = scipy.signal.lfilter([1.0], [1.0, -spells], steps)
    common = shared * rng.normal(size=rounds)
    return np.exp(0.7 * log_size) * (common + 0.5 * rng.normal(size=(2, rounds)))


def verdict_on(errors):
    first, second = errors**2
    return paired_over_blocks(first, second, np.ones(len(first)))


@pytest.mark.parametrize("spells", [0.0, 0.9, 0.99])
@pytest.mark.parametrize("rounds", [8, 20, 32, 200, 2000])
def test_two_equal_methods_are_seldom_told_apart(rounds, spells):
    rng = np.random.default_rng([rounds, int(100 * spells)])
    alarms = sum(verdict_on(errors_over_time(rng, rounds, spells)).is_sure for _ in range(800))
    assert alarms <= 0.07 * 800


@pytest.mark.parametrize("spells", [0.0, 0.99])
def test_a_better_method_is_found_and_its_gain_lies_in_the_interval(spells):
    rng = np.random.default_rng(1)
    verdicts = [verdict_on(errors_over_time(rng, 4000, spells) * [[0.9], [1.0]]) for _ in range(200)]
    assert sum(one.is_sure and one.gain > 0.0 for one in verdicts) > 0.8 * 200
    assert sum(one.low <= 0.1 <= one.high for one in verdicts) > 0.9 * 200


def test_the_two_methods_may_change_places():
    errors = errors_over_time(np.random.default_rng(2), 3000, 0.9) * [[0.9], [1.0]]
    there, back = verdict_on(errors), verdict_on(errors[::-1])
    assert there.is_sure
    assert back.is_sure
    assert (1.0 - there.gain) * (1.0 - back.gain) == pytest.approx(1.0)
    assert 0.0 < there.low < there.gain < there.high
    assert back.low < back.gain < back.high < 0.0


def test_the_gain_is_that_of_all_errors_and_does_not_depend_on_their_unit():
    rng = np.random.default_rng(3)
    first, second, counts = rng.chisquare(3, 512), rng.chisquare(4, 512), rng.integers(0, 9, 512).astype(float)
    first[counts == 0.0] = second[counts == 0.0] = 0.0
    verdict = paired_over_blocks(first, second, counts)
    assert verdict.gain == pytest.approx(1.0 - np.sqrt(first.sum() / second.sum()))
    for unit in (1e-100, 1e199):
        np.testing.assert_allclose(paired_over_blocks(unit * first, unit * second, counts), verdict)


def test_blocks_that_resemble_the_one_before_count_for_less():
    differences = np.repeat([3.0, -1.0, 2.0, 1.0], 8)  # the same numbers, in spells or mixed
    spells, mixed = (
        paired_over_blocks(50.0 - one, np.full(32, 50.0), np.ones(32))
        for one in (differences, differences.reshape(4, 8).T.ravel())
    )
    assert mixed.is_sure
    assert not spells.is_sure
    assert spells.gain == mixed.gain


@pytest.mark.parametrize("scale", [np.geomspace(1.0, 50.0, 64), 1.1 + np.sin(np.arange(64) / 5.0)])
def test_a_gain_in_every_block_is_found_though_errors_grow_or_have_a_season(scale):
    rng = np.random.default_rng(4)
    second = scale * rng.uniform(0.8, 1.2, 64)
    verdict = paired_over_blocks(second * rng.uniform(0.6, 0.8, 64), second, np.ones(64))
    assert verdict.is_sure


def test_with_fewer_than_eight_blocks_nothing_is_sure():
    for bins in (7, 8):
        first, second, counts = np.zeros(512), np.zeros(512), np.zeros(512)  # the others are empty
        first[:bins], second[:bins], counts[:bins] = 1.0, 100.0, 5.0
        assert paired_over_blocks(first, second, counts).is_sure == (bins == 8)
    one_large = paired_over_blocks([1.0] * 40, [2.0] * 40, [1e9] + [1.0] * 39)
    assert not one_large.is_sure  # nearly all is in one block


def test_equal_errors_and_none_at_all_are_no_difference():
    ones = np.ones(32)
    assert paired_over_blocks(ones, ones, ones) == (0.0, 0.0, 0.0, False)
    assert not paired_over_blocks(ones, 0.0 * ones, ones).is_sure
    assert np.isnan(paired_over_blocks(ones, 0.0 * ones, ones).gain)
    assert not paired_over_blocks([], [], []).is_sure
    with pytest.raises(bd.InputError, match="second has 31 values for 32 samples"):
        paired_over_blocks(ones, ones[1:], ones)
