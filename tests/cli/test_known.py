"""What is known ahead, from files and lines: read in time, however a table is cut, and reported where missing."""

import json

import numpy as np
import pandas as pd
import pytest

import braided as bd
from braided.datasets import shop_sales
from braided.forecasting.auto import Auto
from braided.runs import Live, Settings, load_live, run
from braided.tables import open_rounds
from tests.auto import same
from tests.cli.test_auto import called
from tests.runs.kills import insist_same_bytes_after_kills
from tests.unit.test_plan import MEMBERS

H, AHEAD_BY = 4, 5  # the horizon; days without a value at the end of the table
NAMED = ("--value", "sales", "--known", "promotion", "--horizon", str(H))
FEW = Settings(auto=Auto(MEMBERS, horizon=H))
COLUMNS = {"value": "sales", "known": ["promotion"]}


@pytest.fixture
def frame(tmp_path, monkeypatch):
    """Sales of three shops, the last days of which only have promotions."""
    sales = shop_sales(seed=0, days=120, shops=3)
    panel = sales.panel
    values = panel.values.copy()
    values[-AHEAD_BY:] = np.nan
    values[50, 1], values[60] = np.nan, np.nan
    days, shops = np.indices(values.shape)
    table = pd.DataFrame(
        {
            "day": panel.times[days.ravel()].astype(str),
            "shop": np.array(panel.tasks)[shops.ravel()],
            "sales": values.ravel(),
            "promotion": sales.promotions.ravel().astype(int),
            "noise": np.random.default_rng(0).normal(size=values.size).round(3),
        }
    )
    monkeypatch.chdir(tmp_path)
    table.to_csv("all.csv", index=False)
    n = AHEAD_BY * len(panel.tasks)
    table[:-n].to_csv("past.csv", index=False)
    table[-n:].drop(columns="sales").to_csv("future.csv", index=False)
    return table


def go(folder, table="all.csv", every=10**6, settings=FEW, **reading):
    rounds = open_rounds(table, **COLUMNS | reading)
    return run(rounds, settings, folder / "forecasts.csv", folder / "model", every=every)


@pytest.mark.parametrize("features", [[], ["noise"]], ids=["known ahead", "and known last"])
def test_forecasts_do_not_depend_on_how_a_table_is_cut(frame, tmp_path, features):
    whole = go(tmp_path / "whole", features=features)
    assert whole.forecaster.rounds == 120 - AHEAD_BY - 1  # the day without any value is no round
    for folder, every, reading in (
        ("pieces", 7, {}),
        ("batches", 10**6, {"batch_rows": 4, "sort_rows": 0}),
        ("both", 40, {"batch_rows": 50, "sort_rows": 10}),
    ):
        other = go(tmp_path / folder, every=every, features=features, **reading)
        assert other.forecasts.read_bytes() == whole.forecasts.read_bytes()
        same(other.forecaster.ahead(), whole.forecaster.ahead())
    assert not whole.forecaster.plan_in_words()
    if features:
        return
    engine = bd.Forecaster(horizon=H, known="promotion", members=MEMBERS)
    made = engine.update(
        frame.day.to_numpy("datetime64[D]"), frame.sales, frame.shop.to_numpy(), known=frame[["promotion"]].to_numpy()
    )
    np.testing.assert_array_equal(pd.read_csv(whole.forecasts).forecast, made.forecast)


def test_a_long_time_without_values_is_cut_like_any_other(tmp_path):
    """Longer than the plan that is kept."""
    sales = shop_sales(seed=0, days=1300, shops=2)
    values = sales.panel.values.copy()
    values[120:1200] = np.nan
    days, shops = np.indices(values.shape)
    table = {"day": days.ravel(), "shop": np.array(["a", "b"])[shops.ravel()], "sales": values.ravel()}
    pd.DataFrame(table | {"promotion": sales.promotions.ravel()}).to_csv(tmp_path / "gap.csv", index=False)
    reading = {"time": "day", "table": tmp_path / "gap.csv"}
    whole, cut = go(tmp_path / "whole", **reading), go(tmp_path / "cut", every=222, **reading)
    assert cut.forecasts.read_bytes() == whole.forecasts.read_bytes()


def test_a_run_that_was_killed_ends_with_the_same_bytes(frame, tmp_path, monkeypatch):
    insist_same_bytes_after_kills(
        lambda folder: go(folder, every=60, batch_rows=100, sort_rows=0), tmp_path, monkeypatch
    )


