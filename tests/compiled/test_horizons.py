"""Forecasts of several rounds ahead: features, filters, mixture and widths, against their obvious twins."""

from itertools import pairwise

import numpy as np
import pytest

from braided._compiled.delayed import (
    SCALE,
    TRACE,
    delayed_inplace,
    follow_inplace,
    fresh_delayed,
    fresh_followers,
    innovation_inplace,
    with_stream,
)
from braided._compiled.mixture import COMMON, OWN, SEEN, Mixture, fresh_mixture, take_over_inplace
from braided._compiled.mixture import delayed_inplace as mix_inplace
from braided._compiled.panel import RULES, Described, fresh_panel
from braided._compiled.rls_step import FOLD
from braided._compiled.spread import FAST, SLOW, Widths, fresh_spread, widths_inplace
from braided._compiled.targets import Far, Targets, progressive_inplace
from tests.compiled.test_auto import PRIOR, Case, N, T, mixed_by, problem, rows_of
from tests.reference.auto import obvious_mixture
from tests.reference.horizons import (
    obvious_delayed,
    obvious_far_features,
    obvious_far_rules,
    obvious_followers,
    obvious_innovation,
    obvious_spread,
)

# Without the JIT, NumPy warns of the overflows that compiled code lets pass and the functions detect.
pytestmark = pytest.mark.filterwarnings("ignore:(overflow|invalid)")

K = 3  # horizons 2, 3 and 4
NEAR = {"rtol": 1e-9, "atol": 1e-9}

# Features and rules ------------------------------------------------------------------------------------------------


class AheadCase(Case):
    """Targets at random phases, up to more rounds after the same one a season ago than are remembered."""

    def __init__(self, seed, missing=0.2, n_seasons=2):
        super().__init__(seed, missing, n_seasons)
        rng, n_phases = np.random.default_rng(seed + 1), np.array([4, 7])[:n_seasons]
        back = rng.integers(0, 14, (N, K, n_seasons))
        self.targets = Targets(back, rng.integers(0, n_phases, (N, K + 1, n_seasons)))

    def ahead(self, remembered=12, cuts=(), targets=None, earlier=2):
        """What each round and those after it are forecast from; and what is remembered after all."""
        targets, S = self.targets if targets is None else targets, len(self.waves)
        panel, pieces = fresh_panel(T, remembered, int(self.ties.bins[-1])), []
        for first, end in zip([0, *cuts], [*cuts, N], strict=True):
            part, n = slice(first, end), end - first
            made = Described(np.empty((n, T, self.n_features)), np.empty((n, T, RULES + 2 * S)), *np.empty((3, n, T)))
            far = Far.fresh(targets.back.shape[1], earlier + n, T, S)
            far.X[:, :earlier] = far.rules[:, :earlier] = -1.0
            some = Targets(targets.back[part], targets.phase[part])
            given = self.levels[part], self.given[part]
            progressive_inplace(panel, self.ties, rows_of(self.calendar, part), some, *given, made, far)
            assert (far.X[:, :earlier] == -1.0).all()
            assert (far.rules[:, :earlier] == -1.0).all()
            pieces.append((*made, *(array[:, earlier:].swapaxes(0, 1) for array in far)))
        return [np.concatenate(arrays) for arrays in zip(*pieces, strict=True)], panel


@pytest.mark.parametrize(
    ("missing", "n_seasons", "remembered"), [(0.0, 2, 12), (0.3, 2, 30), (0.8, 1, 5), (0.3, 2, 4), (0.3, 0, 12)]
)
def test_features_and_rules_of_later_rounds_are_those_of_the_loop(missing, n_seasons, remembered):
    case = AheadCase(1, missing, n_seasons)
    *_, X, rules = case.ahead(remembered)[0]
    past = case.calendar, case.targets, case.known_from, remembered
    for r, k, t in np.ndindex(N, K, T):
        expected = obvious_far_features(case.levels, case.S, *past, r, t, k + 2)
        np.testing.assert_allclose(X[r, k, t], expected, **NEAR, err_msg=f"{r, k, t}")
        expected = obvious_far_rules(case.levels, *past, r, t, k + 2)
        np.testing.assert_allclose(rules[r, k, t], expected, **NEAR, err_msg=f"{r, k, t}")


