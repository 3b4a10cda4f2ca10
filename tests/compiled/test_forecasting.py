"""Neighbours' means, intervals and limits of features, against their obvious twins."""

import numpy as np
import pytest
from scipy.special import ndtri

from braided._compiled.clip import clip_features_inplace
from braided._compiled.intervals import half_widths_inplace
from braided._compiled.neighbours import mean_of_others
from braided._compiled.scores import Errors, Losses, add_errors_inplace, add_losses_inplace
from tests.reference.forecasting import obvious_intervals, obvious_losses, obvious_mean_of_others


@pytest.mark.parametrize("missing", [0.0, 0.3, 1.0])
def test_losses_are_those_of_the_definition(missing):
    rng, levels, scale = np.random.default_rng(0), np.array([0.1, 0.5, 0.8]), np.array([1.0, 1e-3, 1e200, 1e-300])
    ends, actual, places = rng.normal(size=(200, 3)), rng.normal(size=200), rng.integers(0, 4, 200)
    ends[rng.random(ends.shape) < missing] = np.nan
    ends[:20] = actual[:20, None]  # a value on the quantile is not below it
    found = Losses(np.ones(4), np.ones((4, 3)), np.ones((4, 3)))
    for part in np.split(np.arange(200), [50, 51]):
        add_losses_inplace(found, levels, scale, ends[part], actual[part], places[part])
    for sums, expected in zip(found, obvious_losses(levels, scale, ends, actual, places), strict=True):
        np.testing.assert_allclose(sums, 1.0 + expected, rtol=1e-12)


def test_errors_are_those_of_the_definition():
    rng = np.random.default_rng(0)
    errors, inside, places = rng.normal(size=(200, 3)), rng.choice([0.0, 1.0, np.nan], 200), rng.integers(0, 4, 200)
    found = Errors(np.ones(4), np.ones((4, 3)), np.ones(4), np.ones(4))
    for part in np.split(np.arange(200), [50, 51]):
        add_errors_inplace(found, errors[part], inside[part], places[part])
    for sums, array in zip(found, (np.ones(200), errors**2, ~np.isnan(inside), np.nan_to_num(inside)), strict=True):
        expected = [1.0 + array[places == t].sum(axis=0) for t in range(4)]
        np.testing.assert_allclose(sums, expected, rtol=1e-12)


@pytest.mark.parametrize("missing", [0.0, 0.3, 0.9])
def test_means_of_others_are_those_of_the_loop(missing):
    rng = np.random.default_rng(0)
    S = np.triu(rng.uniform(size=(6, 6)) * (rng.uniform(size=(6, 6)) < 0.5), 1)
    S += S.T
    S[2] = S[:, 2] = 0.0  # alone
    values = rng.normal(size=(40, 6))
    values[rng.uniform(size=values.shape) < missing] = np.nan
    rows, others = np.nonzero(S)
    ends = np.searchsorted(rows, np.arange(6), side="right")
    found = mean_of_others(values, ends, others, S[rows, others])
    np.testing.assert_allclose(found, obvious_mean_of_others(values, S), rtol=1e-12)
    pieces = [mean_of_others(row[None], ends, others, S[rows, others]) for row in values]
    np.testing.assert_array_equal(found, np.concatenate(pieces))


def test_steps_of_the_calibration_do_not_vanish():
    calibration, widths = np.array([[0.0, 1e6, 1e6]]), np.empty(1)
    half_widths_inplace(calibration, widths, np.array([5.0]), np.empty(0), np.array([0]), np.array([1]), 0.1)
    assert calibration[0, 0] == pytest.approx(0.02 * 0.9)


@pytest.mark.parametrize("has_deviations", [True, False])
def test_widths_are_those_of_the_loop(has_deviations):
    rng = np.random.default_rng(1)
    n, n_tasks, misses = 400, 3, 0.1
    tasks, errors = rng.integers(n_tasks, size=n), rng.standard_t(2, size=n)
    deviations = rng.uniform(0.5, 2.0, n) if has_deviations else np.empty(0)
    deviations[:2] = [np.inf, np.nan][: len(deviations)]
    ends = np.unique(np.append(rng.integers(1, n, 150), n))
    widths, calibration = np.empty(n), np.tile([np.log(ndtri(1.0 - misses / 2.0)), 0.0, 0.0], (n_tasks, 1))
    half_widths_inplace(calibration, widths, errors, deviations, tasks, ends, misses)
    groups = [range(first, end) for first, end in zip([0, *ends[:-1]], ends, strict=True)]
    expected = obvious_intervals(errors, deviations, tasks, groups, misses, n_tasks)
    np.testing.assert_allclose(widths, expected, rtol=1e-12)
    assert np.isnan(widths[0])


@pytest.mark.parametrize("learn", [True, False])
def test_features_are_limited_to_ten_times_what_is_usual(learn):
    rng = np.random.default_rng(30)
    n, T, d = 1400, 2, 3
    X, tasks = rng.normal(size=(n, d)), rng.integers(0, T, n)
    X[:, 2] = 0.0
    X[100], X[200, 0], X[300, 2] = 1e6, -1e50, 5.0
    usual, seen = np.zeros((T, d)), np.zeros(T)
    if not learn:
        usual, seen = rng.uniform(0.5, 2.0, (T, d)), np.array([31.0, 30.0])
    expected, squares, counts = X.copy(), usual.copy(), seen.copy()
    for i, t in enumerate(tasks):
        counts[t] = min(counts[t] + learn, 500)
        for j in range(d):
            size, most = abs(X[i, j]), 10 * np.sqrt(squares[t, j])
            if counts[t] > 30 and size > most > 0:
                size, expected[i, j] = most, np.sign(X[i, j]) * most
            if learn:
                squares[t, j] = squares[t, j] * (1 - 1 / counts[t]) + size**2 / counts[t]
    tamed = X.copy()
    clip_features_inplace(tamed, usual, seen, tasks, learn)
    np.testing.assert_allclose(tamed, expected, rtol=1e-12)
    np.testing.assert_allclose(usual, squares, rtol=1e-12)
    np.testing.assert_array_equal(seen, counts)
    assert not learn or np.abs(tamed[100, :2]).max() < 20.0
    assert tamed[300, 2] == 5.0  # after a wild one among nothing but zeros, this is not even large
