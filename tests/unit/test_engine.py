"""The forecaster: what it makes of streams, however they arrive."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest

import braided as bd
from braided.forecasting import Clock, LearnerEngine, Preparation, Record, Units, joined
from braided.forecasting.clock import as_stamps
from braided.state import dumps, loads
from tests.reference.forecasting import obvious_forecasts

STEP = 10


def streams(seed=0, rounds=200, n_tasks=4, missing=0.03, gaps=True):
    """Times, values of different size per task, tasks."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(rounds, 1)).cumsum(axis=0)
    values = (common + rng.normal(size=(rounds, n_tasks))) * 10.0 ** np.arange(n_tasks) + 100.0
    values[rng.uniform(size=values.shape) < missing] = np.nan
    times = np.arange(rounds) * STEP
    if gaps:
        times[70:] += 35
        times[120:] += 5  # not yet a gap
        values[90] = np.nan
    return times, values, tuple(f"task {k}" for k in range(n_tasks))


def make(values, tasks, lags=None, learner=None, single=True, k=None, **prepared):
    lags = lags or bd.Lags(3, neighbours=2, gap=True, fill=True)
    graph = bd.TaskGraph.from_history(values[:60], tasks, k=k)
    learner = learner(graph) if learner else bd.MTWRLS(graph, lags.n_features, 10.0, bd.Exponential(0.99, per="round"))
    alone = bd.WRLS(tasks, lags.n_own + 1, 10.0) if single else None
    preparation = Preparation(lags, graph, Units.measure(values[:60]), clock=Clock(STEP, STEP), **prepared)
    return LearnerEngine(learner, preparation, single=alone)


@pytest.mark.parametrize(
    "lags",
    [
        bd.Lags(3),
        bd.Lags(1, bias=False),
        bd.Lags(2, neighbours=3, gap=True),
        bd.Lags(2, neighbours=3, gap=True, fill=True),
        bd.Lags(2, neighbours=1, gap=True, fill=True, level=True),
    ],
    ids=repr,
)
def test_forecasts_are_those_of_the_loop(lags):
    times, values, tasks = streams()
    forecaster = make(values, tasks, lags)
    expected = obvious_forecasts(
        make(values, tasks, lags).learner, lags, forecaster.graph, forecaster.units, times, values, STEP
    )
    made = forecaster.advance(times, values, tasks)
    rows, places, forecasts = (np.array(column) for column in zip(*expected, strict=True))
    np.testing.assert_array_equal(made.times, times[rows])
    np.testing.assert_array_equal(made.places, places)
    np.testing.assert_allclose(made.forecast, forecasts, rtol=1e-10)
    np.testing.assert_array_equal(made.actual, values[rows, places])
    assert (forecaster.gaps, forecaster.irregular) == (1, 1)
    assert forecaster.first_stamp == times[0]
    assert forecaster.absent == np.isnan(values).sum()
    assert forecaster.unforecast == (~np.isnan(values)).sum() - len(rows)


@pytest.mark.parametrize("level", [False, True])
def test_one_filter_per_stream_sees_the_same_of_its_past_and_nothing_of_others(level):
    times, values, tasks = streams()
    forecaster = make(values, tasks, bd.Lags(2, neighbours=3, gap=True, fill=True, level=level))
    forecaster.advance(times, values, tasks)
    own = bd.Lags(2, fill=True, level=level)
    alone = make(values, tasks, own, lambda _: bd.WRLS(tasks, own.n_features, 10.0), single=False)
    alone.advance(times, values, tasks)
    np.testing.assert_array_equal(forecaster.record.rmse_of("single"), alone.record.rmse_of("model"))


def same(a, b):
    for one, other in zip(a, b, strict=True):
        np.testing.assert_array_equal(one, other)


def pieces(forecaster, times, values, tasks, cuts):
    made = [
        forecaster.advance(times[a:b], values[a:b], tasks) for a, b in zip([0, *cuts], [*cuts, len(times)], strict=True)
    ]
    return joined(made)


