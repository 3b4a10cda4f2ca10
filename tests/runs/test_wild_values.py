"""What a wild value does to a run: little, and the same bits however the rounds are cut."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import braided as bd
from braided.datasets import wind_field
from braided.forecasting import Clipping, Units
from braided.runs import Settings, run_in_memory
from tests.runs.tables import GIVEN, field


def poisoned(panel, places):
    values = panel.values.copy()
    for step, task, value in places:
        values[step, task] = value
    return replace(panel, values=values)


def forecaster(panel):
    lags = bd.Lags(3, neighbours=2, gap=True, fill=True)
    graph = bd.TaskGraph.from_history(panel.values[:100], panel.tasks)
    model = bd.MTWRLS(graph, lags.n_features, 10.0, robust=5.0)
    preparation = bd.forecasting.Preparation(lags, graph, Units.measure(panel.values[:100]), clips=True)
    return bd.forecasting.LearnerEngine(model, preparation)


WILD = [(150, 1, 1e6), (151, 2, -999.0), (152, 2, -999.0), (250, 0, 1e200), (251, 0, 1e99), (300, 3, -1e6)]


@pytest.mark.parametrize("cuts", [[200], [150, 151, 152, 153], list(range(1, 400))], ids=str)
def test_pieces_saves_and_forecasts_ahead_are_the_same_bits(cuts, tmp_path):
    panel = poisoned(field(missing=0.02), WILD)
    times = np.arange(len(panel.times))
    whole, cut = forecaster(panel), forecaster(panel)
    expected = whole.advance(times, panel.values, panel.tasks)
    made = []
    for first, end in zip([0, *cuts], [*cuts, len(times)], strict=True):
        if made and first % 100 == 50:
            bd.save(cut, tmp_path / "model")
            cut = bd.load(tmp_path / "model")
        ahead = cut.ahead() if first else None
        made.append(cut.advance(times[first:end], panel.values[first:end], panel.tasks))
        if ahead is not None:
            known = dict(zip(ahead.places.tolist(), ahead.forecast.tolist(), strict=True))
            now = made[-1].times == first
            for place, forecast in zip(made[-1].places[now].tolist(), made[-1].forecast[now].tolist(), strict=True):
                assert known[place] == forecast
    np.testing.assert_array_equal(np.concatenate([part.forecast for part in made]), expected.forecast)
    np.testing.assert_array_equal(cut.preparation.clipping.squares, whole.preparation.clipping.squares)


def test_a_wild_value_of_one_stream_does_little_to_the_others_and_without_the_limits_much():
    panel = wind_field(seed=5, steps=1000, sites=5)
    wild = poisoned(panel, [(500, 1, 1e6), (620, 1, -999.0), (621, 1, -999.0)])
    others = [0, 2, 3, 4]
    rmse = {}
    for name, table in (("clean", panel), ("wild", wild)):
        for robust in (True, False):
            settings = Settings(("mt-wrls-neighbours",), lags=3, robust=robust, **GIVEN)
            record = run_in_memory(table, settings)[0].record
            rmse[name, robust] = record.rmse_of("model")[others].mean()
    assert rmse["clean", True] < 1.01 * rmse["clean", False]
    assert rmse["wild", True] < 1.1 * rmse["clean", True]
    assert rmse["wild", False] > 100.0 * rmse["clean", False]


def test_the_choice_is_not_led_astray_by_a_wild_value_of_the_head():
    panel = wind_field(seed=5, steps=600, sites=4)
    wild = poisoned(panel, [(60, 1, 1e6)])
    clean, made = (run_in_memory(table, Settings(("mt-wrls",), lags=3)) for table in (panel, wild))
    assert made[0].units.scale[1] < 2.0 * clean[0].units.scale[1]
    others = [0, 2, 3]
    assert made[0].record.rmse_of("model")[others].mean() < 1.02 * clean[0].record.rmse_of("model")[others].mean()


@pytest.mark.parametrize(
    "wild", [[(0, 0, 1e6)], [(1, 0, 1e6)], [(step, 1, -999.0) for step in range(300, 400)]], ids=["0", "1", "run"]
)
def test_neither_the_first_values_nor_a_long_run_of_wild_ones_ruin_the_others(wild):
    panel = wind_field(seed=2, steps=1000, sites=5)
    settings = Settings(("mt-wrls-neighbours",), lags=3, **GIVEN)
    clean, made = (run_in_memory(table, settings)[0].record for table in (panel, poisoned(panel, wild)))
    others = [2, 3, 4]
    assert made.rmse_of("model")[others].max() < 1.25 * clean.rmse_of("model")[others].max()


def test_a_lasting_change_of_size_is_let_in():
    usual = Clipping.blank(1, 1)
    place = np.zeros(1, np.int64)
    for _ in range(100):
        usual.clipped(np.ones((1, 1)), place, learn=True)
    rounds = 0
    while usual.clipped(np.full((1, 1), 1e6), place)[0, 0] < 1e6:
        usual.clipped(np.full((1, 1), 1e6), place, learn=True)
        rounds += 1
    assert 20 < rounds < 300


def test_units_are_not_those_of_one_wild_value():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(500, 2)).cumsum(axis=0)
    clean = Units.measure(values).scale
    values[10, 0] = 1e12
    np.testing.assert_allclose(Units.measure(values).scale, clean, rtol=0.5)
    np.testing.assert_allclose(Units.measure(values).scale[1], clean[1], rtol=1e-12)
    seldom = np.zeros((500, 1))
    seldom[::50] = 1.0  # all that it ever does
    assert Units.measure(values).centre[0] == np.median(values[:20, 0])
    assert Units.measure(seldom).scale[0] == pytest.approx(np.sqrt(np.mean(np.diff(seldom[:, 0]) ** 2)))


@pytest.mark.parametrize("n", [5, 30, 400])
@pytest.mark.parametrize("wild", [0, 1, 2, 40])
def test_the_scale_is_that_of_the_plain_loop(n, wild):
    rng = np.random.default_rng([n, wild])
    values = rng.normal(size=(n, 3)).cumsum(axis=0)
    values[rng.choice(n, min(wild, n // 2), replace=False), 0] += 1e6
    values[18:, 1] = np.nan
    values[rng.uniform(size=n) < 0.2, 2] = np.nan
    found = Units.measure(values).scale
    for column, scale in zip(values.T, found, strict=True):
        changes = [abs(b - a) for a, b in pairwise(column) if not np.isnan(b - a)]
        largest = max(len(changes) // 20, 2)
        rest = sorted(changes)[:-largest]
        most = 10.0 * np.sqrt(sum(c * c for c in rest) / len(rest)) if rest else np.inf
        assert scale == pytest.approx(np.sqrt(np.mean([min(c, most) ** 2 for c in changes])))


def test_a_task_that_joins_without_two_values_running_gets_the_usual_scale():
    units = Units.measure(np.array([[0.0, 0.0], [1e4, 2e4], [0.0, 0.0]]))
    seldom = np.where(np.arange(40) % 2, np.nan, 1e4 + np.arange(40.0))
    assert units.joined(seldom).scale[-1] == 1.5e4


def test_what_is_usual_is_the_same_for_a_forecast_ahead_and_its_learning_also_at_the_first_limit():
    usual, place = Clipping.blank(1, 1), np.zeros(1, np.int64)
    for n in range(60):
        wild = np.full((1, 1), 1e6 if n in (30, 45) else 1.0)
        ahead = usual.clipped(wild, place)
        assert ahead == usual.clipped(wild, place, learn=True)
    assert usual.squares[0, 0] < 100.0


def test_a_task_that_joins_has_its_own_usual_sizes():
    usual = Clipping.blank(2, 1)
    usual.clipped(np.ones((80, 1)), np.arange(80) % 2, learn=True)
    usual.join()
    assert usual.squares.shape == (3, 1)
    assert usual.clipped(np.full((3, 1), 50.0), np.arange(3)).ravel().tolist() == [10.0, 10.0, 50.0]
