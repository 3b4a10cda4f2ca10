"""Auto's features, rules and mixture, against their obvious twins."""

import numpy as np
import pytest
import scipy.sparse as sparse

from braided._compiled.mixture import SEEN, Mixed, Mixture, fresh_mixture
from braided._compiled.mixture import progressive_inplace as mix_inplace
from braided._compiled.panel import (
    RULES,
    Calendar,
    Described,
    Ties,
    describe_inplace,
    feature_groups,
    fresh_panel,
    progressive_inplace,
)
from tests.reference.auto import obvious_features, obvious_mixture, obvious_rules, obvious_scales

N, T, EXTRAS = 60, 4, 2


def rows_of(calendar, part):
    """Some rounds of a calendar."""
    return Calendar(*(array[part] for array in calendar))


class Case:
    """Streams with neighbours, seasons, gaps in time and further columns."""

    def __init__(self, seed, missing=0.2, n_seasons=2):
        rng = np.random.default_rng(seed)
        self.levels = rng.normal(scale=4.0, size=(N, T)).cumsum(axis=0)
        self.levels[rng.random(self.levels.shape) < missing] = np.nan
        self.given = rng.normal(size=(N, T, EXTRAS))
        self.given[rng.random(self.given.shape) < missing] = np.nan
        S = np.triu(rng.uniform(size=(T, T)) * (rng.uniform(size=(T, T)) < 0.7), 1)
        self.S = S + S.T
        self.S[3] = self.S[:, 3] = 0.0  # alone
        self.alike = np.array([[1, 2], [0, -1], [0, 1], [-1, -1]])
        rounds = np.arange(N)
        lengths = np.array([4, 7])[:n_seasons]
        back = np.where(rounds[:, None] >= lengths, lengths, 0)
        back[20:24] = 0  # no such round
        phase = rounds[:, None] % lengths
        self.calendar = Calendar(back, phase, phase / lengths, np.isin(rounds, [9, 30, 31]))
        self.waves, self.known_from = np.array([1, 3])[:n_seasons], np.array([5, 9])[:n_seasons]

    @property
    def ties(self):
        similarity = sparse.csr_array(self.S)
        places = similarity.indptr.astype(np.int64), similarity.indices.astype(np.int64)
        bins = np.cumsum([0, *(self.calendar.phase.max(axis=0) + 1)])
        return Ties(*places, similarity.data, self.alike, self.waves, bins, self.known_from)

    @property
    def n_features(self):
        n_waves, n_seasons = int(self.waves.sum()), len(self.waves)
        return feature_groups(n_waves, n_seasons, self.alike.shape[1], EXTRAS)["others"]

    def described(self, remembered=12, cuts=(), levels=None):
        """What is known before each round, in one call or in pieces; and what is remembered after all."""
        levels, n_rules = self.levels if levels is None else levels, RULES + 2 * len(self.waves)
        made = Described(np.empty((N, T, self.n_features)), np.empty((N, T, n_rules)), *np.empty((3, N, T)))
        panel = fresh_panel(T, remembered, int(self.ties.bins[-1]))
        for first, end in zip([0, *cuts], [*cuts, N], strict=True):
            part = slice(first, end)
            piece = Described(*(array[part] for array in made))
            progressive_inplace(panel, self.ties, rows_of(self.calendar, part), levels[part], self.given[part], piece)
        return made, panel

    def obvious(self, r, t):
        return obvious_features(
            self.levels, self.S, self.alike, self.calendar, self.given, self.waves, self.known_from, r, t
        )


@pytest.mark.parametrize("missing", [0.0, 0.3, 0.8])
@pytest.mark.parametrize("n_seasons", [0, 2])
def test_features_and_rules_are_those_of_the_loop(missing, n_seasons):
    case = Case(1, missing, n_seasons)
    made, _ = case.described()
    for r in range(N):
        for t in range(T):
            np.testing.assert_allclose(made.X[r, t], case.obvious(r, t), rtol=1e-10, atol=1e-10)
            np.testing.assert_allclose(made.rules[r, t], obvious_rules(case.levels, case.calendar, r, t), atol=1e-10)
            assert made.scale[r, t] == pytest.approx(obvious_scales(case.levels, case.calendar, r, t), rel=1e-12)
            known = case.levels[:r, t][~np.isnan(case.levels[:r, t])]
            np.testing.assert_array_equal(made.last[r, t], known[-1] if len(known) else np.nan)
    changes = np.diff(case.levels, axis=0)
    changes[case.calendar.is_after_gap[1:]] = np.nan
    np.testing.assert_array_equal(made.y[1:], changes)
    assert np.isnan(made.y[0]).all()


@pytest.mark.parametrize("cuts", [(1, 2, 17, 40), tuple(range(1, N))], ids=["some", "one by one"])
def test_pieces_give_the_same_bits(cuts):
    case = Case(1, 0.3)
    (whole, panel), (cut, other) = case.described(), case.described(cuts=cuts)
    for one, two in (*zip(whole, cut, strict=True), *zip(panel, other, strict=True)):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("remembered", [12, 20, 70])
