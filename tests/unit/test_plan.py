"""What is known ahead: a slow twin of how it is found, and that forecasts use all of it and nothing further ahead."""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

import braided as bd
from braided._compiled.delayed import delayed_inplace
from braided.errors import FileError, InputError
from braided.forecasting import Plan, joined
from braided.forecasting.auto import Auto, AutoEngine, Linear
from braided.forecasting.plan import ROUNDS_KEPT_AHEAD, ROWS_AHEAD, Planned
from braided.report import in_words
from braided.state import dumps, loads
from tests.auto import OWN, TIED, in_pieces, same, times_of

H = 5
TIED_AHEAD = replace(TIED, looks_ahead=True)
MEMBERS = (OWN, Linear("sees the plan", "separate", (*OWN.features, "planned"), 10.0), TIED_AHEAD)


def promoted(rounds=260, streams=3, seed=0, by="level"):
    """Times, values, names and promotions (rounds, streams, 1); these move the level, or its changes."""
    rng = np.random.default_rng(seed)
    plan = (rng.random((rounds, streams)) < 0.3).astype(float)
    surprises = rng.normal(size=(rounds, streams))
    moves = plan if by == "level" else (plan - 0.3).cumsum(axis=0)
    values = 50.0 + surprises.cumsum(axis=0) + rng.uniform(2.0, 6.0, streams) * moves
    return times_of("daily", rounds), values, tuple(f"s{k}" for k in range(streams)), plan[:, :, None]


def engine(horizon=H, n_known=1, n_extras=None, **settings):
    auto = Auto(MEMBERS, horizon=horizon, **settings)
    return AutoEngine(auto, n_extras=n_known if n_extras is None else n_extras, n_known=n_known)


# The plan -----------------------------------------------------------------------------------------------------------


@st.composite
def plans(draw):
    stamps = sorted(draw(st.sets(st.integers(-30, 60), max_size=12)))
    return Plan(("a",), np.array(stamps, np.int64), np.array(stamps, float).reshape(-1, 1, 1))


