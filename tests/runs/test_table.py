"""From a file to forecasts: what is written, what is kept, and how a run goes on."""

import json
import os
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest

import braided as bd
from braided.forecasting import Choice, Trial
from braided.report import Summary, in_words
from braided.runs import Settings, choose, learn, read_choice, run, run_in_memory, write_choice
from braided.runs.output import ForecastFile, as_csv, as_json, lines_of, tail
from braided.runs.start import chosen, start
from braided.runs.table import read_tuning_period
from braided.tables import open_rounds
from tests.runs.kills import insist_same_bytes_after_kills
from tests.runs.tables import GIVEN, QUICK, field, written


def go(folder, table, settings=QUICK, suffix="parquet", every=10**6, **reading):
    return run(open_rounds(table, **reading), settings, folder / f"forecasts.{suffix}", folder / "model", every=every)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    return go(folder, written(folder / "table.csv", missing=0.01)), folder


def test_the_file_holds_the_forecasts_of_a_forecaster(finished):
    done, _ = finished
    panel = field(missing=0.01)
    head = read_tuning_period(open_rounds(panel), QUICK)
    assert len(head.times) == 80
    expected = start(head, choose(head, QUICK), QUICK, "")
    expected.advance(panel.times[:80], panel.values[:80], panel.tasks, record=False)
    made = expected.advance(panel.times[80:], panel.values[80:], panel.tasks)
    frame = pd.read_parquet(done.forecasts)
    assert list(frame) == ["stream", "time", "horizon", "forecast", "low", "high", "actual"]
    np.testing.assert_array_equal(frame.time.to_numpy(), made.times)
    assert frame.stream.tolist() == made.tasks
    for name in ("actual", "forecast", "low", "high"):
        np.testing.assert_array_equal(frame[name].to_numpy(), getattr(made, name))
    np.testing.assert_array_equal(done.forecaster.record.squares, expected.record.squares)


def test_csv_and_parquet_say_the_same(finished, tmp_path):
    done, folder = finished
    other = go(tmp_path, folder / "table.csv", suffix="csv")
    one, two = pd.read_parquet(done.forecasts), pd.read_csv(other.forecasts, parse_dates=["time"])
    pd.testing.assert_frame_equal(one, two, check_dtype=False)
    assert other.forecasts.read_text().splitlines()[1].startswith("site 2,2012-01-01 06:40:00,1,")
    for path in (done.forecasts, other.forecasts):
        last = tail(path, 50)
        np.testing.assert_array_equal(last["forecast"], one["forecast"].to_numpy()[-50:])


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
@pytest.mark.parametrize("every", [101, 400])
@pytest.mark.slow
def test_a_run_that_was_killed_ends_with_the_same_bytes(tmp_path, monkeypatch, suffix, every):
    """Killed after each of its saves, up to the very last one."""
    options = {
        "table": written(tmp_path / "table.csv", missing=0.02),
        "suffix": suffix,
        "every": every,
        "batch_rows": 300,
    }
    insist_same_bytes_after_kills(lambda folder: go(folder, **options), tmp_path, monkeypatch)


def test_a_finished_run_is_shown_again_and_another_one_refused(finished, tmp_path):
    _, folder = finished
    here = shutil.copytree(folder, tmp_path / "copy")
    again = go(here, folder / "table.csv")
    assert again.how == "finished"
    assert again.forecasts.exists()
    with pytest.raises(bd.FileError, match=r"holds a run with --tune 0.2, not 0.3: choose another folder"):
        go(here, folder / "table.csv", Settings(("mt-wrls-neighbours",), lags=3, tune=0.3, **GIVEN))
    plan = json.loads((here / "model.json").read_text())
    del plan["columns of the forecasts"]  # of a version that named them otherwise
    (here / "model.json").write_text(json.dumps(plan))
    with pytest.raises(bd.FileError, match=r"of the forecasts null, not .*: choose another folder .*\(--fresh\)"):
        go(here, folder / "table.csv")
    shutil.copy(folder / "model.json", here)
    (here / "model").write_bytes(b"braided model\nnonsense")
    with pytest.raises(bd.FileError, match="damaged or cut short"):
        go(here, folder / "table.csv")
    bd.save(bd.WRLS(["a"], 1), here / "model")
    with pytest.raises(bd.FileError, match="holds a WRLS, not a forecaster"):
        go(here, folder / "table.csv")


