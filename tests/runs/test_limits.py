"""Values and times at the end of what numbers and calendars can hold: they run, are reported, and are drawn."""

from dataclasses import replace

import numpy as np
import pytest

import braided as bd
from braided.forecasting import LearnerEngine, Preparation
from braided.report import in_words, write_run_report
from braided.runs import Settings, run, run_in_memory
from braided.runs.output import tail
from braided.state import dumps, loads
from braided.study import plan_for
from braided.tables import open_rounds, write_table
from tests.runs.tables import QUICK, field

PNG = b"\x89PNG"
SPIKES = [(50, 1, 1e200), (300, 0, 1e308), (301, 0, -1e308), (350, 2, 1.7e308), (399, 3, -1e151)]


def with_values(panel, places):
    values = panel.values.copy()
    for step, task, value in places:
        values[step, task] = value
    return replace(panel, values=values)


def report_of(panel, folder, suffix="parquet"):
    """Run a panel from a file, and write its report."""
    write_table(panel, folder / "mine.parquet")
    done = run(open_rounds(folder / "mine.parquet"), QUICK, folder / f"forecasts.{suffix}", folder / "model.braided")
    return done, write_run_report(done, folder / "report").read_text("utf-8")


def insist_drawn(folder):
    pictures = {path.name: path for path in (folder / "report" / "figures").glob("*.png")}
    assert {"run-forecasts.png", "run-over-time.png", "run-graph.png"} <= pictures.keys()
    assert all(path.read_bytes().startswith(PNG) for path in pictures.values())


def test_a_value_beyond_1e150_is_one_that_is_missing_and_is_counted():
    panel = field()
    huge, made = run_in_memory(with_values(panel, SPIKES), QUICK)
    missing, expected = run_in_memory(with_values(panel, [(*place, np.nan) for *place, _ in SPIKES]), QUICK)
    for column, other in zip(made[3:], expected[3:], strict=True):
        np.testing.assert_array_equal(column, other)
    assert (huge.too_large, missing.too_large) == (len(SPIKES), 0)
    assert (huge.absent, huge.unforecast) == (missing.absent, missing.unforecast)
    beyond = "beyond 1e150, or 1e100 times the stream's typical change"
    said = f"Too large to use ({beyond}), and taken as missing: 5 values."
    assert said in in_words(huge)
    assert not [sentence for sentence in in_words(missing) if sentence.startswith("Too large")]


def test_a_value_far_beyond_the_usual_change_of_its_stream_is_counted_too():
    forecaster, _ = run_in_memory(with_values(field(), [(300, 1, 1e120), (20, 0, -1e130)]), QUICK)
    assert forecaster.too_large == 2
    assert forecaster.absent == 1  # the other is before the forecasts that count


@pytest.mark.parametrize("pieces", [1, 7, 400])
def test_the_count_does_not_depend_on_how_values_arrive_and_is_saved(pieces):
    panel = with_values(field(), [*SPIKES, (200, 3, 1e120)])
    forecaster, _ = run_in_memory(field(), QUICK)
    preparation = Preparation(forecaster.preparation.lags, forecaster.graph, forecaster.units)
    blank = LearnerEngine(forecaster.learner.with_features(forecaster.learner.n_features), preparation)
    for part in np.array_split(np.arange(400), pieces):
        blank.advance(part, panel.values[part], panel.tasks)
        blank = loads(dumps(blank))
    assert blank.too_large == len(SPIKES) + 1


def test_a_model_saved_before_there_was_the_count_has_none():
    forecaster, _ = run_in_memory(field(), QUICK)
    dumped = forecaster.dump()
    del dumped["state"]["too_large"]
    assert LearnerEngine.restore(dumped).too_large == 0


@pytest.mark.parametrize(
    "first",
    [
        np.full(400, 1e308),
        np.where(np.arange(400) % 2, 1.7e308, -1.7e308),
        np.where(np.arange(400) < 200, np.arange(400), 1e308),
        1e149 * np.arange(400),
        1e-308 * np.arange(400),
    ],
    ids=["constant", "changing sign", "from the middle on", "across the limit", "tiny"],
)
def test_a_stream_of_any_size_beside_others_runs_and_draws(first, tmp_path):
    panel = field()
    values = panel.values.copy()
    values[:, 0] = first
    done, page = report_of(replace(panel, values=values), tmp_path)
    count = int((np.abs(first) > 1e150).sum())
    assert done.forecaster.too_large == count
    assert ("too large to use" in page) == (count > 0)
    insist_drawn(tmp_path)


def test_a_table_of_values_too_large_says_why_nothing_can_be_tuned():
    panel = field()
    with pytest.raises(bd.InputError, match="beyond 1e150 count as missing: use a larger unit"):
        run_in_memory(replace(panel, values=1e306 * panel.values), Settings((), lags=3))


@pytest.mark.parametrize("size", [1e306, 1e-306])
def test_a_study_refuses_values_whose_squares_are_no_numbers(size):
    panel = field(steps=900)
    with pytest.raises(bd.InputError, match="another unit"):
        plan_for(replace(panel, values=size * panel.values))


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
@pytest.mark.parametrize(
    ("first", "ahead"),
    [
        ("9998-11-27", "10000-01-01"),
        ("9999-06-01", "10000-07-05"),
        ("0001-01-01", "0002-02-05"),
        ("-0001-12-01", "0001-01-04"),
        ("100000-01-01", "100001-02-04"),
    ],
)
def test_dates_of_any_year_run_are_forecast_and_drawn(first, ahead, suffix, tmp_path):
    panel = field()
    times = np.datetime64(first, "us") + np.arange(400) * np.timedelta64(1, "D")
    done, page = report_of(replace(panel, times=times), tmp_path, suffix)
    assert done.forecaster.ahead().times[0] == np.datetime64(ahead)
    assert str(times[-1]).split("T")[0] in page
    assert tail(done.forecasts, 4)["time"].astype("datetime64[us]").tolist() == [times[-1].item()] * 4
    insist_drawn(tmp_path)


@pytest.mark.parametrize("first", [-400, -(2**61), 2**61])
def test_times_may_be_any_whole_numbers(first, tmp_path):
    panel = field()
    done, page = report_of(replace(panel, times=first + np.arange(400)), tmp_path)
    assert done.forecaster.ahead().times[0] == first + 400
    assert str(first + 399) in page
    insist_drawn(tmp_path)
    drawn = (tmp_path / "report" / "figures" / "run-forecasts.svg").read_text()
    assert ("Time after" in drawn) == (abs(first) > 2**52)