def test_how_many_rounds_are_remembered_makes_no_difference_if_they_are_enough(remembered):
    case = Case(1, 0.3)
    for one, two in zip(case.described(12)[0], case.described(remembered)[0], strict=True):
        np.testing.assert_array_equal(one, two)


def test_a_season_of_which_too_little_is_remembered_is_not_known():
    case = Case(1, 0.0)
    short, long = case.described(7)[0], case.described(12)[0]  # the second season is seven rounds ago
    groups = feature_groups(int(case.waves.sum()), 2, 2, EXTRAS)
    second = slice(groups["mean, gap"] + 4, groups["seasons"])
    assert not short.X[:, :, second].any()
    assert long.X[:, :, second].any()
    assert np.isnan(short.rules[:, :, RULES + 2 :]).all()


def test_features_do_not_look_ahead():
    case = Case(2)
    other = case.levels.copy()
    other[30:] = np.random.default_rng(3).normal(size=other[30:].shape)
    before, after = (case.described(levels=values)[0] for values in (case.levels, other))
    for name in ("X", "rules", "last", "scale"):
        np.testing.assert_array_equal(getattr(before, name)[:31], getattr(after, name)[:31])
    assert not np.array_equal(before.X[31], after.X[31])


def test_the_next_round_is_described_as_it_will_be():
    case = Case(3)
    made, _ = case.described()
    for r in (0, 1, 12, 40):
        panel = fresh_panel(T, 12, int(case.ties.bins[-1]))
        part = slice(0, r)
        progressive_inplace(
            panel,
            case.ties,
            rows_of(case.calendar, part),
            case.levels[part],
            case.given[part],
            Described(*(np.empty_like(array[part]) for array in made)),
        )
        X, rules = np.empty_like(made.X[r]), np.empty_like(made.rules[r])
        back, phase, angle, _ = (array[r] for array in case.calendar)
        describe_inplace(panel, case.ties, back, phase, angle, case.given[r], X, rules)
        for one, two in ((X, made.X[r]), (rules, made.rules[r]), (panel.last, made.last[r])):
            np.testing.assert_array_equal(one, two)
        np.testing.assert_array_equal(panel.scale, made.scale[r])


def test_a_stream_that_joins_knows_its_own_past():
    """As if it had been there all along, but for its phases, and for what others did with it."""
    case = Case(4, missing=0.1)
    case.S[3, 0] = case.S[0, 3] = 0.5
    _, panel = case.described(20)
    without = Case(4, missing=0.1)
    without.levels[:, 3] = np.nan
    _, blank = without.described(20)
    three = blank._replace(**{name: getattr(blank, name)[..., :3] for name in PER_STREAM})
    for m in (N, 15):  # values that are known
        joined = three.with_stream(case.levels[N - m :, 3:])
        assert joined.levels.shape == panel.levels.shape
        np.testing.assert_array_equal(joined.tallies[:, :3], blank.tallies[:, :3])
        np.testing.assert_array_equal(joined.last, np.append(blank.last[:3], panel.last[3]))
        last = [(N - k) % 20 for k in range(1, min(m, 20))]
        np.testing.assert_array_equal(joined.levels[last, 3], panel.levels[last, 3])
        expected = np.where(np.isnan(panel.changes[last, 3]), joined.changes[last, 3], panel.changes[last, 3])
        np.testing.assert_array_equal(joined.changes[last, 3], expected)
        assert not joined.phase_sums[:, 3].any()
        assert not joined.near[:, 3].any()
        np.testing.assert_array_equal(joined.totals, blank.totals)


PER_STREAM = ("levels", "changes", "near", "gaps", "phase_sums", "phase_visits", "tallies")


def problem(missing, n=300, K=5):
    """Forecasts of members, values with a wild one, and a stream that is constant."""
    rng = np.random.default_rng(4)
    y = rng.normal(size=(n, T))
    forecasts = y[:, :, None] * rng.uniform(size=K) + rng.normal(size=(n, T, K))
    forecasts[rng.random(forecasts.shape) < missing] = np.nan
    y[rng.random(y.shape) < missing] = np.nan
    y[100] *= 1e3  # wild
    y[:, 3] = forecasts[:, 3] = 0.0  # constant, and forecast without an error
    return forecasts, y


def mixed_by(mixture, forecasts, y):
    n, n_streams, K = forecasts.shape
    mixed = Mixed(np.full((n, n_streams), np.nan), np.full((n, K), np.nan), np.zeros((n_streams, K)))
    mix_inplace(mixture, forecasts, y, mixed)
    return mixed


PRIOR = np.array([0.1, 0.2, 0.3, 0.3, 0.1])