@pytest.mark.parametrize("cuts", [[1, 2, 3, 50], [100], list(range(1, 200)), [70, 71, 90, 91]], ids=str)
def test_pieces_give_the_same_bits(cuts):
    times, values, tasks = streams()
    late = values.copy()
    late[:40, 3] = np.nan  # joins late
    whole, cut = make(values[:, :3], tasks[:3]), make(values[:, :3], tasks[:3])
    same(whole.advance(times, late, tasks), pieces(cut, times, late, tasks, cuts))
    same(whole.ahead(), cut.ahead())
    assert whole.tasks == tasks
    np.testing.assert_allclose(whole.record.squares, cut.record.squares, rtol=1e-12)
    np.testing.assert_array_equal(whole.record.covered, cut.record.covered)
    np.testing.assert_allclose(whole.record.curve, cut.record.curve, rtol=1e-12, atol=1e-12)


def test_the_next_round_is_forecast_as_it_will_be():
    times, values, tasks = streams()
    ahead, whole = make(values, tasks), make(values, tasks)
    ahead.advance(times[:150], values[:150], tasks)
    made = ahead.ahead()
    later = whole.advance(times[:151], values[:151], tasks)
    at_150 = later.times == times[150]
    shown = {task: place for place, task in enumerate(made.tasks)}
    for task, forecast, low, high in zip(
        np.array(later.tasks)[at_150], later.forecast[at_150], later.low[at_150], later.high[at_150], strict=True
    ):
        assert (made.forecast[shown[task]], made.low[shown[task]], made.high[shown[task]]) == (forecast, low, high)
    assert made.times[0] == times[149] + STEP
    assert np.isnan(made.actual).all()


def tied_to_few(graph):
    return bd.MTWRLS(graph, 7, 10.0, bd.Exponential(0.99, per="round"), robust=4.0, solver="local")


@pytest.mark.parametrize("kind", [{}, {"k": 1, "learner": tied_to_few}], ids=["all tied", "tied to few"])
def test_saved_and_loaded_it_goes_on_to_the_bit(kind, tmp_path):
    times, values, tasks = streams()
    values[:40, 3] = np.nan
    unbroken = make(values[:, :3], tasks[:3], **kind)
    expected = unbroken.advance(times, values, tasks)
    for cut in (10, 45, 55, 130):  # before the last task is seen, while it waits, after it has joined
        model = make(values[:, :3], tasks[:3], **kind)
        model.advance(times[:cut], values[:cut], tasks)
        bd.save(model, tmp_path / "model")
        again = bd.load(tmp_path / "model")
        assert repr(again) == repr(model)
        made = again.advance(times[cut:], values[cut:], tasks)
        for place in (0, 1, 3, 4, 5, 6):
            np.testing.assert_array_equal(made[place], expected[place][-len(made.times) :])
        np.testing.assert_allclose(again.record.squares, unbroken.record.squares, rtol=1e-12)


def test_dates_and_integers():
    times, values, tasks = streams(gaps=False)
    dates = np.datetime64("2024-01-01") + times.astype("timedelta64[m]")
    model = make(values, tasks)
    model.preparation.clock = Clock.measure(dates)
    assert model.preparation.clock.step == 10 * 60_000_000
    made = model.advance(dates, values, tasks)
    assert made.times.dtype == "datetime64[us]"
    assert model.ahead().times[0] == dates[-1] + np.timedelta64(10, "m")
    np.testing.assert_array_equal(make(values, tasks).advance(times, values, tasks).forecast, made.forecast)
    with pytest.raises(bd.InputError, match="those of the rounds before were dates"):
        model.advance(times + 10**6, values, tasks)


def test_a_task_joins_after_twenty_values_and_one_that_ends_is_no_longer_forecast():
    times, values, tasks = streams(missing=0.0, gaps=False)
    values[:100, 2] = np.nan
    values[150:, 0] = np.nan
    model = make(values[:, [0, 1, 3]], (tasks[0], tasks[1], tasks[3]))
    model.advance(times[:119], values[:119], tasks)
    assert tasks[2] not in model.tasks
    made = model.advance(times[119:], values[119:], tasks)
    assert model.tasks == (tasks[0], tasks[1], tasks[3], tasks[2])
    first = made.times[np.array(made.tasks) == tasks[2]]
    assert first[0] == times[120]
    assert made.times[np.array(made.tasks) == tasks[0]].max() == times[149]
    assert tasks[0] not in model.ahead().tasks
    alike = model.graph.neighbours(tasks[2])
    others = np.asarray(model.graph.similarity)[:3, :3]
    np.testing.assert_allclose(list(alike.values()), others.sum() / 6)


