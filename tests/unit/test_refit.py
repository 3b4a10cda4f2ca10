"""Refit: a regressor as a member of Auto. It sees the past only; cuts, files and replays change no forecast."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

import braided as bd
from braided._compiled.targets import FAR_FEATURES
from braided.forecasting.auto import Auto, AutoEngine, Member, Rounds, Runner
from braided.forecasting.auto.ensemble import Ensemble
from braided.forecasting.auto.horizons import Horizons
from braided.state import dumps
from tests.auto import OWN, TIED, in_pieces, insist_sound, late, same, walks

ROUNDS = 260
TREE = bd.Refit(DecisionTreeRegressor(max_depth=5, random_state=0), every=30, window=60)
LINEAR = bd.Refit(make_pipeline(StandardScaler(), Ridge(random_state=0)), every=70, name="ridge")
BOTH = Auto((OWN, TREE, TIED, LINEAR), horizon=4)
LOG = []


class Odd(RegressorMixin, BaseEstimator):
    """Breaks down where it is told to, and else forecasts the mean; it writes down what it is fitted to."""

    def __init__(self, fails="", at=0):
        self.fails, self.at = fails, at

    def fit(self, X, y):
        LOG.append((X, y))
        if self.fails == "fit" and len(LOG) > self.at:
            raise RuntimeError("no convergence")
        self.mean_ = y.mean()
        return self

    def predict(self, X):
        made = np.full(len(X), self.mean_)
        wild = np.abs(X[:, 0]) > 4.9  # features are clipped
        if self.fails == "predict" and wild.any():
            raise ValueError("out of range")
        if self.fails == "nan":
            made[wild] = np.nan
        return {"shape": made[:, None], "words": "none", "short": made[1:]}.get(self.fails, made)


@pytest.fixture(autouse=True)
def forget():
    LOG.clear()


def streams(rounds=ROUNDS, **given):
    times, values, tasks = walks(rounds, 4, missing=0.05, **given)
    return times, late(values), tasks


# What it sees -------------------------------------------------------------------------------------------------------


def test_each_horizon_sees_its_own_targets(monkeypatch):
    """The calendar and the seasonal features of model k are those of the round k after the next."""
    times, values, tasks = walks(60, 3, kind="hourly")
    far, advance = [], Horizons.advance

    def catch(self, targets, features, *others):
        far.append(features.X[:, -len(others[2].levels) :, :, FAR_FEATURES:].copy())
        return advance(self, targets, features, *others)

    monkeypatch.setattr(Horizons, "advance", catch)
    engine = AutoEngine(Auto((TIED, bd.Refit(Odd(), every=50, name="odd")), horizon=3))
    engine.advance(times[:20], values[:20], tasks)
    far.clear()
    LOG.clear()
    for i in range(20, 60):
        engine.advance(times[i : i + 1], values[i : i + 1], tasks)
    features = np.concatenate(far, axis=1)  # (2, 40, 3, columns), from round 20 on
    fits = LOG[-3:]  # before round 50
    days = times.astype("datetime64[D]").astype(int)
    for k, (X, _) in enumerate(fits):
        rows = X[:, -1].reshape(-1, 3)  # the stream's number
        np.testing.assert_array_equal(rows, np.tile(np.arange(3.0), (len(rows), 1)))
        first = 50 - k - len(rows)  # the round that the first row was forecast before
        np.testing.assert_array_equal(X[::3, -3], (days[first + k : 50] + 3) % 7)  # the day of the week, from Monday on
        if k:
            seen = X[:, -5 - features.shape[3] : -5].reshape(-1, 3, features.shape[3])[20 - first :]
            np.testing.assert_array_equal(seen, features[k - 1, : len(seen)].astype(np.float32))


def test_rounds_of_which_not_all_is_known_ahead_are_neither_fitted_nor_forecast(monkeypatch):
    times, values, tasks = walks(60, 3)
    plan = np.ones((60, 3, 1)) * np.arange(60)[:, None, None]
    plan[30, 1] = np.nan
    made, advance = [], Ensemble.advance

    def catch(self, rounds, **given):
        made.append(advance(self, rounds, **given))
        return made[-1]

    monkeypatch.setattr(Ensemble, "advance", catch)
    engine = AutoEngine(Auto((bd.Refit(Odd(), every=50, name="odd"),), horizon=1), n_extras=1, n_known=1)
    engine.advance(times[:30], values[:30], tasks, plan[:30])
    made.clear()
    engine.advance(times[30:], values[30:], tasks, plan[30:])
    forecasts = np.concatenate([one.members[:, :, 0] for one in made])
    assert np.argwhere(np.isnan(forecasts)).tolist() == [[0, 1]]
    (X, _), n = LOG[-1], 3 * 50 - 3  # before round 50; the first has no change
    assert len(X) == n - 1
    assert not np.isnan(X).any()


def test_a_broken_model_stays_so_after_loading():
    times, values, tasks = streams()
    values[230] += 1e3
    auto = Auto((OWN, bd.Refit(Odd("nan"), every=100, name="odd")), horizon=2)
    whole, parts = AutoEngine(auto), AutoEngine(auto)
    with pytest.warns(RuntimeWarning, match="odd broke down"):
        made = whole.advance(times, values, tasks)
    with pytest.warns(RuntimeWarning, match="odd broke down"):
        again, pieces = in_pieces(parts, times, values, tasks, [234, 245], saves=True)
    same(made, pieces)
    assert again.breakdowns == whole.breakdowns > 0


def test_its_weight_at_the_start_is_its_own_at_all_horizons():
    times, values, tasks = walks(30, 3)
    engine = AutoEngine(BOTH)
    engine.advance(times[:20], values[:20], tasks)
    horizons = engine.ensemble.horizons
    for names, mixture in [(engine.ensemble.names, engine.ensemble.mixture)] + [
        (horizons.names, one) for one in horizons.mixtures
    ]:
        assert mixture.prior[names.index(TREE.name)] == mixture.prior[names.index("ridge")] == 0.2
        assert mixture.prior.sum() == pytest.approx(1.0)


def test_asking_for_a_forecast_does_not_change_what_is_saved():
    times, values, tasks = streams(60)
    engine = AutoEngine(BOTH)
    engine.advance(times, values, tasks)
    before = dumps(engine)
    engine.ahead()
    assert dumps(engine) == before


# The past only ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["daily", "hourly", "monthly", "integers"])
def test_cut_anywhere_saved_and_loaded_forecasts_are_the_same_to_the_bit(kind):
    times, values, tasks = streams(kind=kind)
    auto = BOTH if kind != "monthly" else Auto((bd.Defaults(), TREE), horizon=2)
    whole = AutoEngine(auto)
    made = whole.advance(times, values, tasks)
    insist_sound(whole, made)
    assert whole.ensemble.used[:, whole.ensemble.names.index(TREE.name)].all()
    cuts = np.unique([1, 5, 19, 20, 21, 100, 200, 207, *np.random.default_rng(3).integers(1, ROUNDS, 12)])
    cut, pieces = in_pieces(AutoEngine(auto), times, values, tasks, cuts, saves=True)
    same(made, pieces)
    same(whole.ahead(), cut.ahead())
    if kind == "daily":
        same(made, in_pieces(AutoEngine(auto), times, values, tasks, range(1, ROUNDS))[1])
    assert whole.breakdowns == cut.breakdowns == 0


@pytest.mark.parametrize("row", [21, 64, 99, 100, 150, 201, 240])
def test_values_to_come_change_no_forecast_made_before_them(row):
    times, values, tasks = streams()
    other = values.copy()
    other[row:] = np.where(np.isnan(values[row:]), np.nan, np.random.default_rng(0).normal(size=values[row:].shape))
    one, two = (AutoEngine(BOTH).advance(times, table, tasks) for table in (values, other))
    known = np.searchsorted(times, one.times) - one.horizons + 1 <= row  # made before that round
    assert {*one.horizons[known & (one.times >= times[row])].tolist()} == {1, 2, 3, 4}
    np.testing.assert_array_equal(one.forecast[known], two.forecast[known])
    assert (one.forecast[~known] != two.forecast[~known]).any()


def test_it_is_fitted_to_changes_over_each_horizon_within_the_window():
    times, values, tasks = walks(150, 3, kind="integers")
    engine = AutoEngine(Auto((bd.Refit(Odd(), every=70, window=50, is_robust=False),), horizon=3, seasons=()))
    engine.advance(times, values, tasks)
    engine.ahead()
    levels = engine.ensemble.views[0].inward(values)
    for h, (X, y) in enumerate(LOG[-3:], 1):  # before round 140, on rounds 90 to 139
        last = np.arange(90, 140 - h + 1)
        np.testing.assert_allclose(y, (levels[last + h - 1] - levels[last - 1]).ravel(), rtol=1e-12)
        np.testing.assert_allclose(X[:, 0], (levels[last - 1] - levels[last - 2]).ravel(), rtol=1e-5)
        np.testing.assert_array_equal(X[:, -1], np.tile(range(3), len(last)))


def test_wild_changes_are_clipped_unless_every_error_counts_in_full():
    times, values, tasks = walks(260, 4)
    values[210:, 0] += 1e4
    largest = []
    for robust in (True, False):
        LOG.clear()
        AutoEngine(Auto((bd.Refit(Odd(), every=50),), robust=robust)).advance(times, values, tasks)
        largest.append(max(np.abs(y).max() for _, y in LOG))
    assert largest[0] < 0.9 * largest[1]


def test_replays_repeat_no_fit_that_nobody_needs():
    times, values, tasks = walks(230, 3)
    engine, made = in_pieces(AutoEngine(Auto((bd.Refit(Odd()),))), times, values, tasks, range(1, 230))
    due = {bd.Refit(Odd()).last_fit(number) for number in range(20, 230)}
    assert len(LOG) == len(due) + 2  # the last one again, after rounds 100 and 200
    insist_sound(engine, made)


def test_leaving_out_forecasts_that_nobody_needs_changes_no_bit(monkeypatch):
    times, values, tasks = streams()
    made = AutoEngine(BOTH).advance(times, values, tasks)
    monkeypatch.setattr("braided.forecasting.auto.ensemble.replace", lambda rounds, are_needed: rounds)
    same(made, AutoEngine(BOTH).advance(times, values, tasks))


def test_trees_find_what_no_filter_can():
    rng = np.random.default_rng(0)
    changes = np.zeros((600, 4))
    for row in range(1, 600):
        changes[row] = np.abs(changes[row - 1]) - 1.0 + 0.3 * rng.normal(size=4)
    errors = []
    for members in (None, (bd.Defaults(), bd.Refit(DecisionTreeRegressor(max_depth=4, random_state=0)))):
        forecaster = bd.Forecaster(members=members, season=())
        forecaster.update(np.arange(600), changes.cumsum(axis=0), tuple("abcd"))
        errors.append(forecaster.record.rmse_of("model").mean())
    assert errors[1] < 0.9 * errors[0]


# Breakdowns ---------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:odd broke down")
@pytest.mark.parametrize("fails", ["fit", "predict", "nan"])
@pytest.mark.parametrize("cuts", [[], [211, 216, 217], range(1, 240)], ids=["whole", "few cuts", "one by one"])
def test_after_a_breakdown_it_forecasts_nothing_until_it_is_fitted_again(fails, cuts):
    times, values, tasks = walks(240, 3, kind="integers")
    values[215:, 0] += 1e3  # a wild change is seen at round 216
    auto = Auto((OWN, bd.Refit(Odd(fails, at=10), every=20, name="odd")), seasons=())
    engine, made = in_pieces(AutoEngine(auto), times, values, tasks, cuts)
    insist_sound(engine, made)
    assert engine.breakdowns >= 1
    if fails == "fit":
        assert engine.ensemble.used[:, 1].sum() < engine.ensemble.used[:, 0].sum()
    else:
        assert engine.breakdowns == 1
        runner = engine.ensemble.runners[0]["odd"]
        assert runner.fitted == 240
        assert not runner.is_broken.any()
    LOG.clear()
    same(made, AutoEngine(auto).advance(times, values, tasks))


def test_a_warning_says_why_it_broke_down():
    times, values, tasks = walks(30, 3)
    with pytest.warns(RuntimeWarning, match=r"odd broke down and forecasts nothing .* \(RuntimeError\('no conv"):
        AutoEngine(Auto((bd.Refit(Odd("fit"), name="odd"),))).advance(times, values, tasks)


@pytest.mark.parametrize(
    ("fails", "said"),
    [
        ("shape", r"odd predicts an array of shape \(510, 1\): it must return \(510,\)"),
        ("short", r"odd predicts an array of shape \(509,\)"),
        ("words", "odd predicts 'none': it must return numbers"),
    ],
)
def test_forecasts_of_the_wrong_shape_are_refused(fails, said):
    times, values, tasks = walks(30, 3)
    with pytest.raises(bd.InputError, match=said):
        AutoEngine(Auto((bd.Refit(Odd(fails), name="odd"),))).advance(times, values, tasks)


# Members ------------------------------------------------------------------------------------------------------------


def test_the_estimator_given_is_neither_fitted_nor_changed():
    given = make_pipeline(StandardScaler(), Ridge(random_state=0))
    member = bd.Refit(given)
    given.set_params(ridge__alpha=7.0)
    assert member.estimator.build().get_params()["ridge__alpha"] == 1.0
    times, values, tasks = walks(40, 3)
    AutoEngine(Auto((member,))).advance(times, values, tasks)
    assert not hasattr(given[-1], "coef_")
    assert member == bd.Refit(make_pipeline(StandardScaler(), Ridge(random_state=0)))
    assert member.name == "refit Pipeline"


def test_without_sharing_it_is_left_out():
    times, values, tasks = walks(60)
    engine = AutoEngine(replace(BOTH, compares=True))
    insist_sound(engine, engine.advance(times, values, tasks))
    assert TREE.name in engine.ensemble.names
    assert TREE.name not in engine.alone.names


def test_defaults_stand_for_the_members_of_auto():
    times, values, tasks = streams()
    made = AutoEngine(Auto((bd.Defaults(),), horizon=2)).advance(times, values, tasks)
    same(made, AutoEngine(Auto(horizon=2)).advance(times, values, tasks))
    with pytest.raises(bd.InputError, match="the name 'tied' is taken"):
        AutoEngine(Auto((bd.Defaults(), TIED))).advance(times, values, tasks)


@pytest.mark.parametrize(
    ("estimator", "said"),
    [
        (DecisionTreeRegressor(), "random_state of estimator is None: give random_state=0, so that a saved model"),
        (make_pipeline(Ridge()), "ridge__random_state of estimator is None"),
        (Ridge(random_state=np.random.RandomState(0)), "random_state of estimator is a RandomState, which can't be"),
        (Ridge(alpha=np.ones(2), random_state=0), "alpha of estimator is a ndarray, which can't be saved: give None"),
        (
            make_pipeline(Ridge(random_state=0), memory="cache"),
            "memory of Pipeline is 'cache': leave it out, as a cache",
        ),
        (Ridge, "estimator is the class Ridge: give an estimator, such as"),
        (StandardScaler(), r"estimator is StandardScaler\(\): give an estimator"),
        (3, "estimator is 3: give an estimator"),
    ],
    ids=lambda one: one if isinstance(one, str) else type(one).__name__,
)
def test_estimators_that_cannot_be_rebuilt_are_refused(estimator, said):
    with pytest.raises(bd.InputError, match=said):
        bd.Refit(estimator)


@pytest.mark.parametrize("given", [{"every": 0}, {"window": 3}, {"name": 3}, {"every": 1.5}])
def test_settings_that_make_no_sense_are_refused(given):
    with pytest.raises(bd.InputError, match=next(iter(given))):
        bd.Refit(Odd(), **given)


# Members of your own that look ahead ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class LastChange(Member):
    """The last change over each horizon, once more."""

    def start(self, start):
        return LastChangeRunner(start)


class LastChangeRunner(Runner):
    looks_ahead = True

    def __init__(self, start):
        self.changes = np.full((start.horizon, 1, start.graph.n_tasks), np.nan)

    def forecast(self, rounds):
        assert isinstance(rounds, Rounds)
        assert rounds.far.shape[:3] == (len(self.changes) - 1, *rounds.y.shape)
        assert rounds.moments.shape[:2] == (1, len(self.changes))
        return self.changes[0]

    def forecast_ahead(self, rounds):
        return self.changes[1:]

    def learn(self, rounds):
        self.changes = np.concatenate([rounds.y[None], self.changes[1:]])

    def learn_ahead(self, rounds, changes):
        self.changes = np.concatenate([self.changes[:1], changes])

    def join(self, graph, links):
        self.changes = np.pad(self.changes, ((0, 0), (0, 0), (0, 1)), constant_values=np.nan)

    def dump(self):
        return {"changes": self.changes}

    def restore(self, dumped):
        self.changes = dumped["changes"]


def test_a_member_of_your_own_looks_ahead():
    times, values, tasks = streams()
    auto = Auto((OWN, LastChange("once more")), horizon=3)
    whole = AutoEngine(auto)
    made = whole.advance(times, values, tasks)
    insist_sound(whole, made)
    assert whole.ensemble.horizons.names[0] == "once more"
    levels = whole.ensemble.views[0].inward(values[:, whole.places])
    expected = np.stack([levels[-1] - levels[-3], levels[-1] - levels[-4]])
    np.testing.assert_allclose(whole.ensemble.runners[0]["once more"].changes[1:, 0], expected, rtol=1e-12)
    again, pieces = in_pieces(AutoEngine(auto), times, values, tasks, [21, 100, 150, 205, 230], saves=True)
    same(made, pieces)
    same(whole.ahead(), again.ahead())
