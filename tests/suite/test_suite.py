"""The suite: nothing looks ahead, all methods are scored on the same values, and what it writes says what it did."""

from __future__ import annotations

import csv
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from braided.cli.study import SUITE_NAMES
from braided.datasets import wind_field
from braided.errors import InputError
from braided.report import write_suite_report
from braided.suite import Cell, Past, cuts_of, find_suite_method, run_suite, suite_panels
from braided.suite.mixture import mixture_of
from braided.suite.own import auto_forecasts, run_forecasts
from braided.suite.panels import by_local_clock
from braided.suite.past import known_so_far
from braided.suite.peers import classical, lightgbm, ridge_var
from braided.suite.rules import rules_of
from braided.suite.run import SUITE_METHODS, run_one
from braided.suite.scores import ratios, scored_values
from braided.suite.seasons import seasons_of
from braided.suite.table import write_scores
from braided.tables import Panel

STEPS, CUTS = 240, (80, 140, 200)
CHANGED_FROM = 170


def panel(steps=STEPS, missing=0.05):
    """Three streams by the hour, with a day's season, holes and a gap in time."""
    rng = np.random.default_rng(1)
    hours = np.arange(steps) + 5 * (np.arange(steps) > 60)
    times = np.datetime64("2024-01-01T00", "us") + hours * np.timedelta64(1, "h")
    common = rng.normal(size=(steps, 1)).cumsum(axis=0)
    values = 10.0 + 3.0 * np.sin(hours[:, None] * np.pi / 12.0) + common + rng.normal(size=(steps, 3))
    values[rng.uniform(size=values.shape) < missing] = np.nan
    values[:7, 2] = np.nan  # a stream that begins later
    return Panel("three", ("a", "b", "c"), times, values, "made up", synthetic=True)


def changed(one):
    """The same until a round, and another future."""
    values = one.values.copy()
    values[CHANGED_FROM:] = 50.0 - 3.0 * values[CHANGED_FROM:]
    values[-5:, 0] = np.nan
    return replace(one, values=values)


def best_mixture(past):
    rules = rules_of(past)
    return past.forecasts(mixture_of(np.stack([*rules.values()]), past.changes))


def each_rule(past):
    return np.hstack([past.forecasts(changes) for changes in rules_of(past).values()])


def boosted(past, again):
    pytest.importorskip("lightgbm", reason="the extra `peers` is not installed")
    return lightgbm.forecast(past, again=again)


def classic(past, kind):
    pytest.importorskip("statsforecast", reason="the extra `peers` is not installed")
    return classical.forecast(past, kind)


@pytest.fixture
def small(monkeypatch):
    """Classical models of one stream, without seasons: seconds instead of minutes."""
    for kind in ("ETS", "ARIMA"):
        monkeypatch.setitem(classical.STREAMS, kind, 1)
    monkeypatch.setattr(classical, "LONGEST_SEASON", 1)
    monkeypatch.setattr(lightgbm, "TREES", 5)


METHODS = {
    "rules": each_rule,
    "mixture": best_mixture,
    "lightgbm": partial(boosted, again=False),
    "lightgbm, units again": partial(boosted, again=True),
    "ridge VAR": ridge_var.forecast,
    "AutoETS": partial(classic, kind="ETS"),
    "AutoARIMA": partial(classic, kind="ARIMA"),
}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("forecast", METHODS.values(), ids=METHODS)
def test_no_forecast_moves_when_its_future_does(forecast):
    """The forecast of a round knows the rounds before it, and no value of the round itself."""
    once, again = (forecast(Past(one, CUTS)) for one in (panel(), changed(panel())))
    # statsforecast returns values less their errors, so that the last digit depends on the value itself.
    np.testing.assert_allclose(once[: CHANGED_FROM + 1], again[: CHANGED_FROM + 1], rtol=1e-9, atol=1e-9)
    assert not np.array_equal(once[CHANGED_FROM + 1 :], again[CHANGED_FROM + 1 :], equal_nan=True)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("forecast", METHODS.values(), ids=METHODS)