def test_parts_that_are_gone_are_missed(tmp_path):
    made = run_in_memory(field(), QUICK)[1]
    file = ForecastFile(tmp_path / "f.csv")
    file.add(made)
    assert file.commit() == 1
    again = ForecastFile(tmp_path / "f.csv", 1)
    again.finish()
    again.clear()
    with pytest.raises(bd.FileError, match="is missing, so the run can't be resumed"):
        ForecastFile(tmp_path / "f.csv", 1)
    with pytest.raises(bd.InputError, match=r"must end in .parquet or .csv"):
        ForecastFile(tmp_path / "f.txt")
    (tmp_path / "file").touch()
    with pytest.raises(bd.FileError, match="can't write to"):
        ForecastFile(tmp_path / "file" / "f.csv")


def test_frames_of_pandas_and_polars_run_in_memory():
    panel = field()
    wide = pd.DataFrame(panel.values, panel.times, panel.tasks)
    expected = run_in_memory(panel, QUICK)[1]
    for frame in (wide, pl.from_pandas(wide.rename_axis("time").reset_index())):
        forecaster, made = run_in_memory(frame, QUICK)
        np.testing.assert_array_equal(made.forecast, expected.forecast)
    long = wide.rename_axis("when").reset_index().melt("when", var_name="who", value_name="what")
    forecaster, made = run_in_memory(long, QUICK, time="when", task="who", value="what")
    np.testing.assert_array_equal(made.forecast, expected.forecast)
    assert forecaster.origin.columns.task == "who"


def test_further_features_of_a_long_table_are_used():
    rng = np.random.default_rng(0)
    steps, tasks = 400, ("a", "b")
    hint = rng.normal(size=(steps, 2))
    values = np.zeros((steps, 2))
    values[1:] = (hint[:-1] + 0.1 * rng.normal(size=(steps - 1, 2))).cumsum(axis=0)
    frame = pd.DataFrame(
        {
            "time": np.repeat(np.arange(steps), 2),
            "site": np.tile(tasks, steps),
            "value": values.ravel(),
            "hint": hint.ravel(),
        }
    )
    with_hint = run_in_memory(frame, QUICK, features=["hint"])[0]
    without = run_in_memory(frame, QUICK, value="value")[0]
    assert Summary.of(with_hint).means["to_no_change"] < 0.3
    assert Summary.of(without).means["to_no_change"] > 0.9


def test_what_comes_later_is_not_known_to_the_choice(tmp_path):
    """Values after the part to tune on may change at will: choice, graph, units and forecasts before them do not."""
    panel = field()
    values = panel.values.copy()
    values[200:] *= -3.0
    settings = Settings(("mt-wrls", "wrls"), lags=3)
    results = []
    for table in (panel.values, values):
        forecaster, made = run_in_memory(pd.DataFrame(table, panel.times, panel.tasks), settings)
        early = made.times < panel.times[200]
        results.append((forecaster.origin.choice, forecaster.units.scale, made.forecast[early]))
    assert results[0][0] == results[1][0]
    np.testing.assert_array_equal(results[0][1], results[1][1])
    np.testing.assert_array_equal(results[0][2], results[1][2])


def test_tasks_join_late_end_early_and_are_left_out(tmp_path):
    panel = field(steps=300, sites=5)
    values = panel.values.copy()
    values[:150, 4] = np.nan
    values[200:, 0] = np.nan
    forecaster, made = run_in_memory(
        pd.DataFrame(values, panel.times, panel.tasks), Settings(("mt-wrls",), lags=3, without=("site 2",), **GIVEN)
    )
    assert forecaster.tasks == ("site 1", "site 3", "site 4", "site 5")
    first = made.times[np.array(made.tasks) == "site 5"].min()
    assert first == panel.times[170]
    assert "Joined late: site 5." in in_words(forecaster)
    assert "No value lately: site 1." in in_words(forecaster)
    assert "site 1" not in forecaster.ahead().tasks
    with pytest.raises(bd.InputError, match="no stream 'site 22' to leave out: did you mean 'site 2'"):
        run_in_memory(panel, Settings(("mt-wrls",), lags=3, without=("site 22",), **GIVEN))


def test_a_choice_is_kept_in_a_file_and_forecasts_count_after_what_it_was_tuned_on(tmp_path):
    panel = field()
    settings = Settings(("wrls",), tune=0.5, lags=4)
    head = read_tuning_period(open_rounds(panel), settings)
    choice = bd.runs.choose(head, settings)
    write_choice(tmp_path / "tuned.json", choice, head)
    given = read_choice(tmp_path / "tuned.json")
    forecaster, made = run_in_memory(panel, Settings(**given))
    assert forecaster.preparation.lags.count == 4
    assert made.times.min() == panel.times[200]  # not 80
    assert forecaster.single is None
    (tmp_path / "bad.json").write_text(json.dumps({"best": 1}))
    with pytest.raises(bd.FileError, match=r"bad.json holds no choice that `braided tune` made"):
        read_choice(tmp_path / "bad.json")


