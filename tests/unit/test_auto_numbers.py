"""Numbers of Auto, compared with slow and obvious loops."""

import numpy as np
import pytest

from braided._compiled.mixture import fresh_regrets
from braided._compiled.panel import feature_groups
from braided.forecasting.auto import Auto, AutoEngine, Linear
from braided.forecasting.auto.ensemble import Ensemble
from braided.forecasting.auto.members import Rounds, Start
from braided.forecasting.units import Units
from braided.forgetting import Exponential
from braided.graph import TaskGraph
from braided.learners import MTWRLS, WRLS
from tests.auto import FEW, late, walks

# Members, beside filters that are told round by round what to learn ------------------------------------------------

FEATURES = ("bias", "recent", "level", "near")
COLUMNS = [0, 1, 2, 10, 11]  # of these in the table of `_compiled.panel`
ALIKE = np.array([[2, 1], [0, -1], [1, 0]])
GRAPH = TaskGraph([[1.0, 0.5, 0.2], [0.5, 1.0, 0.7], [0.2, 0.7, 1.0]], range(3), ridge=0.1)
PHASES = 4


def rounds_of_three(n=60):
    """Rounds of three streams, some of whose values are missing, and some wild."""
    rng = np.random.default_rng(3)
    groups = feature_groups(0, 1, 2)
    X, y = rng.normal(size=(n, 3, groups["others"])), rng.normal(size=(n, 3))
    y[rng.random((n, 3)) < 0.1] = 50.0
    y[rng.random((n, 3)) < 0.1] = np.nan
    before = rng.normal(size=(n, 3))
    before[7, 1] = np.nan
    given = rng.uniform(0.5, 3.0, (n, 3)), np.arange(n) % PHASES, rng.integers(0, 2, n), np.ones((n, 3), bool)
    ahead = {"moments": np.empty((n, 1, 0)), "far": np.empty((0, n, 3, 0)), "plan": np.empty((0, n, 3, 0))}
    return Start(GRAPH, groups, ALIKE, PHASES), Rounds(X, y, *given, first=0, forecasts={"before": before}, **ahead)


def filters_of(member):
    """Filters as `member` should have them: streams' own, of each phase, on working days and days off."""
    robust = {"robust": 5.0, "noise": 1.0} if member.is_robust else {}
    d = len(COLUMNS) + (6 if member.sees_residuals else 0)
    if member.sharing == "tied":
        return MTWRLS(GRAPH, d, member.penalty, Exponential(member.forgetting, per="round"), **robust)
    is_pooled = member.sharing == "pooled"
    fade = member.forgetting ** (1 / 3) if is_pooled else member.forgetting  # a pooled filter sees three a round
    keys = [f"{stream} {phase} {off}" for stream in range(3) for phase in range(PHASES) for off in range(2)]
    return WRLS(keys, d, member.penalty, Exponential(fade, per="task"), **robust)


def residual_of(y, base, i, t):
    """What was left of a change: at most 10 units, and nothing where it is not known."""
    missing = i < 0 or t < 0 or np.isnan(y[i, t])
    return 0.0 if missing else min(max(y[i, t] - base[i, t], -10.0), 10.0)


def by_hand(member, rounds):
    """Forecasts of a member, sample by sample."""
    y, learner, made = rounds.y, filters_of(member), np.empty_like(rounds.y)
    base = np.nan_to_num(rounds.forecasts["before"]) if member.after else np.zeros_like(y)
    for i in range(len(y)):
        X, target, keys, units = [], [], [], []
        for t in range(3):
            x = [rounds.X[i, t, column] for column in COLUMNS]
            for stream in [t, *ALIKE[t]] if member.sees_residuals else ():
                x += [residual_of(y, base, i - lag, stream) for lag in (1, 2)]
            unit = rounds.scale[i, t] if member.is_scaled else 1.0
            change = (y[i, t] - base[i, t]) / unit
            X.append(np.array(x) / unit)
            target.append(min(max(change, -10.0), 10.0) if member.is_scaled else change)
            phase = rounds.phases[i] if member.by else 0
            off = rounds.days_off[i] if member.by == "phase, day off" else 0
            own = 0 if member.sharing == "pooled" else t
            keys.append(own if member.sharing == "tied" else f"{own} {phase} {off}")
            units.append(unit)
        made[i] = learner.predict_many(X, keys) * units + base[i]
        weights = 1.0 - np.isnan(target)
        learner.learn_many(X, np.nan_to_num(target), keys, weights=weights, rounds=np.full(3, i))
    return made


