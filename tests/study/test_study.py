"""The study: nothing leaks, nothing depends on chance, cores or interruptions, and the results are what was run."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import braided as bd
from braided.datasets import embedded, wind_field
from braided.evaluation import PROTOCOLS, evaluate
from braided.methods import Inputs
from braided.study import METHODS, Results, Store, plan_for, run_study
from braided.study.parallel import COMPILED
from braided.study.plan import Plan, Unit
from braided.study.run import METRICS, Window, forecast, run_part, run_unit, tune
from braided.tables import read_table

SHARED = Path(__file__).parents[3] / "shared" / "data"
PANEL = wind_field(seed=1, steps=1300, sites=3)
CHEAP = ("mt-wrls", "wrls", "mogd", "wrls-neighbours", "graph-ridge", "no-change")
PLAN = plan_for(PANEL, windows=2, methods=CHEAP)


def window(plan=PLAN, train=110, panel=PANEL):
    return Window(panel.values[:400].copy(), panel.tasks, plan, train)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return run_study(PLAN, PANEL, tmp_path_factory.mktemp("study") / "store", jobs=1)


@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if method.make])
def test_every_method_tunes_on_the_training_part_alone_and_forecasts_what_it_cannot_know(name):
    small = tuple(
        {key: values[len(values) // 2 :][:2] for key, values in grid.items()} for grid in METHODS[name].stages
    )
    method = replace(METHODS[name], stages=small)
    plan = replace(PLAN, forgetting=(1.0, 0.8))
    short, other = window(plan), window(plan)
    other.levels[250:] += np.linspace(0, 50, 150)[:, None]  # another future, from the middle of the test part on
    for protocol in method.protocols:
        tuned = tune(method, short, protocol)
        assert tuned.parameters is not None
        assert tuned == tune(method, other, protocol)
        ours, theirs = (forecast(method, one, protocol, tuned.parameters)[0] for one in (short, other))
        known = ours.samples.steps < 250
        np.testing.assert_array_equal(ours.forecast[known], theirs.forecast[known])
        assert not np.array_equal(ours.forecast[~known], theirs.forecast[~known])


def test_the_test_part_starts_from_scratch_and_its_lags_reach_back():
    method, parameters = METHODS["wrls"], {"forgetting": 1.0, "penalty": 1.0}
    run = forecast(method, window(), "synchronous", parameters)[0]
    assert run.samples.steps[0] == 110
    assert len(run.samples.y) == 290 * 3
    np.testing.assert_array_equal(run.forecast[:3], 0.0)
    np.testing.assert_allclose(run.samples.X[0, :9], np.diff(PANEL.values[:110, 0])[:-10:-1])
    model = bd.WRLS(PANEL.tasks, 10, penalty=1.0)
    np.testing.assert_array_equal(run.forecast, evaluate(model, run.samples).forecast)


def test_scaling_and_graph_know_the_training_part_alone():
    own, other = window(), window()
    other.levels[110:] *= 3.0
    np.testing.assert_array_equal(own.graph.similarity, other.graph.similarity)
    known, _ = own.parts(Inputs(scaled=True))
    np.testing.assert_allclose(known.X[:, :9].std(axis=0), 1.0)
    np.testing.assert_array_equal(known.X, other.parts(Inputs(scaled=True))[0].X)
    np.testing.assert_array_equal(known.X[:, 9], 1.0)


def test_the_best_candidate_is_chosen_and_those_that_break_down_are_discarded():
    grid = {"step": (0.1, 1.0, 1e12), "penalty": (1.0, 10.0), "ridge": (0.1,)}  # a step that makes it run away
    method, own = replace(METHODS["mogd"], stages=(grid,)), window()
    tuned = tune(method, own, "synchronous")
    scores, broke = {}, 0
    for candidate in method.candidates(method.stages[0], {}, PLAN.forgetting):
        run = run_part(method.make, method, own, 0, "synchronous", candidate)
        broke += run.broke_at is not None
        if run.broke_at is None:
            scores[json.dumps(candidate)] = run.scores.mean("rmse_to_no_change")
    assert broke > 0
    assert tuned.candidates == 6
    assert tuned.discarded >= broke
    assert json.dumps(tuned.parameters) == min(scores, key=scores.__getitem__)
    assert tuned.score == min(scores.values())


def test_where_no_candidate_holds_the_forecast_is_no_change():
    doomed = replace(METHODS["mogd"], stages=({"step": (1e12,), "penalty": (1e-10,), "ridge": (1.0,)},))
    own = window()
    tuned = tune(doomed, own, "synchronous")
    assert (tuned.parameters, tuned.discarded) == (None, 1)
    run = forecast(doomed, own, "synchronous", tuned.parameters)[0]
    assert run.broke_at == 0
    assert not run.forecast.any()


@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if method.make and not method.shares])
def test_single_filters_forecast_the_same_in_both_protocols(name):
    method = METHODS[name]
    parameters = next(method.candidates(method.stages[0], {}, (1.0,))) | {"penalty": 1.0}
    one, other = (forecast(method, window(), protocol, parameters)[0].forecast for protocol in PROTOCOLS)
    np.testing.assert_array_equal(one, other)


def test_graph_ridge_is_mt_wrls_without_forgetting_and_nearly_the_linear_kernel_form():
    parameters = {"penalty": 10.0, "ridge": 0.1}
    own = window()
    ridge, exact, kernel = (
        forecast(METHODS[name], own, "synchronous", parameters | extra)[0].forecast
        for name, extra in (("graph-ridge", {}), ("mt-wrls", {"forgetting": 1.0}), ("mt-oslssvr", {"novelty": 1e-9}))
    )
    np.testing.assert_allclose(exact, ridge, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(kernel, exact, rtol=1e-5, atol=1e-7)


def test_graph_ridge_chooses_what_it_would_choose_by_its_own_runs():
    method, own = METHODS["graph-ridge"], window(train=60)
    assert (
        tune(method, own, "synchronous").parameters
        == tune(replace(method, tuned_by=None), own, "synchronous").parameters
    )


def test_a_hidden_layer_stands_in_front_of_the_learner():
    parameters = {"hidden": 10.0, "forgetting": 1.0, "penalty": 1.0, "ridge": 0.1}
    method, own = METHODS["mt-wrls-elm"], window()
    samples = own.parts(method.inputs)[1]
    for seed in (0, 1):
        model = bd.ELM(10, seed) | bd.MTWRLS(own.graph, 9, penalty=1.0)
        run = run_part(method.make, method, own, 1, "synchronous", parameters, seed)
        np.testing.assert_array_equal(run.forecast, evaluate(model, samples).forecast)


def test_refits_are_in_proportion_to_the_window():
    short = Window(np.zeros((100, 2)), ("a", "b"), Plan("x", (0,)), 28)
    assert (short.every(METHODS["l21"]), short.every(METHODS["mt-wrls"])) == (5, 1)


def test_naive_methods_are_what_they_say():
    runs = {
        name: forecast(METHODS[name], window(), "synchronous", {})[0]
        for name in ("no-change", "last-change", "mean-change")
    }
    changes = np.diff(PANEL.values[:400], axis=0)
    np.testing.assert_array_equal(runs["no-change"].forecast, 0.0)
    np.testing.assert_allclose(runs["last-change"].forecast.reshape(-1, 3), changes[108:-1])
    expected = np.repeat(changes[108:-1].mean(axis=1), 3)
    np.testing.assert_allclose(runs["mean-change"].forecast, expected)
    np.testing.assert_allclose(runs["no-change"].scores.rmse_to_no_change, 1.0)
    np.testing.assert_allclose(runs["last-change"].scores.rmse_to_last_change, 1.0)


def test_the_scores_of_hidden_layers_are_averaged(monkeypatch):
    grid = {"hidden": (10.0,), "forgetting": (1.0,), "penalty": (1.0,)}
    method = replace(METHODS["wrls-elm"], stages=(grid,))
    monkeypatch.setitem(METHODS, "wrls-elm", method)
    runs = forecast(method, window(), "synchronous", {name: values[0] for name, values in grid.items()})
    assert len({run.forecast.tobytes() for run in runs}) == 3
    block = run_unit(PLAN, [METHODS["wrls-elm"]], Unit(0, "I"), PANEL.values[:400], PANEL.tasks)["scores"][0]
    np.testing.assert_array_equal(block["rmse"], np.mean([run.scores.rmse for run in runs], axis=0))


def test_results_are_those_of_the_runs(store):
    results = Results(store)
    assert results.scores.shape == (2, 2, 2, len(CHEAP), 3, len(METRICS))
    levels = PANEL.values[PLAN.starts[1] : PLAN.starts[1] + 400]
    own = Window(levels, PANEL.tasks, PLAN, PLAN.splits["II"])
    method = METHODS["mt-wrls"]
    for place, protocol in enumerate(PROTOCOLS):
        tuned = tune(method, own, protocol)
        run = forecast(method, own, protocol, tuned.parameters)[0]
        np.testing.assert_array_equal(results.scores[1, 1, place, 0, :, 2], run.scores.rmse_to_no_change)
        assert results.table("II", protocol, "rmse_to_no_change")[1, 0] == run.scores.mean("rmse_to_no_change")
        curve = results.curve(1, "II", protocol, "mt-wrls", PANEL.tasks[2])
        mine = np.array([task == PANEL.tasks[2] for task in run.samples.tasks])
        np.testing.assert_array_equal(curve.forecast, run.forecast[mine])
        np.testing.assert_array_equal(curve.actual, run.samples.y[mine])
    assert np.isnan(results.table("I", "interleaved", "rmse")[:, 4]).all()  # a batch method has no such protocol
    np.testing.assert_array_equal(results.similarity(1, "II"), own.graph.similarity)
    np.testing.assert_array_equal(results.series(1), levels)
    assert sum(results.chosen(split="I", protocol="synchronous", method="mt-wrls")["penalty"].values()) == 2
    assert results.breakdowns("I", "synchronous", "mt-wrls") == 0
    methods, comparison = results.ranked("I", "synchronous")
    assert [m.name for m in methods] == ["mt-wrls", "wrls", "mogd"]
    assert comparison.mean_ranks.sum() == pytest.approx(6.0)
    assert results.seconds("mt-wrls")[2] > 0


def content(folder, without=("timings",)):
    files = (file for file in sorted(folder.rglob("*")) if file.is_file() and file.parent.name not in without)
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


@pytest.mark.slow
def test_a_second_run_on_two_cores_gives_the_same_bytes(store, tmp_path):
    again = run_study(PLAN, PANEL, tmp_path / "store", jobs=2)
    assert content(again.folder) == content(store.folder)


@pytest.mark.slow
def test_a_study_that_was_killed_goes_on_and_ends_the_same(store, tmp_path):
    folder = tmp_path / "store"

    def kill(done, total, last):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_study(PLAN, PANEL, folder, jobs=1, progress=kill)
    finished = {file: file.stat().st_mtime_ns for file in folder.rglob("*.parquet")}
    assert 0 < len(list((folder / "choices").iterdir())) < 4
    (folder / "scores" / ".window-002-I.parquet.1").write_bytes(b"cut short")  # what a kill while writing leaves
    (folder / "series" / "window-002-II.parquet").write_bytes(b"")  # a unit whose last table is not there is run again
    seen = []
    run_study(PLAN, PANEL, folder, jobs=1, progress=lambda *told: seen.append(told))
    assert seen[0][:2] == (2, 4)
    assert len(seen) == 3
    (folder / "scores" / ".window-002-I.parquet.1").unlink()
    assert content(folder) == content(store.folder)
    assert all(file.stat().st_mtime_ns == time for file, time in finished.items())


def test_a_store_of_another_plan_is_refused_and_left_alone(store):
    before = content(store.folder, without=())
    with pytest.raises(
        bd.FileError, match=r"holds a study with seed 0, not 1: choose another folder \(--out\), or start again"
    ):
        run_study(plan_for(PANEL, windows=2, seed=1, methods=CHEAP), PANEL, store.folder)
    other = wind_field(seed=2, steps=1300, sites=3)
    with pytest.raises(bd.FileError, match=r"holds a study with (starts|values)"):
        run_study(PLAN, other, store.folder)
    assert content(store.folder, without=()) == before


def test_a_store_with_scores_of_other_names_is_refused(store, tmp_path):
    """As those of versions that named the baselines otherwise: the report could not read them."""
    plan = json.loads((store.folder / "plan.json").read_text())
    plan["metrics"][2] = "rmse_to_level"
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    with pytest.raises(bd.FileError, match="holds a study with metrics"):
        run_study(PLAN, PANEL, tmp_path)


def test_a_folder_without_a_study_is_told(tmp_path):
    with pytest.raises(bd.FileError, match="does not hold a readable study"):
        Results(Store(tmp_path))
    (tmp_path / "file").write_text("")
    with pytest.raises(bd.FileError, match=r"can't write to .* choose another folder"):
        run_study(PLAN, PANEL, tmp_path / "file" / "store")


def test_on_the_incomes_sharing_and_neighbours_beat_one_filter_per_state():
    panel = embedded("us-incomes")
    plan = plan_for(panel)
    own = Window(np.log(panel.values), panel.tasks, plan, plan.splits["II"])
    rmse = {}
    for name in ("mt-wrls", "wrls", "mt-wrls-neighbours", "mean-change"):
        parameters = tune(METHODS[name], own, "synchronous").parameters
        rmse[name] = forecast(METHODS[name], own, "synchronous", parameters)[0].scores.mean("rmse")
    assert rmse["mt-wrls-neighbours"] < 0.92 * rmse["wrls"]
    assert rmse["mt-wrls"] < 0.92 * rmse["wrls"]
    assert rmse["mean-change"] < min(rmse["mt-wrls"], rmse["mt-wrls-neighbours"])  # which the report says


def test_on_irish_wind_sharing_helps_in_both_protocols():
    file = SHARED / "irish_wind_12sites_daily.csv.gz"
    if not file.exists():
        pytest.skip(f"{file.name} is not here")
    panel = read_table(file)
    plan = plan_for(panel, windows=6, methods=("mt-wrls", "wrls"))
    errors = {key: [] for key in (("mt-wrls", "interleaved"), ("mt-wrls", "synchronous"), ("wrls", "synchronous"))}
    for start in plan.starts:
        own = Window(panel.values[start : start + 400], panel.tasks, plan, 110)
        for (name, protocol), found in errors.items():
            tuned = tune(METHODS[name], own, protocol)
            found.append(forecast(METHODS[name], own, protocol, tuned.parameters)[0].scores.mean("rmse_to_no_change"))
    interleaved, synchronous, single = map(np.mean, errors.values())
    assert interleaved < 0.96 * single
    assert synchronous < 0.99 * single


def test_what_a_study_compiles_is_known_before():
    """All but what shares its compiled code with another: graph ridge has none, the trace norm that of l21."""
    without = {"graph-ridge", "trace", *(name for name, method in METHODS.items() if method.make is None)}
    assert {name for name in METHODS if not any(part in name for part in COMPILED)} == without