def test_on_a_sparse_graph_a_task_joins_as_many_as_others_have():
    rng = np.random.default_rng(6)
    values = rng.normal(size=(80, 12)).cumsum(axis=0)
    values[:30, 11] = np.nan
    tasks, lags = tuple(f"task {k}" for k in range(12)), bd.Lags(2, neighbours=1, gap=True, fill=True)
    graph = bd.TaskGraph.from_history(values[:60, :11], tasks[:11], k=2)
    learner = bd.MTWRLS(graph, lags.n_features, 10.0, solver="local")
    model = LearnerEngine(learner, Preparation(lags, graph, Units.measure(values[:60, :11])))
    model.advance(np.arange(80), values, tasks)
    assert model.tasks == model.graph.tasks == learner.tasks == tasks
    alike = model.graph.neighbours(tasks[11])
    assert len(alike) == -(-graph.similarity.nnz // 22)
    np.testing.assert_allclose(list(alike.values()), graph.similarity.sum() / graph.similarity.nnz)
    assert learner.graph.neighbours(tasks[11]) == alike
    assert tasks[11] in model.ahead().tasks


def test_a_sparse_graph_stays_as_sparse_however_many_join():
    rng = np.random.default_rng(7)
    values = rng.normal(size=(60, 1)).cumsum(axis=0) + rng.normal(size=(60, 200)).cumsum(axis=0)
    values[:30, 40:] = np.nan
    lags = bd.Lags(1)
    graph = bd.TaskGraph.from_history(values[:, :40], k=6)
    learner = bd.MTWRLS(graph, lags.n_features, solver="local")
    model = LearnerEngine(learner, Preparation(lags, graph, Units.measure(values[:, :40])))
    model.advance(np.arange(60), values, tuple(range(200)))
    assert model.graph.n_tasks == 200
    degrees, before = np.diff(model.graph.similarity.indptr), np.diff(graph.similarity.indptr)
    assert before.mean() - 1 < degrees.mean() < before.mean() + 2
    assert degrees.max() < 3 * before.max()
    assert degrees.min() >= 3
    pulls = [np.asarray(S.sum(axis=1)) for S in (graph.similarity, model.graph.similarity)]
    assert pulls[1].mean() == pytest.approx(pulls[0].mean(), rel=0.2)


def test_on_a_graph_without_links_a_task_joins_without():
    rng = np.random.default_rng(6)
    values = rng.normal(size=(80, 12)).cumsum(axis=0)
    values[:30, 11] = np.nan
    tasks, lags = tuple(f"task {k}" for k in range(12)), bd.Lags(2)
    alone = bd.TaskGraph.independent(tasks[:11])
    learner = bd.MTWRLS(alone, lags.n_features, solver="local")
    model = LearnerEngine(learner, Preparation(lags, alone, Units.measure(values[:60, :11])))
    model.advance(np.arange(80), values, tasks)
    assert model.graph.neighbours(tasks[11]) == {}


def test_further_features_are_those_known_before():
    rng = np.random.default_rng(3)
    n, T = 400, 3
    hint = rng.normal(size=(n, T, 1))
    values = np.zeros((n, T))
    for k in range(1, n):
        values[k] = values[k - 1] + hint[k - 1, :, 0] + 0.01 * rng.normal(size=T)
    tasks, lags = ("a", "b", "c"), bd.Lags(2)
    graph = bd.TaskGraph.pooled(tasks)
    units, scale = Units.measure(values[:100]), bd.Scale.fit(hint[:100].reshape(-1, 1))
    learner = bd.MTWRLS(graph, lags.n_features + 1, penalty=0.1)
    single = bd.WRLS(tasks, lags.count + 2, penalty=0.1)
    model = LearnerEngine(learner, Preparation(lags, graph, units, scale), single=single)
    made = model.advance(np.arange(n), values, tasks, hint)
    late = made.times > 100
    assert np.sqrt(np.mean((made.actual - made.forecast)[late] ** 2)) < 0.02
    for contender in ("model", "single"):
        assert (model.record.rmse_of(contender) < 0.3 * model.record.rmse_of("no change")).all()
    next_round = model.ahead()
    np.testing.assert_allclose(next_round.forecast, values[-1] + hint[-1, :, 0], atol=0.05)


def test_the_record_is_that_of_the_forecasts():
    times, values, tasks = streams()
    model = make(values, tasks)
    model.advance(times[:60], values[:60], tasks, record=False)
    assert not model.record.counts.any()
    made = model.advance(times[60:], values[60:], tasks)
    for t in range(len(tasks)):
        own = made.places == t
        error = made.actual[own] - made.forecast[own]
        rmse = np.sqrt(np.mean(error**2)) / model.units.scale[t]
        np.testing.assert_allclose(model.record.rmse_of("model")[t], rmse, rtol=1e-9)
        inside = (made.actual[own] >= made.low[own]) & (made.actual[own] <= made.high[own])
        assert model.record.covered[t] == inside.sum()
    rows = np.searchsorted(times, made.times)
    change = values[rows, made.places] - values[rows - 1, made.places]
    last = values[rows - 1, made.places] - values[rows - 2, made.places]
    last[times[rows - 1] - times[rows - 2] > 1.5 * STEP] = np.nan  # across a gap
    last = np.nan_to_num(last)  # a change that is not known counts as none
    for contender, errors in (("no change", change), ("last change", change - last)):
        squares = np.bincount(made.places, (errors / model.units.scale[made.places]) ** 2)
        np.testing.assert_allclose(model.record.rmse_of(contender), np.sqrt(squares / model.record.counts), rtol=1e-9)
    np.testing.assert_allclose(model.record.curve[:, 1:].sum(axis=0), model.record.squares.sum(axis=0), rtol=1e-12)


def test_the_single_filters_are_those_of_own_lags():
    times, values, tasks = streams(missing=0.0, gaps=False)
    shared, alone = (
        make(values, tasks),
        make(values, tasks, bd.Lags(3, fill=True), lambda _: bd.WRLS(tasks, 4, 10.0), single=False),
    )
    shared.advance(times, values, tasks)
    alone.advance(times, values, tasks)
    np.testing.assert_allclose(shared.record.rmse_of("single"), alone.record.rmse_of("model"), rtol=1e-10)
    np.testing.assert_array_equal(alone.record.rmse_of("single"), alone.record.rmse_of("model"))


@pytest.mark.parametrize("learner", [None, lambda g: bd.MOGD(g, 6, step=0.05)], ids=["deviations", "none"])
def test_intervals_hold_what_they_promise(learner):
    rng = np.random.default_rng(5)
    n, T = 5000, 3
    noise = rng.standard_t(3, size=(n, T)) * np.where(np.arange(n) < 2500, 1.0, 4.0)[:, None] * [1.0, 0.1, 10.0]
    values, tasks = noise.cumsum(axis=0), ("a", "b", "c")
    lags = bd.Lags(5)
    make_one = learner or (lambda g: bd.MTWRLS(g, 6, 1.0))
    graph = bd.TaskGraph.pooled(tasks)
    for coverage in (0.8, 0.95):
        preparation = Preparation(lags, graph, Units.measure(values[:500]))
        model = LearnerEngine(make_one(graph), preparation, coverage=coverage)
        model.advance(np.arange(500), values[:500], record=False)
        model.advance(np.arange(500, n), values[500:])
        np.testing.assert_allclose(model.record.covered / model.record.intervals, coverage, atol=0.015)


def test_a_learner_that_breaks_down_starts_afresh_and_is_counted():
    times, values, tasks = streams(missing=0.0, gaps=False, rounds=400)
    model = make(values, tasks, bd.Lags(3), lambda g: bd.MOGD(g, 4, step=30.0), single=False)
    made = model.advance(times, values, tasks)
    assert model.breakdowns > 0
    assert np.isfinite(made.forecast).all()
    assert len(made.forecast) == (400 - 4) * 4


def test_growth_is_learned_with_logarithms():
    rng = np.random.default_rng(0)
    growth = 0.05 + 0.01 * rng.normal(size=(200, 2))
    values, tasks = np.exp(growth.cumsum(axis=0)), ("a", "b")
    graph, lags = bd.TaskGraph.pooled(tasks), bd.Lags(2)
    units = Units.measure(values[:50], logarithm=True)
    model = LearnerEngine(bd.MTWRLS(graph, 3, 0.1), Preparation(lags, graph, units))
    made = model.advance(np.arange(200), values, tasks)
    late = made.times > 50
    assert np.abs(made.forecast / made.actual - 1.0)[late].mean() < 0.012
    assert (made.low[late] > 0.0).all()
    with pytest.raises(bd.InputError, match=r"values\[0, 1\] is -1: it has no logarithm"):
        model.advance([200], [[1.0, -1.0]])


def hand_made_rmse(made, values, contender, alone):
    """The RMSE of each task over the forecasts of a model, straight from the values; all steps are one long."""
    rows, places = made.times, made.places
    last, before = values[rows - 1, places], values[np.maximum(rows - 2, 0), places]
    change = np.where((rows < 2) | np.isnan(before), 0.0, last - before)  # one that is not known counts as none
    forecast = {"model": made.forecast, "single": alone.forecast, "no change": last, "last change": last + change}
    squares = (values[rows, places] - forecast[contender]) ** 2
    return np.sqrt(np.bincount(places, squares) / np.bincount(places))


@pytest.mark.parametrize("logarithm", [True, False])
def test_every_contender_is_scored_in_the_units_of_the_values(logarithm):
    rng = np.random.default_rng(4)
    steps = 0.02 * rng.normal(size=(160, 1)) + 0.05 * rng.normal(size=(160, 3))
    values, tasks = np.exp(steps.cumsum(axis=0)) * [1.0, 50.0, 3e4], ("a", "b", "late")
    values[rng.uniform(size=values.shape) < 0.05] = np.nan
    values[:40, 2] = np.nan
    lags, units = bd.Lags(3, fill=True), Units.measure(values[:50, :2], logarithm)

    def engine(learner, single):
        preparation = Preparation(lags, bd.TaskGraph.pooled(tasks[:2]), units)
        return LearnerEngine(learner, preparation, single=single)

    def filters():
        return bd.WRLS(tasks[:2], lags.n_features, 10.0)

    model = engine(bd.MTWRLS(bd.TaskGraph.pooled(tasks[:2]), lags.n_features, 5.0), filters())
    made, alone = (one.advance(np.arange(160), values, tasks) for one in (model, engine(filters(), None)))
    assert model.tasks == tasks
    for contender in model.record.contenders:
        rmse = model.record.rmse_of(contender) * model.record.scale
        np.testing.assert_allclose(rmse, hand_made_rmse(made, values, contender, alone), rtol=1e-9)
    np.testing.assert_array_equal(model.record.scale[:2], Units.measure(values[:50, :2]).scale)
    first = np.cumsum(~np.isnan(values[:, 2])) <= 20
    np.testing.assert_allclose(model.record.scale[2], Units.measure(values[first, 2:]).scale[0])
    inside = (made.low <= made.actual) & (made.actual <= made.high)
    np.testing.assert_array_equal(model.record.covered, np.bincount(made.places, inside))
    again = loads(dumps(model))
    np.testing.assert_array_equal(again.record.scale, model.record.scale)
    again.forget_record()
    np.testing.assert_array_equal(again.record.scale, model.record.scale)


REFUSED = [
    ({"times": [199 * STEP]}, "not after 1990: give each round once"),
    ({"times": ["soon"]}, "times holds .*soon.*: give dates or integers"),
    ({"times": [1.5]}, "give datetime64 or integers"),
    ({"times": [[1]]}, "give datetime64 or integers"),
    ({"values": [[1.0, 2.0]]}, "times, tasks and features say"),
    ({"values": [[1.0, 2.0, np.inf, 1.0]]}, r"values\[0, 2\] is inf: use NaN"),
    ({"extras": np.zeros((1, 4, 1))}, "extras has shape"),
    ({"tasks": ["a", "a", "b", "c"]}, "appears twice"),
]


@pytest.mark.parametrize(("change", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_what_is_refused_changes_nothing(change, message):
    times, values, tasks = streams(gaps=False)
    model = make(values, tasks)
    model.advance(times, values, tasks)
    before = dumps(model)
    good = {"times": [2000], "values": [[1.0, 2.0, 3.0, 4.0]], "tasks": tasks, "extras": None}
    with pytest.raises(bd.InputError, match=message):
        model.advance(**(good | change))
    assert dumps(model) == before


def test_parts_that_do_not_fit_are_refused():
    _, values, tasks = streams()
    graph = bd.TaskGraph.pooled(tasks)
    units = Units.measure(values)
    with pytest.raises(bd.InputError, match="MTWRLS has 3 features: the lags give 4"):
        LearnerEngine(bd.MTWRLS(graph, 3), Preparation(bd.Lags(3), graph, units))
    with pytest.raises(bd.InputError, match="graph has other tasks"):
        LearnerEngine(bd.MTWRLS(graph, 4), Preparation(bd.Lags(3), bd.TaskGraph.pooled(["a"]), units))
    with pytest.raises(bd.InputError, match="difference=False"):
        LearnerEngine(bd.MTWRLS(graph, 4), Preparation(bd.Lags(3, difference=False), graph, units))
    with pytest.raises(bd.InputError, match="has no units"):
        LearnerEngine(bd.MTWRLS(graph, 4), Preparation(bd.Lags(3), graph))
    with pytest.raises(bd.InputError, match="nothing is known yet"):
        LearnerEngine(bd.MTWRLS(graph, 4), Preparation(bd.Lags(3), graph, units)).ahead()
    with pytest.raises(bd.InputError, match="1 rounds have no step"):
        Clock.measure(np.arange(1))


def by_hand(n_tasks=2, lags=None, learner=None, single=None, **prepared):
    """A forecaster in the units of the values."""
    lags = lags or bd.Lags(2, fill=True)
    graph = bd.TaskGraph.pooled([f"s{k}" for k in range(n_tasks)], strength=0.3)
    preparation = Preparation(lags, graph, Units(np.zeros(n_tasks), np.ones(n_tasks)), **prepared)
    learner = learner or bd.MTWRLS(graph, lags.n_features + preparation.n_extras)
    return LearnerEngine(learner, preparation, single=single)


def walk(rounds, n_tasks, seed=0):
    return 10.0 + np.random.default_rng(seed).normal(size=(rounds, n_tasks)).cumsum(axis=0)


def test_of_two_late_tasks_the_one_that_is_met_later_may_join_first():
    values, extras = walk(90, 4), np.random.default_rng(1).normal(size=(90, 4, 1))
    values[:10, 2], values[10:60:2, 2], values[:11, 3] = np.nan, np.nan, np.nan
    keys = ["s0", "s1", "s2", "s3"]
    for rounds, tasks in ((31, "s0 s1 s3"), (45, "s0 s1 s3"), (90, "s0 s1 s3 s2")):
        model = by_hand(scale=bd.Scale(np.zeros(1), np.ones(1)))
        model.advance(np.arange(rounds), values[:rounds], keys, extras[:rounds])
        assert model.tasks == tuple(tasks.split())
        assert model.columns == ["s0", "s1", "s3", "s2"]
        np.testing.assert_array_equal(model._recent, values[rounds - 3 : rounds, [0, 1, 3, 2]])
        np.testing.assert_array_equal(model._recent_extras, extras[rounds - 3 : rounds, [0, 1, 3, 2]])


def test_a_new_task_starts_with_the_others_mean_factor():
    values = walk(60, 3)
    values[:10, 2] = np.nan
    model = by_hand()
    model.advance(np.arange(30), values[:30], ["s0", "s1", "s2"])
    assert model._calibration[2].tolist() == [pytest.approx(model._calibration[:2, 0].mean()), 0.0, 0.0]


def test_values_of_a_waiting_task_are_no_unforecast_ones_and_the_head_does_not_count():
    model = by_hand()
    model.advance(np.arange(5), walk(5, 2), record=False)
    assert model.unforecast == 0
    model.advance(np.arange(5, 15), walk(10, 3), ["s0", "s1", "s2"])
    assert model.unforecast == 0
    other = by_hand()
    other.advance(np.arange(15), walk(15, 3), ["s0", "s1", "s2"])
    assert other.unforecast == 2  # the first ones


def test_counts_are_saved(tmp_path):
    model = by_hand(clock=Clock(10, 10))
    model.advance(np.array([0, 10, 21, 31, 60]), walk(5, 2))
    bd.save(model, tmp_path / "model")
    again = bd.load(tmp_path / "model")
    names = ("irregular", "gaps", "absent", "unforecast", "rounds", "first_stamp", "last_stamp")
    assert [getattr(again, name) for name in names] == [getattr(model, name) for name in names]
    assert again.preparation.clock == model.preparation.clock
    assert (model.irregular, model.gaps) == (1, 1)


def test_a_task_that_never_changes_gets_the_median_scale():
    units = Units.measure(np.array([[0.0, 0, 0, 5], [1, 2, 30, 5], [0, 0, 0, 5]]))
    assert units.scale[3] == 2.0
    assert units.joined(np.full(20, 7.0)).scale[-1] == np.median(units.scale)


def test_the_record_by_hand():
    record = Record.blank(np.ones(1))
    errors = np.array([[-1.0, 2, 3, 4], [1.0, 2, 3, 4]])
    record.add(errors, np.array([np.nan, 1.0]), np.array([0, 0]), np.array([0, 1]), 2)
    assert record.squares.tolist() == [[2, 8, 18, 32]]
    assert (record.intervals[0], record.covered[0]) == (1, 1)


def test_after_a_breakdown_nothing_before_has_changed_however_the_rounds_are_cut():
    values = walk(60, 3)

    def fragile():
        graph = bd.TaskGraph.pooled(["s0", "s1", "s2"])
        return by_hand(3, bd.Lags(3, fill=True), bd.MOGD(graph, 4, step=1e9))

    whole, cut, early = (fragile() for _ in range(3))
    made = whole.advance(np.arange(60), values)
    same(made, joined([cut.advance(np.arange(k, k + 5), values[k : k + 5]) for k in range(0, 60, 5)]))
    before = early.advance(np.arange(13), values[:13])
    np.testing.assert_array_equal(made.low[: len(before.low)], before.low)
    assert whole.breakdowns == cut.breakdowns > 0
    assert whole.learner.samples % 3 == 0  # it starts afresh after the round, with whole ones
    # what is recorded is what was issued
    again = fragile()
    for k in range(59):
        again.advance([k], values[[k]])
        ahead, recorded = again.ahead(), made.times == k + 1
        np.testing.assert_array_equal(ahead.forecast[: recorded.sum()], made.forecast[recorded])


def test_ahead_of_a_learner_that_breaks_down_is_no_change():
    graph = bd.TaskGraph.pooled(["s0", "s1"])
    model = by_hand(lags=bd.Lags(1), learner=bd.MOGD(graph, 2))
    values = walk(30, 2)
    values[-1] += 100.0
    model.advance(np.arange(30), values)
    model.learner.state.weights[...] = 1e308
    ahead = model.ahead()
    np.testing.assert_allclose(ahead.forecast, values[-1])
    assert np.isnan(ahead.low).all()


@pytest.mark.parametrize("name", ["MOGD", "MADMM", "MTWRLS"])
@pytest.mark.parametrize("spike", [1e99, 1e200, 1.7e308, -1e150])
def test_wild_values_leave_all_forecasts_finite(name, spike):
    values = walk(200, 3)
    values[100, 0] = spike
    graph = bd.TaskGraph.pooled(["s0", "s1", "s2"])
    model = by_hand(3, learner=getattr(bd, name)(graph, 3, **({"step": 10.0} if name == "MOGD" else {})))
    made = model.advance(np.arange(200), values)
    assert np.isfinite(made.forecast).all()
    assert np.isfinite(model.record.rmse).all()
    assert np.isfinite(model.ahead().forecast).all()
    late = made.times > 150
    assert not np.isnan(made.low[late]).any()


def test_times_of_pandas_and_texts_are_dates():
    model, values = by_hand(), walk(4, 2)
    model.advance(pd.date_range("2024-01-01", periods=2), values[:2])
    model.advance([pd.Timestamp("2024-01-03")], values[2:3])
    model.advance(["2024-01-04"], values[3:])
    assert str(model.last_time) == "2024-01-04T00:00:00.000000"
    model.advance([pd.Timestamp("2024-01-05 01:00", tz="Europe/Berlin")], values[3:])  # in UTC
    assert str(model.last_time) == "2024-01-05T00:00:00.000000"


def stamps_of(times):
    return as_stamps(np.asarray(times))


def test_gaps_are_far_longer_than_nine_of_ten_steps():
    assert Clock(10, 10).gaps(np.array([10, 24, 44, 54]), 0).tolist() == [2]
    assert Clock.measure(np.cumsum([0] + [1, 1, 1, 1, 3] * 20)) == Clock(1, 3)
    assert Clock.measure(np.cumsum([0] + [1] * 95 + [50] * 5)) == Clock(1, 1)


@pytest.mark.parametrize("freq", ["B", "C", "ME", "MS", "D", "h", "10min", "2W-MON", "QE", "YE", "7D"])
def test_the_next_time_is_that_of_the_calendar(freq):
    weekmask = {"freq": "C", "weekmask": "Mon Tue Wed Thu Fri Sat"} if freq == "C" else {"freq": freq}
    times = (pd.bdate_range if freq == "C" else pd.date_range)(
        "2019-01-31 06:00" if freq != "MS" else "2019-01-01", periods=80, **weekmask
    )
    times = times.to_numpy()
    clock = Clock.measure(times[:60])
    expected = stamps_of(times[1:])
    found = np.array([clock.after(int(stamp)) for stamp in stamps_of(times[:-1])])
    if freq in ("QE", "YE"):  # unequal, and no rule: off by days, but no gap
        assert (np.abs(found - expected) <= 3 * 86_400_000_000).all()
    else:
        np.testing.assert_array_equal(found, expected)
    assert len(clock.gaps(stamps_of(times), int(stamps_of(times)[0]))) == 0


def test_units_of_tasks_of_any_size():
    values = np.array([[1e200, 1.0, 7.0], [3e200, 2.0, 7.0], [np.nan, 4.0, 7.0]])
    units = Units.measure(values)
    np.testing.assert_allclose(units.scale, [2e200, np.sqrt(2.5), 1e200 + np.sqrt(2.5) / 2])
    np.testing.assert_allclose(units.outward(units.inward(values)[0], np.arange(3)), values[0])


def test_a_learner_that_cannot_take_a_new_task_starts_afresh_and_is_counted(monkeypatch):
    times, values, tasks = streams(gaps=False)
    forecaster = make(values[:, :3], tasks[:3])
    whole = type(forecaster.learner)._joined

    def breaks_down_once(self, graph):
        if self.samples:
            raise np.linalg.LinAlgError("Singular matrix")
        return whole(self, graph)

    monkeypatch.setattr(type(forecaster.learner), "_joined", breaks_down_once)
    forecaster.advance(times, values, tasks)
    assert forecaster.tasks == tasks
    assert forecaster.breakdowns == 1


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_copy_shares_nothing_with_the_forecaster(copied):
    times, values, tasks = streams()
    forecaster = make(values, tasks, clips=True)
    forecaster.advance(times[:100], values[:100], tasks)
    twin, before = copied(forecaster), dumps(forecaster)
    assert dumps(twin) == before
    made = twin.advance(times[100:], values[100:], tasks)
    assert dumps(forecaster) == before
    np.testing.assert_array_equal(forecaster.advance(times[100:], values[100:], tasks).forecast, made.forecast)


def test_a_new_record_counts_breakdowns_from_zero():
    times, values, tasks = streams(missing=0.0, gaps=True, rounds=400)
    model = make(values, tasks, bd.Lags(3), lambda g: bd.MOGD(g, 4, step=30.0), single=False)
    model.advance(times, values, tasks)
    assert min(model.breakdowns, model.gaps, model.irregular, model.absent, model.unforecast) > 0
    model.forget_record()
    assert not any((model.breakdowns, model.gaps, model.irregular, model.absent, model.unforecast, model.too_large))
    assert not model.record.counts.any()


@pytest.mark.parametrize("learner", [None, lambda graph: bd.MOGD(graph, 7, 0.1, 0.01)])
def test_a_forecast_ahead_changes_nothing(learner):
    times, values, tasks = streams()
    model = make(values, tasks, learner=learner, clips=True)
    model.advance(times, values, tasks)
    before, first = dumps(model), model.ahead()
    assert dumps(model) == before
    np.testing.assert_array_equal(model.ahead().high, first.high)


def test_contenders_are_found_by_name_and_must_hold_the_model_and_no_change():
    record = Record.blank(np.ones(2), ("model", "no change", "twice"))
    for _ in range(2):
        errors = np.array([[1.0, 2.0, 4.0], [3.0, 6.0, 12.0]])
        record.add(errors, np.full(2, np.nan), np.arange(2), np.zeros(2, np.int64), 1)
    assert record.has("twice")
    assert not record.has("single")
    assert record.rmse_of("twice").tolist() == [4.0, 12.0]
    assert record.curve_of("no change").sum() == 80.0
    with pytest.raises(bd.InputError, match="no contender 'single': there are model, no change, twice"):
        record.rmse_of("single")
    for contenders in ((), ("no change", "model"), ("model",), ("model", "no change", "no change"), "model"):
        with pytest.raises(bd.InputError, match="'model' first and 'no change' among them"):
            Record.blank(np.ones(2), contenders)