@pytest.mark.parametrize("cuts", [(1, 2, 17, 40), tuple(range(1, N))], ids=["some", "one by one"])
def test_descriptions_in_pieces_give_the_same_bits(cuts):
    case = AheadCase(2, 0.3)
    (whole, panel), (cut, other) = case.ahead(), case.ahead(cuts=cuts)
    for one, two in (*zip(whole, cut, strict=True), *zip(panel, other, strict=True)):
        np.testing.assert_array_equal(one, two)


def test_later_rounds_change_nothing_for_the_next_one_and_need_not_be_forecast():
    case = AheadCase(3, 0.3)
    for targets in (case.targets, Targets.none(N, 2)):
        (*made, _, _), panel = case.ahead(targets=targets)
        expected, expected_panel = case.described()
        for one, two in (*zip(made, expected, strict=True), *zip(panel, expected_panel, strict=True)):
            np.testing.assert_array_equal(one, two)


def test_descriptions_of_later_rounds_do_not_look_ahead():
    case, other = AheadCase(4), AheadCase(4)
    other.levels[30:] = np.random.default_rng(5).normal(size=other.levels[30:].shape)
    for one, two in zip(case.ahead()[0][-2:], other.ahead()[0][-2:], strict=True):
        np.testing.assert_array_equal(one[:31], two[:31])
        assert not np.array_equal(one[31], two[31], equal_nan=True)


# Filters that follow -----------------------------------------------------------------------------------------------

FILTERS = {"one of all": (1, 3 * T), "one per stream": (T, 3), "one pooled": (1, 3)}  # number and size


class Followed:
    """Inputs, gains with some that teach nothing and two beginnings anew, and targets with a wild one."""

    def __init__(self, n_filters, size, n=50):
        rng = np.random.default_rng(6)
        self.n_filters, self.n = n_filters, n
        self.X, self.gains = rng.normal(size=(K + n, T, 3)), 0.3 * rng.normal(size=(K + n, T, size))
        self.gains[rng.random((K + n, T)) < 0.2] = 0.0
        self.gains[K + 20, 0] = self.gains[K + 31, 2] = np.nan
        self.y = rng.normal(size=(K, n, T))
        self.y[rng.random(self.y.shape) < 0.3] = np.nan
        self.y[:, 10, 1] = 1e3
        self.fresh = fresh_followers(K, n_filters, size, T)

    def run(self, robust, cuts=(), learns=True):
        made = np.empty(self.y.shape)
        for first, end in zip([0, *cuts], [*cuts, self.n], strict=True):
            piece, rows = np.empty((K, end - first, T)), slice(first, K + end)
            y = self.y[:, first:end].copy()
            follow_inplace(self.fresh, self.X[rows], self.gains[rows], y, robust, learns, piece)
            made[:, first:end] = piece
        return made


@pytest.mark.parametrize("kind", FILTERS)
@pytest.mark.parametrize("robust", [0.0, 2.0])
def test_filters_that_follow_are_those_of_the_loop(kind, robust):
    case = Followed(*FILTERS[kind])
    expected = obvious_followers(case.X, case.gains, case.y, case.n_filters, robust)
    np.testing.assert_allclose(case.run(robust), expected, **NEAR)
    assert expected[:, -1].any()


@pytest.mark.parametrize("cuts", [(1, 2, 19, 40), tuple(range(1, 50))], ids=["some", "one by one"])
def test_filters_that_follow_in_pieces_give_the_same_bits(cuts):
    whole, cut = Followed(1, 3 * T), Followed(1, 3 * T)
    np.testing.assert_array_equal(whole.run(2.0), cut.run(2.0, cuts))
    for one, two in zip(whole.fresh, cut.fresh, strict=True):
        np.testing.assert_array_equal(one, two)


