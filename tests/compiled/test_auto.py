"""Auto's features, rules and mixture, against their obvious twins."""

import numpy as np
import pytest
import scipy.sparse as sparse

from braided._compiled.mixture import fresh_mixture
from braided._compiled.mixture import progressive_inplace as mix_inplace
from braided._compiled.panel import RULES, Calendar, Described, Ties, feature_groups, fresh_panel, progressive_inplace
from tests.reference.auto import obvious_features, obvious_mixture, obvious_rules, obvious_scales

N, T = 60, 4


def described(levels, S, alike, calendar, waves, known_from, remembered, cuts=()):
    """What is known before each round, in one call or in pieces."""
    n_seasons = len(waves)
    similarity = sparse.csr_array(S)
    bins = np.cumsum([0, *(calendar.phase.max(axis=0) + 1)])
    ties = Ties(
        similarity.indptr.astype(np.int64),
        similarity.indices.astype(np.int64),
        similarity.data,
        alike,
        waves,
        bins,
        known_from,
    )
    n_features = feature_groups(int(waves.sum()), n_seasons, alike.shape[1])["others"]
    made = Described(np.empty((N, T, n_features)), np.empty((N, T, RULES + 2 * n_seasons)), *np.empty((3, N, T)))
    panel = fresh_panel(T, remembered, int(bins[-1]))
    edges = [0, *cuts, N]
    for first, end in zip(edges, edges[1:], strict=False):
        part = slice(first, end)
        days = Calendar(*(array[part] for array in calendar))
        progressive_inplace(panel, ties, days, levels[part], Described(*(array[part] for array in made)))
    return made


def example(seed, missing, n_seasons):
    rng = np.random.default_rng(seed)
    levels = rng.normal(scale=4.0, size=(N, T)).cumsum(axis=0)
    levels[rng.random(levels.shape) < missing] = np.nan
    S = np.triu(rng.uniform(size=(T, T)) * (rng.uniform(size=(T, T)) < 0.7), 1)
    S += S.T
    S[3] = S[:, 3] = 0.0  # alone
    alike = np.array([[1, 2], [0, -1], [0, 1], [-1, -1]])
    rounds = np.arange(N)
    lengths = np.array([4, 7])[:n_seasons]
    back = np.where(rounds[:, None] >= lengths, lengths, 0)
    back[20:24] = 0  # no such round
    angle = rounds[:, None] % lengths / lengths
    calendar = Calendar(back, rounds[:, None] % lengths, angle)
    return levels, S, alike, calendar, np.array([1, 3])[:n_seasons], np.array([5, 9])[:n_seasons]


@pytest.mark.parametrize("missing", [0.0, 0.3, 0.8])
@pytest.mark.parametrize("n_seasons", [0, 2])
def test_features_and_rules_are_those_of_the_loop(missing, n_seasons):
    levels, S, alike, calendar, waves, known_from = example(1, missing, n_seasons)
    made = described(levels, S, alike, calendar, waves, known_from, remembered=12)
    for r in range(N):
        for t in range(T):
            x = obvious_features(levels, S, alike, *calendar, waves, known_from, r, t)
            np.testing.assert_allclose(made.X[r, t], x, rtol=1e-10, atol=1e-10)
            np.testing.assert_allclose(made.rules[r, t], obvious_rules(levels, calendar.back, r, t), atol=1e-10)
            assert made.scale[r, t] == pytest.approx(obvious_scales(levels, r, t), rel=1e-12)
            known = levels[:r, t][~np.isnan(levels[:r, t])]
            np.testing.assert_array_equal(made.last[r, t], known[-1] if len(known) else np.nan)
    np.testing.assert_array_equal(made.y[1:], np.diff(levels, axis=0))
    pieces = described(levels, S, alike, calendar, waves, known_from, 12, cuts=(1, 2, 17, 40))
    for whole, cut in zip(made, pieces, strict=True):
        np.testing.assert_array_equal(whole, cut)


def test_features_do_not_look_ahead():
    levels, *rest = example(2, 0.2, 2)
    other = levels.copy()
    other[30:] = np.random.default_rng(3).normal(size=other[30:].shape)
    before, after = (described(values, *rest, remembered=12) for values in (levels, other))
    for name in ("X", "rules", "last", "scale"):
        np.testing.assert_array_equal(getattr(before, name)[:31], getattr(after, name)[:31])
    assert not np.array_equal(before.X[31], after.X[31])


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_the_mixture_is_that_of_the_loop(missing):
    rng = np.random.default_rng(4)
    n, K = 300, 5
    y = rng.normal(size=(n, T))
    forecasts = y[:, :, None] * rng.uniform(size=K) + rng.normal(size=(n, T, K))
    forecasts[rng.random(forecasts.shape) < missing] = np.nan
    y[rng.random(y.shape) < missing] = np.nan
    y[100] *= 1e3  # wild
    y[:, 3] = forecasts[:, 3] = 0.0  # constant, and forecast without an error
    prior = np.array([0.1, 0.2, 0.3, 0.3, 0.1])
    made, weights = np.empty((n, T)), np.empty((T + 1, K))
    mix_inplace(fresh_mixture(prior, T), forecasts, y, made, weights)
    np.testing.assert_allclose(made, obvious_mixture(forecasts, y, prior), rtol=1e-12, atol=1e-12)
    mixture, pieces = fresh_mixture(prior, T), np.empty((n, T))
    for i in range(n):
        mix_inplace(mixture, forecasts[i : i + 1], y[i : i + 1], pieces[i : i + 1], weights)
    np.testing.assert_array_equal(made, pieces)


def test_the_best_member_carries_the_mixture():
    rng = np.random.default_rng(5)
    y = rng.normal(size=(1000, T))
    forecasts = np.stack([0.9 * y, 0.0 * y, -y, rng.normal(size=y.shape)], axis=2)
    made, weights = np.empty_like(y), np.empty((T + 1, 4))
    mix_inplace(fresh_mixture(np.full(4, 0.25), T), forecasts, y, made, weights)
    assert np.abs(made - y)[500:].mean() < 0.15 * np.abs(y)[500:].mean()
    assert (weights.argmax(axis=1) == 0).all()