def test_appended_rows_move_nothing_before_them_with_the_same_cuts(forecast):
    whole = panel()
    part = replace(whole, times=whole.times[:CHANGED_FROM], values=whole.values[:CHANGED_FROM])
    short = forecast(Past(part, tuple(cut for cut in CUTS if cut < CHANGED_FROM)))
    np.testing.assert_allclose(short, forecast(Past(whole, CUTS))[:CHANGED_FROM], rtol=1e-9, atol=1e-9)


AHEAD = {
    "rules": each_rule,
    "LightGBM": partial(boosted, again=False),
    "LightGBM, units again": partial(boosted, again=True),
    "Auto": auto_forecasts,
    "Auto without sharing": partial(auto_forecasts, sharing=False),
}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("horizon", [2, 6, 30])
@pytest.mark.parametrize("forecast", AHEAD.values(), ids=AHEAD)
def test_no_forecast_of_a_later_round_moves_when_its_future_does(forecast, horizon):
    once, again = (forecast(Past(one, CUTS, horizon)) for one in (panel(), changed(panel())))
    same = CHANGED_FROM + horizon
    np.testing.assert_allclose(once[:same], again[:same], rtol=1e-9, atol=1e-9)
    assert not np.array_equal(once[same:], again[same:], equal_nan=True)


def test_methods_are_compared_at_several_horizons_on_the_same_values(tmp_path):
    outcomes = run_suite([panel()], ("best-rule", "seasonal-naive", "auto", "single"), horizon=24)
    assert [one.horizon for one in outcomes] == [1, 3, 6, 12]
    for one in outcomes:
        past = Past(panel(), cuts_of(STEPS), one.horizon)
        np.testing.assert_array_equal(one.cells["auto"].ratios, ratios(past, auto_forecasts(past)))
        assert one.cells["single"].note == "one step ahead only" * (one.horizon > 1)
        assert one.cells["seasonal-naive"].note == "value a day ago"
    page = write_suite_report(outcomes, tmp_path, ["--horizon", "24"]).read_text("utf-8")
    assert "12 ahead" in page
    assert "--horizon 24" in page


def test_the_runs_of_braided_do_not_look_ahead_either():
    once, again = (run_forecasts(Past(one, cuts_of(STEPS)), ("wrls",)) for one in (panel(), changed(panel())))
    np.testing.assert_array_equal(once[: CHANGED_FROM + 1], again[: CHANGED_FROM + 1])


def test_no_change_is_the_last_known_value_also_after_a_hole_and_scores_one():
    past = Past(panel(), cuts_of(STEPS))
    expected = known_so_far(past.panel.values)[:-1]
    np.testing.assert_array_equal(past.no_change[1:], expected)
    np.testing.assert_allclose(past.forecasts(rules_of(past)["no change"]), past.no_change)
    assert ratios(past, past.no_change).tolist() == [1.0, 1.0, 1.0]