MEMBERS = [
    Linear("tied", "tied", FEATURES),
    Linear("separate", "separate", FEATURES, 10.0, 0.98),
    Linear("pooled", "pooled", FEATURES, 10.0, 0.9),
    Linear("scaled", "tied", FEATURES, is_scaled=True),
    Linear("scaled, not robust", "separate", FEATURES, is_scaled=True, is_robust=False),
    Linear("residuals", "tied", FEATURES, after="before", sees_residuals=True),
    Linear("residuals, not robust", "separate", FEATURES, sees_residuals=True, is_robust=False),
    Linear("phases", "pooled", FEATURES, 10.0, 0.9, by="phase", after="before"),
    Linear("days off", "pooled", FEATURES, 10.0, 0.9, by="phase, day off", after="before"),
    Linear("own phases", "separate", FEATURES, 10.0, 0.9, by="phase"),
    Linear("own days off", "separate", FEATURES, 10.0, 0.9, by="phase, day off"),
]


@pytest.mark.parametrize("member", MEMBERS, ids=lambda one: one.name)
def test_a_member_forecasts_as_filters_learned_by_hand(member):
    start, rounds = rounds_of_three()
    expected = by_hand(member, rounds)
    np.testing.assert_allclose(member.start(start).progressive(rounds), expected, rtol=1e-10, atol=1e-10)
    runner = member.start(start)
    for i in range(len(expected)):
        np.testing.assert_allclose(runner.forecast(rounds.one(i))[0], expected[i], rtol=1e-10, atol=1e-10)
        runner.learn(rounds.one(i))


def test_last_residuals_stand_in_the_order_that_saved_filters_rely_on():
    start, rounds = rounds_of_three()
    y = rounds.y
    expected = [
        [[residual_of(y, 0.0 * y, i - lag, stream) for stream in (t, *ALIKE[t]) for lag in (1, 2)] for t in range(3)]
        for i in range(len(y))
    ]
    np.testing.assert_array_equal(MEMBERS[6].start(start)._last_residuals(y), expected)


# The weights at the start, and from one head to the next -------------------------------------------------------------


@pytest.mark.parametrize(("rounds", "head"), [(10, 0), (20, 20), (60, 20), (110, 100), (260, 200)])
def test_learners_together_start_with_a_share_that_grows_with_the_rounds(rounds, head):
    share = head / (head + 150)
    times, values, tasks = walks(rounds)
    engine = AutoEngine(FEW)
    engine.advance(times, values, tasks)
    prior = dict(zip(engine.ensemble.names, engine.ensemble.mixture.prior, strict=True))
    learners = [prior.pop(name) for name in ("own past", "tied") if name in prior]
    assert len(learners) == (2 if share else 0)
    np.testing.assert_allclose(learners, 0.8 * share / 2, rtol=1e-12)
    each = 0.8 * (1.0 - share) / len(prior)
    assert prior.pop("no change") == pytest.approx(0.2 + each)
    np.testing.assert_allclose(list(prior.values()), each, rtol=1e-12)


@pytest.mark.parametrize("sharing", [True, False])
def test_weights_go_on_over_a_head_and_errors_stay_as_large_in_the_user_s_units(monkeypatch, sharing):
    times, values, tasks = walks(210, 4)
    values[100:] *= 5.0
    take, seen = Ensemble._take_weights, []

    def caught(self, before):
        take(self, before)
        new, old, n = self.mixture, before.mixture, before.n_streams
        seen.append((n, self.n_streams))
        units = [one.views[0].units.scale[:n] for one in (self, before)]
        assert (units[0] != units[1]).all()
        expected = np.sqrt(old.errors[:2]) * units[1]
        np.testing.assert_allclose(np.sqrt(new.errors[:2, :n]) * units[0], expected, rtol=1e-12)
        np.testing.assert_array_equal(new.errors[2, :n], old.errors[2])
        assert (new.errors[:2, n:] == 1.0).all()
        assert not new.errors[2, n:].any()
        for t in range(self.n_streams):
            newcomer = old.regrets[:, -1] if sharing else fresh_regrets(1, len(old.prior))[:, 0]
            np.testing.assert_array_equal(new.regrets[:, t], old.regrets[:, t] if t < n else newcomer)
        np.testing.assert_array_equal(new.regrets[:, -1], old.regrets[:, -1])
        np.testing.assert_array_equal(new.totals, old.totals)

    monkeypatch.setattr(Ensemble, "_take_weights", caught)
    AutoEngine(Auto(FEW.members, sharing=sharing)).advance(times, late(values)[:, :3], tasks[:3])
    assert seen == [(2, 3), (3, 3)]  # after 100 and 200 rounds; the members came after 20