def test_a_saved_model_learns_newer_rows_only(tmp_path):
    panel = field()
    forecaster, _ = run_in_memory(pd.DataFrame(panel.values[:300], panel.times[:300], panel.tasks), QUICK)
    bd.save(forecaster, tmp_path / "model")
    later = bd.load(tmp_path / "model")
    learn(later, open_rounds(panel))
    whole, _ = run_in_memory(panel, Settings(("mt-wrls-neighbours",), lags=3, tune=0.15, **GIVEN))
    assert later.rounds == 400
    # its head was 60 of 300 rounds, which is 15 % of 400: the same model
    np.testing.assert_array_equal(later.ahead().forecast, whole.ahead().forecast)


def test_forecasts_go_on_from_a_saved_model(tmp_path):
    panel = field()
    part = pd.DataFrame(panel.values[:300], panel.times[:300], panel.tasks)
    forecaster, _ = run_in_memory(part, QUICK)
    bd.save(forecaster, tmp_path / "model")
    _, whole = run_in_memory(panel, Settings(("mt-wrls-neighbours",), lags=3, tune=0.15, **GIVEN))
    _, rest = run_in_memory(panel, Settings(model=str(tmp_path / "model")))
    np.testing.assert_array_equal(rest.forecast, whole.forecast[-len(rest.forecast) :])
    assert rest.times[0] == panel.times[300]


def test_words_say_when_sharing_hurts():
    forecaster, _ = run_in_memory(field(), QUICK)
    summary = Summary.of(forecaster)
    said = in_words(forecaster)
    assert "it lowers the error of" in said[0]
    assert f"{100 * summary.means['coverage']:.1f} % of the values" in said[2]
    np.testing.assert_allclose(summary.gains, 100 * (1 - summary.to_no_change / summary.single_to_no_change))
    forecaster.record.squares[:, 0] = 4.0 * forecaster.record.squares[:, 1]
    forecaster.record.curve[:, 1] = 4.0 * forecaster.record.curve[:, 2]
    assert in_words(forecaster)[0].startswith("No better than the forecast “no change”")
    said = in_words(forecaster)[1]
    assert said.startswith("Sharing hurts: 100.0 % more error")
    assert "it lowers the error of 0 of 4 streams, and raises that of site 1 by 100.0 %, " in said
    first_rounds = forecaster.record.curve[7:].copy()
    forecaster.record.curve[7:] = 0.0  # too few to be sure
    assert in_words(forecaster)[1].startswith("Sharing makes no clear difference (100.0 % more error than with one fil")
    forecaster.record.curve[7:] = first_rounds
    forecaster.record.curve[:, [1, 2]] = forecaster.record.curve[:, [2, 1]]  # on the whole, all streams say otherwise
    assert in_words(forecaster)[1].startswith("Sharing makes no clear difference (100.0 % more error than with one fil")
    forecaster.single = None
    assert "Sharing" not in "".join(in_words(forecaster))  # nothing to compare with
    alone, _ = run_in_memory(field(), Settings(("wrls",), parameters=GIVEN["single"], lags=3))
    assert "Each stream has its own filter." in in_words(alone)
    tried = replace(alone.origin.choice, trials=(Trial("mt-wrls", {}, score=1.0),))
    alone.origin = replace(alone.origin, choice=tried)
    assert any(one.startswith("Sharing did not help in the tuning period") for one in in_words(alone))


def test_lines_are_json_or_csv():
    forecaster, _ = run_in_memory(field(), QUICK)
    made = forecaster.ahead()
    row = json.loads(as_json(next(lines_of(made))))
    assert row == {
        "stream": "site 1",
        "time": "2012-01-02T09:20:00",
        "horizon": 1,
        "forecast": made.forecast[0],
        "low": made.low[0],
        "high": made.high[0],
    }
    made.low[0] = np.nan
    made = made._replace(names=("a, b", *made.names[1:]))
    line = next(lines_of(made))
    assert as_csv(line).startswith('"a, b",2012-01-02T09:20:00,1,')
    assert json.loads(as_json(line))["low"] is None


