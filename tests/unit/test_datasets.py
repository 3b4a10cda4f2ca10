"""Embedded data and the synthetic wind field."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import braided as bd
from braided.datasets import EMBEDDED, embedded, wind_field

SHARED = Path(__file__).parents[3] / "shared" / "data"


@pytest.mark.parametrize("name", EMBEDDED)
def test_embedded_data_load_with_their_source(name):
    panel = embedded(name)
    assert panel.name == name
    assert len(panel.source) > 20
    assert not panel.synthetic
    assert panel.values.shape == (len(panel.times), len(panel.tasks))
    assert np.nanmin(panel.values) >= 0
    with pytest.raises(ValueError, match="read-only"):
        panel.values[0, 0] = 1.0


def test_la_haute_borne_has_the_runs_it_should():
    panel = embedded("la-haute-borne")
    assert panel.values.shape == (105_120, 4)
    assert "ENGIE" in panel.source
    assert len(panel.complete_runs(400)) == 22
    assert (np.diff(panel.times) == np.timedelta64(10, "m")).all()


@pytest.mark.parametrize(
    ("name", "file", "columns", "unit"),
    [
        ("la-haute-borne", "la_haute_borne_4turbines_10min.csv.gz", ("timestamp", "site", "wind_speed"), 0.01),
        ("us-incomes", "us_state_incomes_annual.csv.gz", ("year", "state", "income"), 1.0),
        ("us-employment", "us_employment_monthly.csv.gz", ("timestamp", "sector", "employed"), 0.1),
        ("melbourne-pedestrians", "melbourne_pedestrians_hourly.csv.gz", ("timestamp", "sensor", "count"), 1.0),
    ],
)
def test_embedded_data_are_those_of_the_source(name, file, columns, unit):
    if not (SHARED / file).exists():
        pytest.skip(f"{file} is not here to compare with")
    time, task, value = columns
    wide = pd.read_csv(SHARED / file).pivot(index=time, columns=task, values=value)
    panel = embedded(name)
    assert panel.tasks == tuple(wide.columns)
    np.testing.assert_allclose(panel.values, wide.to_numpy(float), atol=unit / 2 + 1e-9)
    if panel.times.dtype.kind == "M":
        times = pd.to_datetime(wide.index, utc=True)
        assert (times.tz_localize(None) == pd.DatetimeIndex(panel.times)).all()


def test_employment_and_pedestrians_are_what_they_say():
    employment, walkers = embedded("us-employment"), embedded("melbourne-pedestrians")
    assert employment.values.shape == (357, 145)
    assert len(set(employment.tasks)) == 145
    assert not np.isnan(employment.values).any()
    months = employment.times.astype("datetime64[M]")
    assert (np.diff(months) == np.timedelta64(1, "M")).all()
    assert employment.complete_runs(1) == [(0, 357)]  # months are evenly spaced
    assert walkers.values.shape == (17_542, 4)
    missing = np.isnan(walkers.values).mean(axis=0)
    assert missing.max() == pytest.approx(0.17, abs=0.005)
    assert missing.min() < 0.001
    assert "CC BY 4.0" in walkers.source


def test_pedestrians_alone_have_a_timezone_and_their_rounds_keep_it(tmp_path):
    panels = {name: embedded(name) for name in EMBEDDED}
    zones = {name: panel.timezone for name, panel in panels.items() if panel.timezone is not None}
    assert zones == {"melbourne-pedestrians": "Australia/Melbourne"}
    for name, panel in panels.items():
        rounds = bd.tables.open_rounds(panel)
        assert rounds.timezone == zones.get(name)
        first = next(rounds.chunks())
        assert rounds.is_utc == (name in zones)
        assert (first.times == panel.times[: len(first.times)]).all()


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_panel_with_a_timezone_is_written_with_utc_offsets(tmp_path, suffix):
    times = np.datetime64("2015-01-01T01:00:00") + np.arange(2)
    panel = bd.tables.Panel(
        "two", ("a", "b"), times, np.array([[1.0, 2], [3, 4]]), "made up", timezone="Asia/Kathmandu"
    )
    assert "to 2015-01-01T01:00:01 UTC," in repr(panel)
    path = tmp_path / f"two.{suffix}"
    bd.tables.write_table(panel, path)
    rounds = bd.tables.open_rounds(path)
    chunk = next(rounds.chunks())
    assert rounds.is_utc
    assert rounds.timezone is None
    assert (chunk.times == times).all()
    assert (chunk.values == panel.values).all()


def test_a_month_left_out_ends_a_complete_run():
    times = np.delete(np.arange("2015-01", "2017-01", dtype="datetime64[M]"), 5).astype("datetime64[s]")
    panel = bd.tables.Panel("one", ("a",), times, np.ones((23, 1)), "made up")
    assert panel.complete_runs(1) == [(0, 5), (5, 23)]


def test_a_timezone_needs_dates():
    with pytest.raises(bd.InputError, match="timezone is 'UTC', but times are int64: give dates, in UTC"):
        bd.tables.Panel("a", ("a",), np.arange(2), np.ones((2, 1)), "made up", timezone="UTC")


def test_an_unknown_name_is_told_what_there_is():
    with pytest.raises(bd.InputError, match="no embedded data 'paris': there are 'la-haute-borne', 'us-incomes'"):
        embedded("paris")


def test_the_synthetic_field_is_the_same_for_a_seed_and_says_what_it_is():
    a, b, c = wind_field(1, 300), wind_field(1, 300), wind_field(2, 300)
    assert (a.values == b.values).all()
    assert (a.values != c.values).any()
    assert a.synthetic
    assert "synthetic" in repr(a)
    assert (a.values >= 0).all()


def test_neighbours_in_the_synthetic_field_move_together_and_upstream_moves_first():
    """Differences of sites are correlated, and for some pairs more so with a delay: the field is carried."""
    steps = np.diff(wind_field(0, 8000).values, axis=0)
    now = np.corrcoef(steps.T)
    lagged = np.corrcoef(steps[1:].T, steps[:-1].T)[:10, 10:]
    pairs = ~np.eye(10, dtype=bool)
    assert np.median(now[pairs]) > 0.1
    assert (lagged[pairs] > now[pairs] + 0.1).any()


def test_the_one_step_gain_of_sharing_shows_on_the_synthetic_field():
    """Neighbour lags and a graph beat one filter per site, synchronously; both with the same penalty."""
    panel = wind_field(3, 900)
    graph = bd.TaskGraph.from_history(panel.values[:300], panel.tasks)
    own, around = bd.Lags(3), bd.Lags(3, neighbours=3, gap=True)
    s, t = own.samples(panel.values[300:], panel.tasks), around.samples(panel.values[300:], panel.tasks, graph)
    alone = bd.WRLS(panel.tasks, own.n_features, 1.0).progressive(s.X, s.y, s.tasks, rounds=s.steps)
    together = bd.MTWRLS(graph, around.n_features, 1.0).progressive(t.X, t.y, t.tasks, rounds=t.steps)
    assert np.std(t.y - together) < 0.9 * np.std(s.y - alone)