# Scores, and what else is known --------------------------------------------------------------------------------------


def catch(monkeypatch):
    """A list that takes what each ensemble is given and makes, apart from the rounds that are learned again."""
    advance, caught = Ensemble.advance, []

    def catching(self, rounds, **again):
        if again:
            return advance(self, rounds, **again)
        made = advance(self, rounds)
        caught.append((self.sharing, rounds, made, self.views[0].units.scale.copy()))
        return made

    monkeypatch.setattr(Ensemble, "advance", catching)
    return caught


@pytest.mark.parametrize("bounds", [(None, None), (2.0, 9.0)], ids=["free", "bounded"])
def test_the_record_holds_the_errors_of_all_contenders_in_constant_units(monkeypatch, bounds):
    times, values, tasks = walks(300, 4, missing=0.05)
    values = late(values)[:, [2, 0, 1, 3]] * [1.0, 1.0, 1.0, 3.0]  # the first column comes second to last
    values[120:] = values[120:] * 4.0 - 10.0  # other units at the next head
    low, high = (-np.inf, np.inf) if bounds[0] is None else bounds
    caught = catch(monkeypatch)
    engine = AutoEngine(Auto(FEW.members, low=bounds[0], high=bounds[1], compares=True))
    made = engine.advance(times, values, tasks)
    comes = 209 + int(np.flatnonzero(np.cumsum(~np.isnan(values[209:, 3])) == 20)[0]) + 1  # with its 20th value
    since = [100, 20, 20, comes]  # scored; their units are measured on the rounds before
    scale = [Units.measure(values[:r, [t]]).scale[0] for t, r in enumerate(since)]
    np.testing.assert_allclose(engine.record.scale, scale, rtol=1e-12)
    expected, counts = {name: np.zeros(4) for name in engine.record.contenders}, np.zeros(4)

    def add(name, row, t, forecast):
        expected[name][t] += ((values[row, t] - min(max(forecast, low), high)) / scale[t]) ** 2

    for time, t, forecast in zip(made.times, made.places, made.forecast, strict=True):
        row = int((time - times[0]).astype("timedelta64[D]").astype(int))
        if row >= since[t]:
            counts[t] += 1
            add("model", row, t, forecast)
    first = {True: 5, False: 5}
    for sharing, rounds, pieces, units in caught:
        for i in range(len(rounds.stamps)):
            row = first[sharing] + i
            for place, t in enumerate(engine.places[: rounds.values.shape[1]]):
                if row < since[t] or np.isnan(values[row, t]):
                    continue
                if not sharing:
                    add("without sharing", row, t, pieces.forecast[i, place])
                    continue
                last = next(value for value in values[row - 1 :: -1, t] if not np.isnan(value))
                for name, change in zip(engine.ensemble.names, pieces.members[i, place], strict=True):
                    add(name, row, t, last + (0.0 if np.isnan(change) else change) * units[place])
        first[sharing] += len(rounds.stamps)
    assert first == {True: 300, False: 300}
    assert engine.record.rounds == 280
    np.testing.assert_array_equal(engine.record.counts, counts)
    for k, name in enumerate(engine.record.contenders):
        np.testing.assert_allclose(engine.record.squares[:, k], expected[name], rtol=1e-9, err_msg=name)


def test_forecasts_use_the_last_known_extras_of_the_rounds_before(monkeypatch):
    times, values, tasks = walks(120, 3)
    rng = np.random.default_rng(1)
    extras = 30.0 + 7.0 * rng.normal(size=(120, 3, 2))
    extras[rng.random(extras.shape) < 0.2] = np.nan
    extras[30, 1] = 1e4  # is clipped
    caught = catch(monkeypatch)
    engine = AutoEngine(FEW, n_extras=2)
    engine.advance(times, values, tasks, extras)
    known, last = np.full(extras.shape, np.nan), np.full((3, 2), np.nan)
    for row in range(120):
        known[row] = last
        last = np.where(np.isnan(extras[row]), last, extras[row])
    row = 5
    for _, rounds, _, _ in caught:
        head = known[: max(h for h in (5, 20, 100) if h <= row)].reshape(-1, 2)
        for given in rounds.given:
            expected = (known[row] - np.nanmean(head, axis=0)) / np.nanstd(head, axis=0)
            np.testing.assert_allclose(given, np.clip(np.nan_to_num(expected), -10.0, 10.0), rtol=1e-9, atol=1e-9)
            row += 1
    assert row == 120