def test_a_table_without_anything_after_the_head_has_no_forecasts():
    panel = field(steps=12)
    parameters = {"forgetting": 1.0, "penalty": 1.0}
    forecaster, made = run_in_memory(panel, Settings(("wrls",), parameters=parameters, tune=0.99, lags=3))
    assert len(made.forecast) == 0
    assert in_words(forecaster)[0] == "There was nothing to forecast after the tuning period."


def test_a_task_that_was_left_out_stays_out_tomorrow():
    panel = field()
    frame = pd.DataFrame(panel.values[:300], panel.times[:300], panel.tasks)
    forecaster, made = run_in_memory(frame, Settings(("mt-wrls",), lags=3, without=("site 2",), **GIVEN))
    learn(forecaster, open_rounds(panel))
    assert "site 2" not in forecaster.columns
    assert list(pd.DataFrame(made.columns())) == ["stream", "time", "horizon", "forecast", "low", "high", "actual"]


def test_a_model_is_not_saved_over_the_one_it_starts_from(tmp_path):
    with pytest.raises(bd.InputError, match="m is an input of this command: choose another path to write to"):
        run(open_rounds(field()), Settings(model=str(tmp_path / "m")), tmp_path / "f.csv", tmp_path / "m")


def table_of(rounds, tasks=3, seed=0):
    values = 10.0 + np.random.default_rng(seed).normal(size=(rounds, tasks)).cumsum(axis=0)
    return pd.DataFrame(values, columns=list("abcdefgh")[:tasks]).rename_axis("time")


def test_many_streams_share_on_a_sparse_graph(monkeypatch):
    """Beyond what exact sharing can do: weights tied to the most alike within a tolerance, tuned on some streams."""
    monkeypatch.setattr("braided.runs.tuning_period.REGION_STREAMS", 15)
    forecaster, _ = run_in_memory(field(steps=300, sites=60, missing=0.01), Settings(("mt-wrls",), lags=9))
    assert forecaster.learner.uses == "local"
    assert " trials on the first 60 rounds of 45 streams: " in chosen(forecaster)
    assert Summary.of(forecaster).means["to_single"] < 0.97
    few, _ = run_in_memory(field(steps=100), Settings(("wrls",), lags=2))
    assert " trials on the first 20 rounds: " in chosen(few)


def test_the_head_is_at_most_so_many_values_but_has_rounds_enough(monkeypatch):
    monkeypatch.setattr("braided.runs.table.TUNING_VALUES", 90)
    for fewest, rounds in ((20, 30), (40, 40), (200, 60)):
        monkeypatch.setattr("braided.runs.table.TUNING_ROUNDS", fewest)
        assert len(read_tuning_period(open_rounds(table_of(300)), Settings((), lags=2)).times) == rounds
        head = read_tuning_period(open_rounds(table_of(300), batch_rows=33), Settings((), lags=2))
        assert abs(len(head.times) - rounds) <= 1


@pytest.mark.parametrize("batch", [30, 90, 99, 10_000])
def test_the_head_is_the_leading_share_whatever_the_chunks(batch):
    head = read_tuning_period(open_rounds(table_of(300), batch_rows=batch), Settings((), lags=2))
    assert abs(len(head.times) - 60) <= 1


@pytest.mark.parametrize("tune", [0.19, 0.2, 0.21])
def test_the_head_never_takes_almost_all(tune):
    rows = [(t, f"s{k}", r) for t in range(10) for k, r in enumerate(np.random.default_rng(t).normal(size=10))]
    rows += [(t, f"s{t % 2}", float(np.sin(t * t))) for t in range(10, 400)]
    rounds = open_rounds(pd.DataFrame(rows, columns=["time", "site", "value"]), batch_rows=100)
    assert len(read_tuning_period(rounds, Settings((), lags=2, tune=tune)).times) <= 20


def test_the_summary_is_that_of_the_forecasts():
    panel = field(steps=300, sites=3, missing=0.02)
    frame = pd.DataFrame(panel.values * [1.0, 50.0, 0.1], panel.times, panel.tasks)
    forecaster, made = run_in_memory(frame, QUICK)
    summary = Summary.of(forecaster)
    for place in range(3):
        own = made.places == place
        error, held = made.actual - made.forecast, (made.low <= made.actual) & (made.actual <= made.high)
        assert summary.counts[place] == own.sum()
        np.testing.assert_allclose(summary.rmse[place], np.sqrt(np.mean(error[own] ** 2)))
        np.testing.assert_allclose(summary.coverage[place], held[own].sum() / (~np.isnan(made.low[own])).sum())
    forecaster.record.intervals[0] -= 5
    assert Summary.of(forecaster).coverage[0] == forecaster.record.covered[0] / forecaster.record.intervals[0]