def test_what_is_known_may_come_with_the_table_or_with_forecast(frame, monkeypatch, capsys):
    for name in ("all", "past"):
        code, printed, _ = called(monkeypatch, capsys, "run", f"{name}.csv", *NAMED, "--out", name)
        assert not code
        assert "known ahead 'promotion'" in printed
    whole = called(monkeypatch, capsys, "forecast", "all/model.braided", "--format", "csv")
    assert whole[0] == 0
    assert whole[2] == ""
    blind = called(monkeypatch, capsys, "forecast", "past/model.braided", "--format", "csv")
    assert "'promotion': not known for 12 of 12 forecasts, the first of them 1 round ahead" in blind[2]
    assert blind[1] != whole[1]
    told = called(monkeypatch, capsys, "forecast", "past/model.braided", "--future", "future.csv", "--format", "csv")
    assert told == whole
    frame[-2 * 3 :].to_csv("rows.csv", index=False)
    rows = called(monkeypatch, capsys, "forecast", "past/model.braided", "rows.csv", "--format", "csv")
    assert "not known for 9 of 12 forecasts" in rows[2]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("run", "all.csv", "--value", "sales", "--known", "price"), "has 'price', which is no column"),
        (("run", "all.csv", "--value", "sales", "--known", "promotion", "--features", "promotion"), "have 'promotion'"),
        (
            ("run", "all.csv", "--value", "sales", "--known", "promotion", "--method", "mt-wrls"),
            "only Auto uses what is known ahead",
        ),
        (("tune", "all.csv", "--value", "sales", "--known", "promotion"), "only Auto uses what is known ahead"),
        (("run", "wide.csv", "--known", "shop 1"), "--known (known= in Python) names columns of a long table"),
        (("forecast", "plain/model.braided", "--future", "future.csv"), "leave out --future"),
        (
            ("run", "all.csv", "--value", "sales", "--model", "plain/model.braided", "--known", "promotion"),
            "name the same columns",
        ),
    ],
)
def test_options_that_make_no_sense_are_refused(frame, monkeypatch, capsys, command, said):
    frame.pivot(index="day", columns="shop", values="sales").to_csv("wide.csv")
    called(monkeypatch, capsys, "run", "past.csv", "--value", "sales", "--features", "promotion", "--out", "plain")
    code, _, error = called(monkeypatch, capsys, *command)
    assert code == 2
    assert said in " ".join(error.split())


# Lines --------------------------------------------------------------------------------------------------------------


def lines_in_time(frame, ahead=6):
    """Lines of the past, each round's preceded by what is known that many days ahead."""
    days = list(dict.fromkeys(frame.day))
    told = 0
    for place, day in enumerate(days[:-AHEAD_BY]):
        while told < min(place + ahead, len(days)):
            for row in frame[frame.day == days[told]].itertuples():
                yield line_of(row, None)
            told += 1
        today = frame[frame.day == day]
        for row in today.itertuples() if today.sales.notna().any() else ():
            yield line_of(row, None if np.isnan(row.sales) else row.sales)


def line_of(row, sales):
    line = {"day": row.day, "shop": row.shop, "sales": sales, "promotion": row.promotion, "noise": row.noise}
    if sales is None:
        del line["sales"]  # may be null, too, but need not be there
    return json.dumps(line)


def columns(*features):
    return {"time": "day", "task": "shop", "value": "sales", "features": features, "known": ("promotion",)}


@pytest.mark.parametrize(("cut", "features"), [(None, ()), (3, ()), (40, ("noise",)), (300, ("noise",))])
def test_lines_are_forecast_like_a_table(frame, tmp_path, cut, features):
    live, made = Live(FEW, **columns(*features)), []
    for number, line in enumerate(lines_in_time(frame), 1):
        made += live.feed(line, number)
        if number == cut:
            live.save(tmp_path / "live")
            live = Live(FEW, load_live(tmp_path / "live"), **columns(*features))
    made += live.end()
    assert not live.rejected
    table = go(tmp_path / "run", "past.csv", features=features).forecaster
    assert live.forecaster.rounds == table.rounds
    table.learn_known_ahead(*known_of(frame))
    live.forecaster.learn_known_ahead(*known_of(frame))
    same(live.forecaster.ahead(), table.ahead())


def known_of(frame):
    later = frame[-AHEAD_BY * 3 :]
    days = later.day.to_numpy("datetime64[D]")[::3]
    return days, later.promotion.to_numpy(float).reshape(AHEAD_BY, 3, 1), tuple(later.shop[:3])


def test_a_line_of_a_day_too_far_ahead_is_refused(frame):
    live = Live(FEW, max_ahead=10, **columns())
    rows = [row for row in frame.itertuples() if not np.isnan(row.sales)]
    for number, row in enumerate(rows[:60], 1):
        live.feed(line_of(row, row.sales), number)
    far = next(row for row in frame.itertuples() if row.day == "2024-03-20")
    with pytest.raises(bd.errors.InputError, match="what is known of 2024-03-20, more than 10 steps after"):
        live.feed(line_of(far, None), 61)
    assert live.feed(line_of(rows[75], None), 62) == []
    assert live.forecaster.plan.stamps.max() > live.forecaster.last_stamp


def test_it_is_said_when_a_plan_ends(frame):
    said = []
    live = Live(FEW, note=said.append, **columns())
    rows = [row for row in frame.itertuples() if not np.isnan(row.sales)]
    days = list(dict.fromkeys(frame.day))
    number = 0
    for row in rows[:150]:
        place = days.index(row.day)
        told = [one for one in frame.itertuples() if one.day == days[place + H] and place % 30 < 25]
        for line in [*(line_of(one, None) for one in told if one.shop == row.shop), line_of(row, row.sales)]:
            number += 1
            live.feed(line, number)
    noted = [text for text in said if "not known" in text]
    assert len(noted) == 1  # on the 26th day, and not on each one after it
    assert "the first of them 4 rounds ahead; these are made without it, and their intervals may be too" in noted[0]


def test_live_needs_auto_for_what_is_known_ahead():
    with pytest.raises(bd.errors.InputError, match="only Auto uses what is known ahead"):
        Live(Settings(("mt-wrls",)), **columns())