@given(
    plans(),
    st.lists(st.tuples(st.integers(-30, 60), st.integers(1, 9)), min_size=1),
    st.integers(1, 6),
    st.integers(1, 9),
)
def test_rows_are_those_near_the_rounds_expected_and_none_further_ahead(plan, rounds, n_ahead, step):
    nows, gaps = np.array(rounds).T
    expected = nows[:, None] + step * np.arange(n_ahead)
    found = plan.rows_of(nows - gaps, expected, step)
    for i, now in enumerate(nows):
        since = max(now - gaps[i] + 1, now - step // 2)
        among = [row for row, stamp in enumerate(plan.stamps) if stamp >= since][: ROWS_AHEAD * n_ahead]
        for h in range(n_ahead):
            distances = {row: abs(int(plan.stamps[row]) - int(expected[i, h])) for row in among}
            near = min(distances.values(), default=step) <= step // 2
            if near:
                assert distances[found[i, h]] == min(distances.values())
            else:
                assert found[i, h] == len(plan.stamps)


@given(st.data())
def test_a_plan_built_in_pieces_equals_a_dictionary(data):
    plan, known = Plan.none(2), {}
    for _ in range(data.draw(st.integers(1, 4))):
        tasks = data.draw(st.lists(st.sampled_from("abc"), unique=True, min_size=1))
        stamps = np.array(sorted(data.draw(st.sets(st.integers(0, 6), min_size=1))), np.int64)
        number = st.one_of(st.floats(-9.0, 9.0), st.just(np.nan))
        cells = data.draw(st.lists(number, min_size=(n := len(stamps) * len(tasks) * 2), max_size=n))
        values = np.reshape(cells, (len(stamps), len(tasks), 2))
        plan = plan.with_rows(tasks, stamps, values)
        for place in np.ndindex(values.shape):
            if not np.isnan(values[place]):
                known[int(stamps[place[0]]), tasks[place[1]], place[2]] = values[place]
    table = plan.table(["c", "b", "a", "never seen"])
    assert np.isnan(table[-1]).all()
    assert np.isnan(table[:, -1]).all()
    for row, task, column in np.ndindex(len(plan.stamps), 3, 2):
        wanted = known.get((int(plan.stamps[row]), "cba"[task], column), np.nan)
        np.testing.assert_equal(table[row, task, column], wanted)


def test_features_of_later_rounds_are_the_target_the_last_round_and_the_sum_up_to_the_target():
    rng = np.random.default_rng(0)
    m, n, T, P, n_ahead = 9, 4, 3, 2, 4
    table = np.concatenate([rng.normal(size=(m, T, P)), np.full((1, T, P), np.nan)])
    table[3, 1, 0] = np.nan
    rows, before, flags = (
        rng.integers(0, m + 1, (n, n_ahead)),
        rng.normal(size=(n, T, P)),
        rng.random((n, n_ahead + 1, 1)),
    )
    planned = Planned(table, rows, before, flags)
    made = planned.later_features()
    assert made.shape == (n_ahead - 1, n, T, 3 * (P + 1))
    for k, i, t in np.ndindex(made.shape[:3]):
        steps = [np.append(table[rows[i, h], t], flags[i, 1 + h]) for h in range(k + 2)]
        wanted = [*steps[-1], *before[i, t], flags[i, 0, 0], *np.nansum(steps, axis=0)]
        np.testing.assert_allclose(made[k, i, t], wanted, rtol=1e-14)
    lacks = [[[np.isnan(table[rows[i, h], t]).any() for t in range(T)] for i in range(n)] for h in range(n_ahead)]
    np.testing.assert_array_equal(planned.is_known, ~np.array(lacks)[0])
    assert planned.unknown[0].tolist() == np.sum(lacks, axis=(1, 2)).tolist()
    columns = [[np.isnan(table[rows[:, h]][:, :, p]).sum() for h in range(n_ahead)] for p in range(P)]
    assert planned.unknown[1:].tolist() == columns


def test_a_plan_far_ahead_is_forgotten():
    times, values, tasks, plan = promoted(30)
    forecaster = engine()
    forecaster.advance(times, values, tasks, plan)
    later = times[-1] + np.arange(1, ROUNDS_KEPT_AHEAD + 500)
    nothing = np.full((len(later), len(tasks)), np.nan)
    for _ in range(3):
        forecaster.advance(later, nothing, tasks, np.ones((*nothing.shape, 1)))
        forecaster.learn_known_ahead(later, np.ones((*nothing.shape, 1)), tasks)
    assert len(forecaster.plan.stamps) <= ROUNDS_KEPT_AHEAD + 30
    assert forecaster.rounds == 30


# Forecasts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["level", "changes"])
def test_the_error_is_nearly_that_of_the_true_model(by):
    rounds, streams, horizon = 1200, 6, 4
    times, values, tasks, plan = promoted(rounds, streams, by=by)
    made = AutoEngine(Auto(horizon=horizon, seasons=()), n_extras=1, n_known=1).advance(times, values, tasks, plan)
    rng = np.random.default_rng(0)
    rng.random((rounds, streams))
    surprises, first = rng.normal(size=(rounds, streams)), rounds // 5
    for h in range(1, horizon + 1):
        scored = (made.horizons == h) & (made.times >= times[first])
        error = np.sqrt(np.mean((made.actual[scored] - made.forecast[scored]) ** 2))
        sums = np.lib.stride_tricks.sliding_window_view(surprises, h, axis=0).sum(axis=-1)
        assert error < 1.05 * np.sqrt(np.mean(sums[first - h + 1 :] ** 2)), h


@pytest.mark.parametrize("moved", [40, 150, 240])
def test_nothing_further_ahead_than_the_horizon_is_used(moved):
    times, values, tasks, plan = promoted()
    other = plan.copy()
    other[moved:] = 1.0 - other[moved:]
    made, again = (engine().advance(times, values, tasks, one) for one in (plan, other))
    known = made.times < times[moved]  # h rounds ahead of a round, what is known of it is
    same(*(part_of(one, known) for one in (made, again)))
    changed = made.forecast != again.forecast
    assert {*made.horizons[changed].tolist()} == {*range(1, H + 1)}
    # What was forecast of a round before its plan was moved must not follow values that came later, either.
    values = values.copy()
    values[moved:] += 100.0
    shifted = engine().advance(times, values, tasks, plan)
    origin = np.searchsorted(times, made.times) - made.horizons
    same(*(part_of(one, origin < moved - 1, without=("actual",)) for one in (made, shifted)))


def part_of(made, which, without=()):
    kept = {name: getattr(made, name)[which] for name in made._fields if name not in ("names", "levels")}
    return made._replace(**kept | {name: np.zeros(which.sum()) for name in without})


@pytest.mark.parametrize("cuts", [[30, 31, 32], [104, 199, 203], range(1, 260, 7)], ids=str)
@pytest.mark.parametrize("saves", [False, True])
def test_cut_anywhere_forecasts_are_the_same_to_the_bit_if_the_plan_comes_in_time(cuts, saves):
    times, values, tasks, plan = promoted()
    values[40:44] = np.nan
    values[220, 1:] = np.nan
    plan[100:110, 0] = np.nan
    whole = engine()
    made = whole.advance(times, values, tasks, plan)
    pieces, forecaster = [], engine()
    for part in np.split(np.arange(len(times)), cuts):
        later = slice(part[-1] + 1, part[-1] + H)
        forecaster.learn_known_ahead(times[later], plan[later], tasks)
        pieces.append(forecaster.advance(times[part], values[part], tasks, plan[part]))
        forecaster = loads(dumps(forecaster)) if saves else forecaster
    same(made, joined(pieces))
    same(forecaster.ahead(), whole.ahead())


def test_where_nothing_is_known_the_members_without_a_plan_forecast():
    times, values, tasks, plan = promoted()
    told, untold = engine(), engine()
    made = told.advance(times, values, tasks, plan)
    without = untold.advance(times, values, tasks, np.full_like(plan, np.nan))
    plain = AutoEngine(Auto((OWN, TIED_AHEAD), horizon=H)).advance(times, values, tasks)
    scored = made.times > times[100]
    assert np.isfinite(without.forecast).all()
    errors = [np.mean((one.actual - one.forecast)[scored] ** 2) for one in (made, without, plain)]
    assert errors[0] < 0.7 * errors[1]
    assert errors[1] == pytest.approx(errors[2], rel=0.05)  # a member that never forecasts has had a weight
    assert (untold.unplanned == untold.unplanned[2]).all()
    assert told.unplanned[0, 0] == 0 < told.unplanned[0, 1]
    np.testing.assert_array_equal(loads(dumps(told)).unplanned, told.unplanned)
    said = "“column 1” was not known for 100.0 % 1 round ahead and 100.0 % 5 rounds ahead"
    assert said in "\n".join(in_words(untold))
    assert "was not known" not in "\n".join(in_words(told))
    told.forget_record()
    assert not told.unplanned.any()


def test_a_regressor_forecasts_with_the_plan_and_not_without():
    times, values, tasks, plan = promoted()
    rules = Auto((bd.Refit(Ridge(10.0, random_state=0), every=50),), horizon=H, sharing=True)
    told = AutoEngine(rules, n_extras=1, n_known=1)
    made = told.advance(times[:-1], values[:-1], tasks, plan[:-1])
    blind = AutoEngine(rules).advance(times[:-1], values[:-1], tasks)
    for h in range(1, H + 1):
        scored = (made.times > times[100]) & (made.horizons == h)
        errors = [np.mean((one.actual - one.forecast)[scored] ** 2) for one in (made, blind)]
        assert errors[0] < 0.9 * errors[1], h
    without = told.ahead()
    told.learn_known_ahead(times[-1:], plan[-1:], tasks)
    told_one = told.ahead()
    is_next = without.horizons == 1
    assert (without.forecast[is_next] != told_one.forecast[is_next]).all()
    np.testing.assert_array_equal(without.forecast[~is_next], told_one.forecast[~is_next])  # nothing is known of these


def test_what_was_told_ahead_need_not_be_told_again():
    times, values, tasks, plan = promoted()
    whole, told, nothing = engine(), engine(), np.full_like(plan, np.nan)
    made = whole.advance(times, values, tasks, plan)
    told.learn_known_ahead(times, plan, tasks)
    parts = np.split(np.arange(len(times)), [100, 141, 200])
    same(made, joined([told.advance(times[part], values[part], tasks, nothing[part]) for part in parts]))
    same(whole.ahead(), told.ahead())


@pytest.mark.parametrize("missing", [np.s_[-1], np.s_[-1, 1]], ids=["all streams", "one stream"])
def test_a_round_is_forecast_the_same_before_and_as_it_comes(missing):
    times, values, tasks, plan = promoted()
    plan[missing] = np.nan
    forecaster = engine()
    forecaster.advance(times[:-1], values[:-1], tasks, plan[:-1])
    forecaster.learn_known_ahead(times[-1:], plan[-1:], tasks)
    ahead = forecaster.ahead()
    made = forecaster.advance(times[-1:], values[-1:], tasks, plan[-1:])
    np.testing.assert_array_equal(ahead.forecast[ahead.horizons == 1], made.forecast[made.horizons == 1])


def test_rows_of_days_that_never_come_take_no_place():
    times, values, tasks, plan = promoted(300)
    is_open = times.astype("datetime64[D]").astype(int) % 7 != 3  # closed on Sundays
    closed = np.where(is_open[:, None], values, np.nan)
    without = engine().advance(times[is_open], values[is_open], tasks, plan[is_open])
    same(engine().advance(times, closed, tasks, plan), without)


def test_rounds_closer_than_half_a_step_are_cut_like_others():
    _, values, tasks, plan = promoted(300)
    times = np.arange(300) * 10
    times[220:] -= 6
    whole, cut, pieces = engine(), engine(), []
    for part in np.split(np.arange(300), [220]):
        later = slice(part[-1] + 1, part[-1] + 1 + 2 * H)
        cut.learn_known_ahead(times[later], plan[later], tasks)
        pieces.append(cut.advance(times[part], values[part], tasks, plan[part]))
    same(whole.advance(times, values, tasks, plan), joined(pieces))


def test_a_wild_price_is_clipped():
    times, values, tasks, plan = promoted()
    one, other = plan.copy(), plan.copy()
    one[230], other[230] = 1e6, 1e12
    same(engine().advance(times, values, tasks, one), engine().advance(times, values, tasks, other))


def test_effects_learn_what_their_base_did_not_forecast_when_it_forecast(monkeypatch):
    """Each change less the forecast that the base made of it, k + 1 rounds before."""
    times, values, tasks, plan = promoted(140)
    caught = []

    def catch(filters, X, which, changes, *others):
        caught.append(changes.copy())
        return delayed_inplace(filters, X, which, changes, *others)

    forecaster = engine(seasons=())
    forecaster.learn_known_ahead(times, plan, tasks)
    forecaster.advance(times[:110], values[:110], tasks, plan[:110])
    monkeypatch.setattr("braided.forecasting.auto.horizons.delayed_inplace", catch)
    horizons = forecaster.ensemble.horizons
    assert horizons.base == "tied"
    bases, place, learned = [], horizons.followed.index("tied"), 0
    for i in range(110, 140):
        caught.clear()
        forecaster.advance(times[i : i + 1], values[i : i + 1], tasks, plan[i : i + 1])
        bases.append(horizons.forecasts[:, -1, :, place].copy())
        changes = {one.name: made[:, 0] for one, made in zip(horizons.members, caught, strict=True)}
        for k in range(horizons.n if i > 110 + H else 0):
            expected = changes["target"][k] - bases[-2 - k][k]
            known = ~np.isnan(changes["effects"][k])
            np.testing.assert_array_equal(changes["effects"][k][known], expected[known])
            learned += known.sum()
    assert learned > 200


def test_the_message_counts_forecasts_without_a_plan():
    times, values, tasks, plan = promoted()
    forecaster = engine()
    forecaster.advance(times[:-3], values[:-3], tasks, plan[:-3])
    assert "not known for 15 of 15 forecasts, the first of them 1 round ahead" in forecaster.plan_in_words()
    forecaster.learn_known_ahead(times[-3:], plan[-3:], tasks)
    assert "not known for 6 of 15 forecasts, the first of them 4 rounds ahead" in forecaster.plan_in_words()
    one_more = times[-1:] + 1
    forecaster.learn_known_ahead(np.append(one_more, one_more + 1), plan[:2], tasks)
    assert forecaster.plan_in_words() == ""
    assert engine().plan_in_words() == ""


def test_the_plan_is_used_and_may_be_corrected():
    times, values, tasks, plan = promoted()
    forecaster = engine()
    forecaster.advance(times[:-H], values[:-H], tasks, plan[:-H])
    forecaster.learn_known_ahead(times[-H:], 1.0 - plan[-H:], tasks)
    wrong = forecaster.ahead()
    forecaster.learn_known_ahead(times[-H:], plan[-H:], tasks)
    right = forecaster.ahead()
    assert (wrong.forecast != right.forecast).all()
    in_rows = engine()
    nothing = np.full_like(values[-H:], np.nan)
    in_rows.advance(times, np.concatenate([values[:-H], nothing]), tasks, plan)
    same(in_rows.ahead(), right)
    assert in_rows.rounds == len(times) - H
    whole = engine()
    made = whole.advance(times, values, tasks, plan)
    later = [made.forecast[(made.horizons == h) & (made.times == times[-H + h - 1])] for h in range(1, H + 1)]
    np.testing.assert_array_equal(np.concatenate(later), right.forecast)


def test_streams_that_join_late_have_a_plan():
    times, values, tasks, plan = promoted(320, 4)
    values[:230, 3] = np.nan
    forecaster = engine()
    made = forecaster.advance(times, values, tasks, plan)
    assert forecaster.latecomers == ["s3"]
    late = (made.places == 3) & (made.times > times[300])
    assert np.isfinite(made.forecast[late]).all()
    same(
        in_pieces(engine(horizon=1), times, values, tasks, [230, 240, 290], plan, saves=True)[1],
        engine(horizon=1).advance(times, values, tasks, plan),
    )


def test_plans_of_other_columns_are_refused():
    times, values, tasks, plan = promoted(30)
    forecaster = engine()
    forecaster.advance(times[:20], values[:20], tasks, plan[:20])
    before = dumps(forecaster)
    for wrong, said in (
        ((times[20:], plan[20:, :2], tasks), r"known has shape \(10, 2, 1\)"),
        ((times[20:], np.full_like(plan[20:], np.inf), tasks), r"known\[0, 0, 0\] is inf"),
        ((times[:2], plan[:2], tasks), "not after"),
    ):
        with pytest.raises(InputError, match=said):
            forecaster.learn_known_ahead(*wrong)
    assert dumps(forecaster) == before
    with pytest.raises(InputError, match="no columns that are known ahead"):
        AutoEngine(Auto()).learn_known_ahead(times, plan, tasks)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda engine: setattr(engine, "plan", Plan.none(2)),
        lambda engine: setattr(engine, "_n_extras", 3),
        lambda engine: setattr(engine.ensemble, "n_planned", 0),
        lambda engine: setattr(engine, "unplanned", np.zeros((3, H + 1), np.int64)),
        lambda engine: setattr(engine.ensemble.horizons, "plan", engine.ensemble.horizons.plan[1:]),
        lambda engine: engine.plan.stamps.__setitem__(0, 2**62),
        lambda engine: engine.plan.values.__setitem__(0, np.inf),
    ],
)
def test_a_file_whose_plan_does_not_fit_is_refused(spoil):
    times, values, tasks, plan = promoted(60)
    forecaster = engine()
    forecaster.advance(times[:50], values[:50], tasks, plan[:50])
    forecaster.learn_known_ahead(times[50:], plan[50:], tasks)
    loads(dumps(forecaster))
    spoil(forecaster)
    with pytest.raises(FileError):
        loads(dumps(forecaster))