def test_forecasts_count_after_what_was_tuned_on_also_if_that_is_time_zero():
    frame = table_of(300)
    frame.index = pd.RangeIndex(-250, 50, name="time")
    _, made = run_in_memory(frame, Settings(("mt-wrls",), lags=2, tuned_until=0, **GIVEN))
    assert made.times.min() == 1


def test_a_run_from_a_saved_model_tells_of_its_own_forecasts_only(tmp_path):
    frame = table_of(300)
    forecaster, _ = run_in_memory(frame[:200], QUICK)
    bd.save(forecaster, tmp_path / "model")
    later, made = run_in_memory(frame, Settings(model=str(tmp_path / "model")))
    assert later.record.counts.sum() == len(made.forecast) == 300
    assert later.rounds == 300


def test_a_table_that_was_changed_is_another(tmp_path):
    table = written(tmp_path / "table.csv")
    go(tmp_path / "out", table)
    os.utime(table, (1, 1))
    with pytest.raises(bd.FileError, match="holds a run with changed "):
        go(tmp_path / "out", table)


def test_a_run_that_fails_at_once_does_not_lock_its_folder(tmp_path):
    table = written(tmp_path / "table.csv")
    with pytest.raises(bd.InputError, match="did you mean 'site 2'"):
        go(tmp_path / "out", table, Settings(("mt-wrls",), lags=3, without=("site 22",), **GIVEN))
    assert go(tmp_path / "out", table).how == "begun"


def test_a_search_that_was_stopped_goes_on_with_the_run(tmp_path, monkeypatch):
    table, settings = written(tmp_path / "table.csv"), Settings(("wrls",), lags=3)

    def stop(what, share):
        if what == "tuning WRLS" and share > 0.5:
            raise KeyboardInterrupt

    arguments = (open_rounds(table), settings, tmp_path / "out" / "f.csv", tmp_path / "out" / "model")
    with pytest.raises(KeyboardInterrupt):
        run(*arguments, progress=stop)
    assert (tmp_path / "out" / "model.trials").read_text().count("\n") > 30
    done = run(*arguments)
    assert sorted(path.name for path in (tmp_path / "out").glob("[!.]*")) == ["f.csv", "model", "model.json"]
    alone = run(*arguments[:2], tmp_path / "other" / "f.csv", tmp_path / "other" / "model")
    assert done.forecasts.read_bytes() == alone.forecasts.read_bytes()


def test_times_with_offsets_are_written_as_utc(tmp_path):
    frame = table_of(100)
    frame.index = pd.date_range("2024-01-01", periods=100, freq="h", tz="Europe/Berlin", name="time")
    frame.to_csv(tmp_path / "table.csv")
    done = go(tmp_path, tmp_path / "table.csv")
    times = pd.read_parquet(done.forecasts)["time"]
    assert str(times.dt.tz) == "UTC"
    assert times[0] == frame.index[20]
    text = go(tmp_path / "csv", tmp_path / "table.csv", suffix="csv").forecasts.read_text().splitlines()[1]
    assert text.startswith("a,2024-01-01 19:00:00Z,1,")
    assert next(lines_of(done.forecaster.ahead(), is_utc=True))[1] == "2024-01-05T03:00:00Z"
    assert tail(tmp_path / "csv" / "forecasts.csv", 3)["time"].dtype.kind == "M"
    naive = frame.tz_localize(None)
    with pytest.raises(bd.InputError, match="has times without, the model has learned times with UTC offsets"):
        learn(done.forecaster, open_rounds(naive))


def test_a_baseline_that_broke_down_is_reported():
    forecaster, _ = run_in_memory(field(steps=100), Settings(("wrls",), lags=2))
    best = Trial("mt-wrls", {"penalty": 1.0}, 100, 0.5, 300)
    forecaster.origin = replace(forecaster.origin, choice=Choice(best, Trial("wrls", {})))
    assert chosen(forecaster).endswith("times that of “no change”, one filter per stream broke down.")
    forecaster.origin = replace(forecaster.origin, choice=Choice(best, best))
    assert chosen(forecaster).endswith("times that of “no change”.")


def test_a_method_that_shares_nothing_is_not_called_sharing():
    settings = Settings(("oslssvr-linear",), parameters={"novelty": 0.1, "penalty": 100.0}, lags=2)
    forecaster, _ = run_in_memory(field(steps=100), settings)
    assert in_words(forecaster)[0].startswith("This method, which shares nothing, ")