@pytest.mark.parametrize("missing", [0.0, 0.4, 0.9])
@pytest.mark.parametrize("shared", [0.5, 0.0, 0.2])
def test_the_mixture_is_that_of_the_loop(missing, shared):
    forecasts, y = problem(missing)
    mixture = fresh_mixture(PRIOR, T, shared)
    mixed = mixed_by(mixture, forecasts, y)
    made, squares, used = obvious_mixture(forecasts, y, PRIOR, shared)
    near = {"rtol": 1e-12, "atol": 1e-12}
    np.testing.assert_allclose(mixed.mean, made, **near)
    np.testing.assert_allclose(mixture.errors[:SEEN], squares, **near)
    np.testing.assert_allclose(mixed.weights, used.mean(axis=1), **near)
    np.testing.assert_allclose(mixed.by_stream, used.sum(axis=0), **near)


def test_a_mixture_in_pieces_gives_the_same_bits():
    forecasts, y = problem(0.4)
    whole, mixture = mixed_by(fresh_mixture(PRIOR, T), forecasts, y), fresh_mixture(PRIOR, T)
    pieces = [mixed_by(mixture, forecasts[i : i + 1], y[i : i + 1]) for i in range(len(y))]
    for name in ("mean", "weights"):
        np.testing.assert_array_equal(np.concatenate([getattr(one, name) for one in pieces]), getattr(whole, name))


def test_without_common_weights_streams_do_not_see_each_other():
    forecasts, y = problem(0.2)
    whole = mixed_by(fresh_mixture(PRIOR, T, 0.0), forecasts, y)
    for t in range(T):
        own = (np.ascontiguousarray(array[:, t : t + 1]) for array in (forecasts, y))
        alone = mixed_by(fresh_mixture(PRIOR, 1, 0.0), *own)
        np.testing.assert_array_equal(alone.mean[:, 0], whole.mean[:, t])
        np.testing.assert_array_equal(alone.by_stream[0], whole.by_stream[t])


def test_a_mixture_of_members_that_all_sleep_forecasts_no_change_and_learns_nothing():
    forecasts, y = problem(0.0)
    mixture = fresh_mixture(PRIOR, T)
    mixed_by(mixture, forecasts, y)
    before = Mixture(*(array.copy() for array in mixture))
    mixed = mixed_by(mixture, np.full((1, T, 5), np.nan), y[:1])
    assert not mixed.mean.any()
    assert not mixed.weights.any()
    np.testing.assert_array_equal(mixture.regrets, before.regrets)


def test_a_member_that_wakes_and_is_lucky_twice_does_not_take_over():
    rng = np.random.default_rng(6)
    y = rng.normal(size=(200, T))
    forecasts = np.stack([0.0 * y, 0.1 * y, 0.05 * y, np.full_like(y, np.nan)], axis=2)
    forecasts += 0.5 * rng.normal(size=forecasts.shape)
    forecasts[150:152, :, 3] = y[150:152]
    forecasts[152:, :, 3] = 1.5 * rng.normal(size=(48, T))
    mixed = mixed_by(fresh_mixture(np.full(4, 0.25), T), forecasts, y)
    assert mixed.weights[150, 3] > 0.1
    assert mixed.weights[160, 3] < 0.2


def test_after_a_wild_value_the_mixture_learns_again():
    rng = np.random.default_rng(7)
    y = rng.normal(size=(600, T))
    forecasts = np.stack([0.5 * y, 0.4 * y], axis=2) + 0.1 * rng.normal(size=(600, T, 2))
    forecasts[5] *= 1e6
    y[5] = 1e6
    mixed = mixed_by(fresh_mixture(np.full(2, 0.5), T), forecasts, y)
    assert mixed.weights[20, 0] < 0.5
    assert mixed.weights[-1, 0] > 0.9


def test_a_stream_that_joins_starts_from_the_common_weights():
    forecasts, y = problem(0.1)
    mixture = fresh_mixture(PRIOR, T)
    mixed_by(mixture, forecasts, y)
    more = mixture.with_stream()
    again = np.concatenate([forecasts[:1], forecasts[:1, :1]], axis=1)
    before, after = mixed_by(mixture, forecasts[:1], y[:1]), mixed_by(more, again, np.append(y[:1], [[0.0]], axis=1))
    np.testing.assert_array_equal(after.mean[:, :T], before.mean)
    common = np.exp(np.log(PRIOR) * 0.0) * after.by_stream[T]
    assert common.sum() == pytest.approx(1.0)
    own, shared = before.by_stream[0], after.by_stream[T]  # half of the former is its own, half is the latter
    assert (own >= 0.5 * shared - 1e-12).all()


def test_the_best_member_carries_the_mixture():
    rng = np.random.default_rng(5)
    y = rng.normal(size=(1000, T))
    forecasts = np.stack([0.9 * y, 0.0 * y, -y, rng.normal(size=y.shape)], axis=2)
    mixed = mixed_by(fresh_mixture(np.full(4, 0.25), T), forecasts, y)
    assert np.abs(mixed.mean - y)[500:].mean() < 0.15 * np.abs(y)[500:].mean()
    assert (mixed.by_stream.argmax(axis=1) == 0).all()
    assert mixed.weights[-1].argmax() == 0