# The front door -----------------------------------------------------------------------------------------------------


def test_known_ahead_in_the_front_door(tmp_path):
    times, values, tasks, plan = promoted()
    forecaster = bd.Forecaster(horizon=H, known="promotion", members=MEMBERS)
    made = forecaster.update(times[:-H], values[:-H], tasks, known=plan[:-H, :, 0])
    same(made, engine().advance(times[:-H], values[:-H], tasks, plan[:-H]))
    with pytest.warns(UserWarning, match="'promotion': not known for 15 of 15 forecasts"):
        blind = forecaster.forecast()
    told = forecaster.forecast(times[-H:], plan[-H:], tasks)
    assert (blind.forecast != told.forecast).any()
    same(forecaster.forecast(), told)  # the plan is remembered
    what_if = forecaster.forecast(times[-1:], 1.0 - plan[-1:], tasks)
    assert (what_if.forecast != told.forecast).any()
    same(forecaster.forecast(times[-1:], plan[-1:], tasks), told)
    forecaster.save(tmp_path / "m.braided")
    loaded = bd.Forecaster.load(tmp_path / "m.braided")
    same(loaded.forecast(times[-H:], plan[-H:], tasks), told)
    rows, columns = np.indices(values.shape)
    long = bd.Forecaster(horizon=H, known=["promotion"], members=MEMBERS)
    table = values.copy()
    table[-H:] = np.nan
    names = np.array(tasks)[columns.ravel()]
    long.update(times[rows.ravel()], table.ravel(), names, known=plan[:, :, 0].ravel())
    same(long.forecast(), told)


def test_known_ahead_is_refused_where_it_has_no_meaning():
    times, values, tasks, plan = promoted(30)
    with pytest.raises(InputError, match="only Auto uses what is known ahead, here promotion"):
        bd.Forecaster(known="promotion", method="mt-wrls")
    with pytest.raises(InputError, match=r"known has shape \(30, 3, 1\): with 2 names in Forecaster"):
        bd.Forecaster(known=["price", "promotion"]).update(times, values, tasks, known=plan)
    for names in (5, [5], "", ["price", "price"]):
        with pytest.raises(InputError, match="give the name of each column that is known ahead, once"):
            bd.Forecaster(known=names)
    with pytest.raises(InputError, match="known has no names"):
        bd.Forecaster().update(times, values, tasks, known=plan)
    forecaster = bd.Forecaster(known="promotion")
    forecaster.update(times, values, tasks, known=plan)
    with pytest.raises(InputError, match="times and known belong together"):
        forecaster.forecast(known=plan)
    later = [datetime(2024, 2, 1, tzinfo=UTC)]
    with pytest.raises(InputError, match="with and without UTC offsets are mixed"):
        forecaster.forecast(later, plan[:1], tasks)