def test_filters_that_only_forecast_stay_as_they_are():
    case = Followed(T, 3)
    case.run(2.0)
    before = [array.copy() for array in case.fresh]
    made = case.run(2.0, learns=False)
    expected = np.einsum("ktd,ntd->knt", case.fresh.weights, case.X[K:])
    np.testing.assert_allclose(made, expected, rtol=1e-12, atol=1e-12)
    for one, two in zip(case.fresh, before, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("robust", [0.0, 1.5])
def test_innovations_are_clipped_at_a_number_of_their_deviations(robust):
    errors = np.random.default_rng(7).standard_t(2, 500) * np.linspace(1.0, 5.0, 500)
    squares, seen = fresh_followers(2, 1, 1, 2).squares[1], []
    for e in errors:
        found = innovation_inplace(squares, 1, e, robust)
        assert found == pytest.approx(obvious_innovation(seen, 3.0, e, robust), rel=1e-12)
        seen.append(found)
    assert (np.abs(seen) < np.abs(errors)).any() == (robust > 0.0)
    np.testing.assert_array_equal(squares[:, 0], [3.0, 0.0])  # of the other stream


# Filters of their own ----------------------------------------------------------------------------------------------


class Delayed:
    """Inputs, one of which is often 0; places among filters; targets, some missing, wild or beyond all bounds."""

    def __init__(self, by_stream, n=150, d=3):
        rng = np.random.default_rng(8)
        self.n_filters, self.n, self.d = 2 * T if by_stream else 2, n, d
        self.X, self.places = rng.normal(size=(K, K + n, T, d)), rng.integers(0, 2, (K, K + n, T))
        self.places += 2 * np.arange(T) * by_stream
        self.X[:, n // 4 : n // 2, :, 1] = 0.0  # information fades, nothing new comes
        then = K + np.arange(n) - np.arange(1, K + 1)[:, None]
        self.y = np.stack([X[rows] for X, rows in zip(self.X, then, strict=True)]) @ rng.normal(size=d)
        self.y += 0.3 * rng.normal(size=self.y.shape)
        self.y[rng.random(self.y.shape) < 0.3] = np.nan
        self.y[:, 40, 1] = 1e3
        self.y[1, [60, 61, 62], [2, 0, 1]] = 1e200, 1.0, 1e200
        self.X[1, then[1, 61], 0] = 1e170

    def fresh(self, penalty):
        return fresh_delayed(K, self.n_filters, self.d, penalty, T)

    def run(self, filters, setting, rounds=slice(None), streams=T):
        first, end, _ = rounds.indices(self.n)
        rows, made = slice(first, K + end), np.empty((K, end - first, streams))
        X, places, y = self.X[:, rows, :streams], self.places[:, rows, :streams], self.y[:, rounds, :streams]
        X, places, y = (np.ascontiguousarray(array) for array in (X, places, y))
        delayed_inplace(filters, X, places, y, np.array(setting), made)
        return made


@pytest.mark.parametrize("by_stream", [True, False])
@pytest.mark.parametrize("setting", [(2.0, 1.0, 0.0), (2.0, 0.8, 0.0), (0.01, 0.7, 2.0)], ids=str)
def test_filters_of_later_rounds_are_those_of_the_loop(by_stream, setting):
    case = Delayed(by_stream)
    filters = case.fresh(setting[0])
    expected, resets = obvious_delayed(case.X, case.places, case.y, case.n_filters, setting)
    np.testing.assert_allclose(case.run(filters, setting), expected, **NEAR)
    np.testing.assert_array_equal(filters.resets, resets)
    assert resets.tolist() == [0, 3, 0]
    P, sizes = filters.covariance, filters.sizes
    np.testing.assert_array_equal(P, P.swapaxes(2, 3))
    np.testing.assert_allclose(sizes[:, :, TRACE], np.trace(P, axis1=2, axis2=3), rtol=1e-12)
    assert sizes[:, :, SCALE].max() <= FOLD


def test_filters_of_later_rounds_in_pieces_give_the_same_bits():
    case, setting, cuts = Delayed(True), (0.01, 0.7, 2.0), (0, 1, 2, 50, 99, 150)
    whole, cut = case.fresh(0.01), case.fresh(0.01)
    made = case.run(whole, setting)
    pieces = [case.run(cut, setting, slice(*ends)) for ends in pairwise(cuts)]
    np.testing.assert_array_equal(np.concatenate(pieces, axis=1), made)
    for one, two in zip(whole, cut, strict=True):
        np.testing.assert_array_equal(one, two)


def test_without_new_information_the_past_fades_no_further_than_the_prior():
    """An input that is constant: a filter that always fades would forget the other two, and wind up."""
    case = Delayed(False, n=2000)
    filters = case.fresh(2.0)
    case.X[:, 30:] = [0.0, 1.0, 0.0]
    case.run(filters, (2.0, 0.5, 0.0))
    traces = filters.sizes[:, :, SCALE] * np.trace(filters.covariance, axis1=2, axis2=3)
    assert (traces < 2.0 * case.d / 2.0).all()
    assert (traces > 0.5 * case.d / 2.0).all()


@pytest.mark.parametrize(("P", "x", "y"), [(-1.0, 1.0, 1.0), (1.0, 1e152, 1.0), (1.0, 1.0, -1e200), (np.nan, 1.0, 1.0)])
def test_a_filter_that_breaks_down_begins_again(P, x, y):
    filters, fresh = (fresh_delayed(1, 1, 1, 0.5, 1) for _ in range(2))
    filters.covariance[:], filters.weights[:], filters.sizes[:] = P, 1e-160, 3.0
    given = np.full((1, 2, 1, 1), x), np.zeros((1, 2, 1), np.int64), np.full((1, 1, 1), y), np.array([0.5, 0.9, 0.0])
    delayed_inplace(filters, *given, np.empty((1, 1, 1)))
    for one, two in zip(filters[:-1], fresh, strict=False):
        np.testing.assert_array_equal(one, two)
    assert filters.resets.tolist() == [1]


@pytest.mark.parametrize("by_stream", [True, False])
def test_a_stream_that_joins_is_as_if_its_values_had_been_missing(by_stream):
    case, setting = Delayed(by_stream), (0.01, 0.7, 2.0)
    case.y[:, :100, -1] = np.nan
    whole, filters = case.fresh(0.01), fresh_delayed(K, 2 * (T - 1) if by_stream else 2, case.d, 0.01, T - 1)
    made = case.run(whole, setting)
    np.testing.assert_array_equal(case.run(filters, setting, slice(100), T - 1), made[:, :100, :-1])
    filters = with_stream(filters, 2 * by_stream, 0.01)
    np.testing.assert_array_equal(case.run(filters, setting, slice(100, None)), made[:, 100:])
    for one, two in zip(filters, whole, strict=True):
        np.testing.assert_array_equal(one, two)


# The mixture -------------------------------------------------------------------------------------------------------


def delayed_problem(missing, delay):
    """Forecasts of members, each in the row in which it is made, and the values `delay` rows later."""
    forecasts, y = problem(missing)
    n = len(y)
    return forecasts, np.concatenate([np.full((delay, T), np.nan), y])[:n]


def mixed_ahead(mixture, delay, forecasts, y, cuts=(), learns=True):
    """Forecasts (n, T), and means (p + n, 2, T), in pieces."""
    before = np.full((delay, *forecasts.shape[1:]), np.nan)
    forecasts, means = np.concatenate([before, forecasts]), np.zeros((delay + len(y), 2, T))
    mean = np.full(y.shape, np.nan)
    for first, end in zip([0, *cuts], [*cuts, len(y)], strict=True):
        rows, part = slice(first, delay + end), slice(first, end)
        mix_inplace(mixture, delay, forecasts[rows], means[rows], y[part], learns, mean[part])
    return mean, means


@pytest.mark.parametrize(("missing", "delay", "shared"), [(0.0, 1, 0.5), (0.4, 3, 0.2), (0.9, 2, 0.5), (0.4, 2, 0.0)])
def test_the_mixture_of_later_rounds_is_that_of_the_loop(missing, delay, shared):
    forecasts, y = delayed_problem(missing, delay)
    mixture = fresh_mixture(PRIOR, T, shared)
    mean, _ = mixed_ahead(mixture, delay, forecasts, y)
    expected, squares, _ = obvious_mixture(forecasts, y, PRIOR, shared, delay)
    np.testing.assert_allclose(mean, expected, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(mixture.errors[:SEEN], squares, rtol=1e-11, atol=1e-11)


def test_the_mixture_of_forecasts_that_are_learned_at_once_is_that_of_the_next_round():
    forecasts, y = problem(0.4)
    one, other = (fresh_mixture(PRIOR, T) for _ in range(2))
    (mean, _), expected = mixed_ahead(one, 0, forecasts, y), mixed_by(other, forecasts, y)
    for a, b in ((mean, expected.mean), *zip(one, other, strict=True)):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)


def test_the_mixture_of_later_rounds_in_pieces_gives_the_same_bits():
    forecasts, y = delayed_problem(0.4, 3)
    one, other = (fresh_mixture(PRIOR, T) for _ in range(2))
    whole, cut = mixed_ahead(one, 3, forecasts, y), mixed_ahead(other, 3, forecasts, y, (1, 2, 17, 150, 151))
    for a, b in (*zip(whole, cut, strict=True), *zip(one, other, strict=True)):
        np.testing.assert_array_equal(a, b)


def test_a_mixture_that_does_not_learn_stays_as_it_is():
    forecasts, y = delayed_problem(0.4, 2)
    mixture = fresh_mixture(PRIOR, T, 0.2)
    mixed_ahead(mixture, 2, forecasts, y)
    before = Mixture(*(array.copy() for array in mixture))
    mean, means = mixed_ahead(mixture, 2, forecasts, y, learns=False)
    for one, two in zip(mixture, before, strict=True):
        np.testing.assert_array_equal(one, two)
    np.testing.assert_allclose(mean, 0.8 * means[2:, OWN] + 0.2 * means[2:, COMMON], rtol=1e-12)
    expected = mixed_by(mixture, forecasts[:1], y[:1]).mean
    np.testing.assert_allclose(mean[:1], expected, rtol=1e-12)


@pytest.mark.parametrize("shared", [0.5, 0.0])
def test_a_mixture_goes_on_with_the_weights_of_one_of_fewer_streams_in_other_units(shared):
    forecasts, y = problem(0.2)
    old, new = fresh_mixture(PRIOR, T, shared), fresh_mixture(PRIOR, T + 2, shared)
    ratio = np.array([1.0, 0.5, 3.0, 2.0])
    mixed_by(old, forecasts, y)
    take_over_inplace(new, old, ratio)
    expected = old.with_stream().with_stream()
    expected.errors[:2, :T] *= ratio**2
    for one, two in zip(new, expected, strict=True):
        np.testing.assert_array_equal(one, two)
    more = [((0, 0), (0, 2)), ((0, 0), (0, 2), (0, 0))]  # streams without values
    y_now, forecasts_now = y * ratio, forecasts * ratio[:, None]
    made = mixed_by(new, np.pad(forecasts_now, more[1]), np.pad(y_now, more[0], constant_values=np.nan))
    np.testing.assert_allclose(made.mean[:, :T], mixed_by(old, forecasts, y).mean * ratio, rtol=1e-9, atol=1e-9)


# Intervals ---------------------------------------------------------------------------------------------------------


NO_LEVELS = np.empty(0)


def room(rounds, n_streams, levels=NO_LEVELS):
    """Room for intervals and quantiles of forecasts."""
    return Widths(*(np.full((*some, rounds, n_streams), np.nan) for some in ((), levels.shape, ())))


class Intervals:
    """Errors, some missing and some wild, of streams in different units; every fourth gets no intervals."""

    levels = np.array([0.02, 0.3, 0.5, 0.9])

    def __init__(self, delay, n_streams=T, n=300):
        rng = np.random.default_rng(9)
        self.delay, self.n, self.unit = delay, n, np.resize([1.0, 100.0, 1e-3, np.nan], n_streams)
        self.errors = rng.standard_t(2, (n, n_streams)) * self.unit * (1.0 + (np.arange(n)[:, None] > 200))
        self.errors[rng.random(self.errors.shape) < 0.2] = self.errors[:delay] = self.errors[50:53] = np.nan
        self.errors[150] = 1e200
        self.errors[160:170], self.errors[100:130, 1] = 0.0, 0.0  # as of sensors that are stuck
        self.errors[:160, 2::4] = np.nan  # begin late
        self.errors[:, 3::4] = 1.0
        self.spread = fresh_spread(n_streams, delay + 1, 0.5, 2.0 * self.levels - 1.0)

    def run(self, cuts=()):
        made = room(self.delay + self.n, len(self.unit), self.levels)
        order = np.arange(len(self.unit))
        for first, end in zip([0, *cuts], [*cuts, self.n], strict=True):
            piece = Widths(*(array[..., first : self.delay + end, :].copy() for array in made))
            given = piece, self.errors[first:end], 0.2, self.levels
            widths_inplace(self.spread, self.delay, self.unit, order, *given)
            for array, own in zip(made, piece, strict=True):
                array[..., first : self.delay + end, :] = own
        return [array[..., self.delay :, :] for array in made]


@pytest.mark.parametrize(("delay", "n_streams"), [(0, T), (1, T), (5, T), (0, 60 * T)])
def test_intervals_and_quantiles_are_those_of_the_loop(delay, n_streams):
    case = Intervals(delay, n_streams)
    levels = dict(zip(case.levels, 2.0 * case.levels - 1.0, strict=True))
    expected = obvious_spread(case.errors, case.unit, delay, 0.2, 0.5, levels)
    for found, one in zip(case.run(), expected, strict=True):
        np.testing.assert_allclose(found, one, rtol=1e-9, atol=1e-12)
        assert (np.isnan(found) == np.isnan(case.unit)).all()


@pytest.mark.parametrize("cuts", [(1, 2, 50, 90), tuple(range(1, 300))], ids=["some", "one by one"])
def test_intervals_and_quantiles_in_pieces_give_the_same_bits(cuts):
    whole, cut = Intervals(2), Intervals(2)
    for one, two in (*zip(whole.run(), cut.run(cuts), strict=True), *zip(whole.spread, cut.spread, strict=True)):
        np.testing.assert_array_equal(one, two)


def widths_of(spread, errors, unit, misses, levels=NO_LEVELS):
    """What forecasts of the next round are given."""
    made = room(*errors.shape, levels)
    widths_inplace(spread, 0, unit, np.arange(len(unit)), made, errors, misses, levels)
    return made


def test_intervals_of_constant_streams_shrink_and_do_not_vanish():
    spread, errors = fresh_spread(2, 1, 0.0), np.zeros((500, 2))
    assert (np.diff(widths_of(spread, errors, np.ones(2), 0.1).half, axis=0) < 0.0).all()
    spread.own[[SLOW, FAST]] = 1e-279
    made = widths_of(spread, errors, np.ones(2), 0.1)
    np.testing.assert_array_equal(spread.own[[FAST]], 1e-280)
    assert (made.scale > 0.0).all()


@pytest.mark.parametrize(("unit", "log_factor"), [(1.0, 1e3), (0.0, 0.0), (np.nan, 0.0)])
def test_intervals_without_bounds_or_units_learn_nothing(unit, log_factor):
    spread = fresh_spread(1, 1, log_factor)
    before = [array.copy() for array in spread]
    assert not (widths_of(spread, np.zeros((5, 1)), np.array([unit]), 0.1).half > 0.0).any()
    for one, two in zip(spread, before, strict=True):
        np.testing.assert_array_equal(one, two)


def swelling(seed):
    """Streams whose errors grow and shrink."""
    return np.random.default_rng(seed), np.exp(np.sin(np.arange(3000) / 50.0))[:, None]


def test_the_promised_share_is_inside_however_large_errors_become():
    rng, sizes = swelling(10)
    errors = rng.standard_t(3, (3000, T)) * sizes
    widths = widths_of(fresh_spread(T, 1, 0.0), errors, np.ones(T), 0.1).half
    assert np.abs((np.abs(errors) > widths).mean(axis=0) - 0.1).max() < 0.01


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_share_of_each_level_is_below_its_quantile_also_where_errors_are_skewed(sign):
    rng, sizes = swelling(11)
    errors = sign * (rng.exponential(size=(3000, T)) - 1.0) * sizes
    levels = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
    offsets = widths_of(fresh_spread(T, 1, 0.0, np.zeros(5)), errors, np.ones(T), 0.1, levels).offsets
    assert np.abs((errors < offsets).mean(axis=1) - levels[:, None]).max() < 0.02
    assert sign * (offsets[0] + offsets[-1]).mean() > 0.5  # the long tail is on that side
