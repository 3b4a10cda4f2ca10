"""Copies: streams that are another one in another unit are found, and no others."""

import numpy as np
import pytest

from braided.forecasting.auto.copies import find_copies
from braided.graph import TaskGraph


def walks(n_streams=3, rounds=100, seed=0):
    return np.random.default_rng(seed).normal(size=(rounds, n_streams)).cumsum(axis=0)


def found(values, graph=None):
    return find_copies(values, graph or TaskGraph.pooled(range(values.shape[1])))


def with_last(values, column):
    return np.column_stack([values, column])


@pytest.mark.parametrize("factor", [1.0, 1.8, 1e-6, 1e120])
@pytest.mark.parametrize("shift", [0.0, 32.0, -1e3])
def test_the_same_in_another_unit_is_a_copy(factor, shift):
    values = walks()
    assert found(with_last(values, factor * values[:, 1] + shift)) == ((1, 3),)


def test_a_mirror_image_is_none():
    values = walks()
    assert found(with_last(values, -values[:, 1])) == ()


def test_unrelated_streams_are_none():
    assert found(walks(8)) == ()


def test_copies_of_copies_are_one_group():
    values = walks(2)
    assert found(np.column_stack([values, values + 1.0, 3.0 * values])) == ((0, 2, 4), (1, 3, 5))


def test_copies_may_lack_other_values():
    rng, values = np.random.default_rng(1), walks(2, rounds=200)
    values = with_last(values, 2.0 * values[:, 0])
    values[rng.random(values.shape) < 0.3] = np.nan
    assert found(values) == ((0, 2),)


@pytest.mark.parametrize(("noise", "groups"), [(1e-6, ((0, 3),)), (0.1, ())])
def test_noise_makes_a_copy_another_stream(noise, groups):
    values = walks()
    assert found(with_last(values, values[:, 0] + noise * np.random.default_rng(2).normal(size=len(values)))) == groups


def test_streams_that_never_change_or_change_evenly_are_none():
    ramp = np.arange(100.0)
    assert found(np.column_stack([np.zeros((100, 2)), np.full(100, np.nan), ramp, 2.0 * ramp])) == ()


def test_too_few_changes_say_nothing():
    values = walks(1, rounds=15)
    assert found(with_last(values, values[:, 0])) == ()  # 14 changes
    values = np.repeat(walks(1, rounds=15), 9, axis=0)  # it stands still between
    assert found(with_last(values, values[:, 0])) == ()
    assert found(np.empty((0, 2))) == found(np.empty((1, 2))) == ()


def test_one_wild_value_that_two_streams_share_makes_them_no_copies():
    values = walks(2)
    values[50] += 1e6
    assert found(values) == ()
    assert found(with_last(values, 2.0 * values[:, 0])) == ((0, 2),)


def test_amounts_in_another_unit_are_copies_though_rounding_differs():
    counts = np.random.default_rng(3).poisson(4.0, size=(100, 2)).astype(float)
    assert found(with_last(counts, 0.1 * counts[:, 0])) == ((0, 2),)


def test_of_many_streams_only_the_tied_are_compared():
    values = walks(400, rounds=60)
    values = np.column_stack([values, 5.0 * values[:, :30] - 3.0])
    graph = TaskGraph.from_history(values, k=20)
    assert found(values, graph) == tuple((place, 400 + place) for place in range(30))
    assert found(values, TaskGraph.independent(range(430))) == ()