def test_values_are_scored_after_the_first_fifth_where_their_stream_had_a_value_before():
    late = panel()
    values = late.values.copy()
    values[:100, 1] = np.nan
    past = Past(replace(late, values=values), cuts_of(STEPS))
    scored = scored_values(past)
    assert not scored[: STEPS // 5].any()
    assert not scored[:101, 1].any()
    there = ~np.isnan(values[101:])
    np.testing.assert_array_equal(scored[101:], there)


def test_a_missing_forecast_counts_as_no_change_and_a_stream_without_any_is_not_scored():
    past = Past(panel(), cuts_of(STEPS))
    made = past.no_change + 1.0
    made[:, 1] = np.nan
    made[150:, 0] = np.nan
    found = ratios(past, made)
    assert np.isnan(found[1])
    whole = ratios(past, np.where(np.isnan(made), past.no_change, made))
    np.testing.assert_array_equal(found[[0, 2]], whole[[0, 2]])


def test_the_mixture_of_rules_is_close_to_the_best_of_them():
    rng = np.random.default_rng(0)
    target = rng.normal(size=(500, 2)) + 1.0
    rules = np.stack([np.zeros_like(target), np.ones_like(target), np.full_like(target, -2.0)])
    error = np.mean((mixture_of(rules, target) - target) ** 2)
    assert error < 1.03 * np.mean((rules[1] - target) ** 2)


def test_a_rule_that_sleeps_takes_no_part():
    target = np.ones((100, 1))
    asleep = np.full_like(target, np.nan)
    alone = mixture_of(np.stack([np.full_like(target, 0.5), asleep]), target)
    np.testing.assert_allclose(alone, 0.5)


@pytest.mark.parametrize(
    ("start", "step", "seasons"),
    [
        ("2024-01-01T00:00", "10m", [144, 1008]),
        ("2024-01-01T00", "1h", [24, 168]),
        ("2024-01-01", "1D", [7, 365]),
        ("2024-01-01", "7D", [52]),
        ("2024-01", "1M", [12]),
        ("2024-01", "3M", [4]),
        ("2024", "1Y", []),
    ],
)
def test_seasons_come_from_the_clock(start, step, seasons):
    count, unit = int(step[:-1]), step[-1]
    times = (np.datetime64(start) + np.arange(60) * np.timedelta64(count, unit)).astype("datetime64[us]")
    past = Past(Panel("one", ("a",), times, np.arange(60.0)[:, None], "made up"), cuts_of(60))
    assert [season.lag for season in seasons_of(times, past.clock)] == seasons


def test_cuts_are_equal_and_begin_after_a_fifth():
    cuts = cuts_of(1000)
    assert cuts[0] == 200
    assert len(cuts) == 10
    assert set(np.diff(cuts)) == {80}
    with pytest.raises(InputError, match="the suite needs 20"):
        cuts_of(19)


def test_auto_has_a_forecast_for_all_that_is_scored():
    past = Past(panel(), cuts_of(STEPS))
    shared, alone = (auto_forecasts(past, sharing) for sharing in (True, False))
    for made in (shared, alone):
        assert not np.isnan(made[scored_values(past)]).any()
    assert not np.array_equal(shared, alone, equal_nan=True)


def test_a_package_that_is_not_installed_is_named_with_how_to_install_it():
    missing = replace(SUITE_METHODS["lightgbm"], needs="a_package_that_nobody_has")
    cell = run_one(missing, Past(panel(), cuts_of(STEPS)))
    assert np.isnan(cell.error)
    assert cell.note == "pip install 'braided[peers]'"


def test_the_best_rule_is_named_and_scores_are_the_same_for_any_number_of_jobs(tmp_path):
    names = ("best-rule", "single", "ridge-var")
    once, again = (run_suite([panel()], names, jobs)[0] for jobs in (1, 2))
    assert once.cells["best-rule"].note in {*rules_of(Past(panel(), cuts_of(STEPS))), "mixture of rules"}
    for name in names:
        np.testing.assert_array_equal(once.cells[name].ratios, again.cells[name].ratios)
    write_scores([once], tmp_path / "suite.csv")
    rows = list(csv.DictReader((tmp_path / "suite.csv").read_text("utf-8").splitlines()))
    assert [(row["method"], row["stream"]) for row in rows] == [(name, task) for name in names for task in "abc"]
    assert float(rows[0]["rmse_to_no_change"]) == pytest.approx(once.cells["best-rule"].ratios[0], rel=1e-5)


def test_streams_that_a_slow_peer_leaves_out_have_no_score(monkeypatch):
    pytest.importorskip("statsforecast", reason="the extra `peers` is not installed")
    monkeypatch.setitem(classical.STREAMS, "ETS", 2)
    cell = run_one(SUITE_METHODS["auto-ets"], Past(panel(), cuts_of(STEPS)))
    assert cell.note == "2 of 3 streams"
    assert np.isnan(cell.ratios).tolist() == [False, True, False]


@pytest.mark.parametrize(("n_known", "season"), [(30, 1), (71, 12)])
def test_arima_between_cuts_forecasts_as_it_would_after_each_value(n_known, season):
    models = pytest.importorskip("statsforecast.models", reason="the extra `peers` is not installed")
    rng = np.random.default_rng(0)
    steps = np.arange(n_known + 6)
    series = 0.3 * steps + 5.0 * np.sin(steps * np.pi / 6.0) + rng.normal(size=(2, len(steps))).cumsum(axis=1)[0]
    piece = classical.Piece(series[:n_known], series[n_known:])
    model = models.AutoARIMA(season_length=season, approximation=False).fit(piece.known)
    expected = [model.forward(series[: n_known + k], h=1)["mean"][0] for k in range(6)]
    np.testing.assert_allclose(classical.one_step(piece, "ARIMA", season), expected, rtol=1e-6)


def test_help_names_the_methods_of_the_suite():
    assert SUITE_NAMES.split(", ") == list(SUITE_METHODS)


def test_an_unknown_method_or_panel_is_refused_with_the_nearest():
    with pytest.raises(InputError, match="did you mean 'lightgbm'"):
        find_suite_method("lightgmb")
    with pytest.raises(InputError, match="did you mean 'us-incomes'"):
        suite_panels(["us-income"])
    with pytest.raises(InputError, match="no timezone 'Europe/Atlantis'"):
        suite_panels(["synthetic"], timezone="Europe/Atlantis")


def test_a_quick_suite_takes_the_first_thousand_rounds():
    (quick,) = suite_panels(["la-haute-borne"], quick=True)
    (whole,) = suite_panels(["la-haute-borne"])
    assert (len(quick.times), len(whole.times)) == (1_000, 12_000)


def test_pedestrians_are_cut_by_the_clock_of_their_place():
    (people,) = suite_panels(["melbourne-pedestrians"])
    assert people.timezone is None
    assert (people.times[0], len(people.times)) == (np.datetime64("2015-01-01T00"), 8_000)


def test_a_summer_hour_that_does_not_exist_is_a_gap():
    days = np.arange("2024-03-29T00", "2024-04-02T00", dtype="datetime64[h]").astype("datetime64[us]")
    utc = Panel("spring", ("a", "b"), days, np.arange(2.0 * len(days)).reshape(-1, 2), "made up")
    local = by_local_clock(utc, "Europe/Berlin")
    assert len(local.times) == len(days)
    assert set(np.diff(local.times).astype(int) // 3_600_000_000) == {1, 2}


@pytest.mark.usefixtures("small")
def test_files_may_hold_constant_streams_or_a_single_one(tmp_path):
    hours = np.arange(200)
    rows = [f"2024-01-{1 + h // 24:02}T{h % 24:02}:00,{h * 37 % 101},5" for h in hours]
    for name, header, cut in (("two", "time,a,b", None), ("one", "time,a", -2)):
        path = tmp_path / f"{name}.csv"
        path.write_text("\n".join([header, *(row[:cut] for row in rows)]))
        (outcome,) = run_suite(suite_panels([str(path)]), ["best-rule", "single", "auto", "ridge-var"])
        assert np.isfinite(outcome.cells["auto"].ratios[0])
        assert np.isnan([cell.ratios[1:] for cell in outcome.cells.values()]).all()
        assert np.isfinite([outcome.cells[name].error for name in ("best-rule", "auto", "ridge-var")]).all()


def test_what_is_refitted_measures_units_again(monkeypatch):
    """A stream that starts to move late is in units of its own by the next cut."""
    late = panel()
    late.values.flags.writeable = True
    late.values[: CUTS[0], 0] = 1.0
    late.values[CUTS[0] :, 0] = 100.0 * np.arange(STEPS - CUTS[0])
    scales = [piece.units.scale[0] for piece, _, _ in Past(late, CUTS).pieces(again=True)]
    assert scales[-1] > 10.0 * scales[0]


def test_errors_of_cells_are_means_over_the_streams_that_have_one():
    assert Cell(np.array([0.5, np.nan, 0.7])).error == pytest.approx(0.6)


def test_wind_of_one_field_runs_whole(tmp_path):
    """Every method of the suite that needs no other package, and the report."""
    names = ("best-rule", "single", "run", "auto", "ridge-var")
    outcomes = run_suite([wind_field(seed=2, steps=200, sites=3)], names)
    page = write_suite_report(outcomes, tmp_path)
    assert page.name == "index.html"
    text = (tmp_path / "report.md").read_text("utf-8")
    for name in names:
        assert SUITE_METHODS[name].title in text


def test_the_report_has_the_command_that_runs_the_same_suite_again(tmp_path):
    outcomes = run_suite([wind_field(seed=2, steps=60, sites=2)], ["best-rule"])
    write_suite_report(outcomes, tmp_path, ["--quick", "--timezone", "Europe/Dublin; ls"])
    again = "--data FILE --methods best-rule --quick --timezone 'Europe/Dublin; ls'\n"
    assert again in (tmp_path / "report.md").read_text("utf-8")
