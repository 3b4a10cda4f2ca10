"""The report of Auto: what it says of known records, what it shows, odd tables and many streams."""

import copy
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import braided as bd
from braided.cli.console import fitted
from braided.datasets import wind_field
from braided.forecasting import Record
from braided.forecasting.auto import Auto, AutoEngine
from braided.report import in_words, write_run_report
from braided.report.run import pictures
from braided.report.run.auto_report import AutoReport
from braided.runs import Settings, run
from braided.state import dumps, loads
from braided.tables import open_rounds
from braided.tables.panel import Panel
from tests.auto import walks
from tests.model_files import parts_of, signed

RULE = "recent mean"


def panel_of(values, tasks=None):
    """A panel of hourly values, synthetic."""
    times = np.datetime64("2024-01-01", "us") + np.arange(len(values)) * np.timedelta64(1, "h")
    tasks = tasks or tuple(f"site {t}" for t in range(1, values.shape[1] + 1))
    return Panel("wind", tasks, times, values, "synthetic", synthetic=True)


def wind(steps=80, sites=4):
    return panel_of(wind_field(seed=0, steps=steps, sites=sites).values)


def learned(panel, **auto):
    engine = AutoEngine(Auto(**auto))
    engine.advance(panel.times, panel.values, panel.tasks)
    return engine


def made_run(panel, folder, **auto):
    wide = pd.DataFrame(panel.values, panel.times, panel.tasks).rename_axis("time")
    long = wide.melt(var_name="site", ignore_index=False).reset_index()
    settings = Settings(auto=Auto(**auto))
    done = run(open_rounds(long), settings, folder / "forecasts.parquet", folder / "model.braided")
    page = write_run_report(done, folder)
    return done, page.read_text("utf-8"), (folder / "report.md").read_text("utf-8")


@pytest.fixture(scope="module")
def base():
    return learned(wind(), compares=True, seasons=())


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compared")
    return *made_run(wind(), folder, compares=True, seasons=()), folder


def with_errors(engine, factors, wild=0.02, rounds=640):
    """The engine with a record made by hand: errors of 1, times a factor by contender (K or T × K), a little wild."""
    engine = copy.copy(engine)
    names, n_streams = engine.record.contenders, len(engine.columns)
    engine.record = Record.blank(np.full(n_streams, 2.0), names)
    sizes = np.ones((n_streams, len(names)))
    for name, factor in factors.items():
        sizes[:, names.index(name)] = factor
    row, place = np.divmod(np.arange(rounds * n_streams), n_streams)
    noise = np.random.default_rng(0).uniform(1.0 - wild, 1.0 + wild, (len(row), len(names)))
    engine.record.add(sizes[place] * noise, np.full(len(row), np.nan), place, row, rounds)
    return engine


# Sentences -------------------------------------------------------------------------------------------------------


def test_a_sure_gain_is_said_of_each_in_order(base):
    engine = with_errors(base, {"model": 0.8, RULE: 0.9, "own past": 0.84}, wild=0.001)
    assert in_words(engine)[:4] == [
        "11.1 % less error than the best simple rule in hindsight, “recent mean” (95 % sure). Less error for all 4 "
        "streams.",
        "4.8 % less error than one filter per stream (95 % sure). Less error for all 4 streams.",
        "20.0 % less error than without sharing (95 % sure). Less error for all 4 streams.",
        "20.0 % less error than “no change”, the forecast that the next value equals the last (95 % sure). Less error "
        "for all 4 streams.",
    ]


def test_a_loss_is_said_as_plainly_and_its_streams_are_named(base):
    engine = with_errors(base, {"model": 1.1, RULE: np.array([0.5, 1.05, 1.0, 1.2]), "own past": 1.0})
    first, second = in_words(engine)[:2]
    assert "more error than the best simple rule in hindsight, “recent mean” (95 % sure)" in first
    assert first.endswith("Less error for 1 of 4 streams. The rule is better for site 1, site 3, site 2.")
    assert second.startswith("10.0 % more error than one filter per stream (95 % sure). Less error for none of 4")


def test_a_difference_that_could_be_chance_is_none(base):
    engine = with_errors(base, {"model": 0.945, RULE: 0.95}, wild=0.9)
    assert in_words(engine)[0].startswith("About the same error as the best simple rule in hindsight, “")
    few = with_errors(base, {"model": 0.5}, wild=0.0, rounds=7)
    assert "50.0 % less error than one filter per stream, but that could be chance." in in_words(few)[1]
    same = in_words(with_errors(base, {"model": 0.9, RULE: 0.9}, wild=0.0))[0]
    assert (
        same == "The same error as the best simple rule in hindsight, “recent mean”. Less error for none of 4 streams."
    )


def test_no_change_as_the_best_rule_is_said_once(base):
    engine = with_errors(base, {"model": 0.9, "no change": 0.95})
    assert AutoReport(engine).best_rule == "no change"
    assert sum("no change" in sentence for sentence in in_words(engine)) == 1


def test_the_best_rule_is_that_of_the_mean_over_the_streams(base):
    engine = with_errors(base, {RULE: np.array([0.2, 1.0, 1.0, 1.0]), "mean so far": 0.85})
    assert AutoReport(engine).best_rule == RULE  # 0.8 on average
    assert AutoReport(with_errors(base, {RULE: 0.9, "tied": 0.1})).best_rule == RULE  # "tied" learns


def test_it_says_how_to_measure_sharing_or_that_there_is_none():
    shared = in_words(learned(wind(30), seasons=()))
    assert "How much sharing helps was not measured: --compare does that, but takes about twice as long." in shared
    alone = in_words(learned(wind(30), seasons=(), sharing=False))
    assert "Nothing is shared: each stream has its own mixture." in alone
    assert not any("--compare" in sentence for sentence in alone)


def test_of_one_stream_nothing_is_counted_and_nothing_is_shared():
    said = " ".join(in_words(learned(wind(60, sites=1), seasons=())))
    assert "one filter on the stream's own past" in said
    for absent in ("streams", "by stream", "--compare", "shared"):
        assert absent not in said


@pytest.mark.parametrize(("rounds", "said"), [(1, "1."), (3, "3."), (20, "20.")])
def test_before_scores_begin_it_says_so(rounds, said):
    sentences = in_words(learned(wind(rounds)))
    assert sentences == [f"No forecast is scored yet: scoring begins after 20 rounds; learned so far: {said}"]


def test_streams_that_never_change_have_no_error_to_compare_with():
    engine = learned(panel_of(np.full((40, 2), 7.0)))
    assert in_words(engine)[0] == "Nothing changed after the first 20 rounds, so there is no error to compare with."


def test_where_members_change_it_names_the_rounds_before_the_scores():
    times, values, tasks = walks(230)
    values = np.abs(values) + 1.0
    values[150] = -0.5  # members that see growth leave when everything is next measured
    values[190:] = values[190]
    engine = AutoEngine(Auto())
    engine.advance(times, values, tasks)
    assert engine.record.rounds == 30
    assert in_words(engine)[0].startswith("Nothing changed after the first 200 rounds")


def test_only_streams_that_join_after_the_last_measuring_joined_late():
    values = wind(260).values.copy()
    values[:150, 2] = np.nan  # there when everything is measured on 200 rounds
    values[:215, 3] = np.nan
    engine = learned(panel_of(values), seasons=())
    assert engine.latecomers == ["site 4"]
    said = in_words(engine)
    assert "Joined late: site 4." in said
    (similar,) = (table for table in AutoReport(engine).tables() if table.name == "links")
    assert [row[1] for row in similar.rows if row[0] == "site 4"] == ["average, not measured"]
    assert not any("site 4" in cell for row in similar.rows for cell in row[1:])
    early = panel_of(values[:230])
    waiting = learned(early, seasons=())
    assert (waiting.latecomers, waiting.waiting) == ([], ["site 4"])
    assert "Too few values so far, so the forecast is “no change”: site 4." in in_words(waiting)
    assert not any("Joined late" in sentence for sentence in in_words(waiting))
    assert loads(dumps(engine)).latecomers == ["site 4"]


def test_it_says_which_rounds_do_not_count_where_scores_begin_anew():
    season = np.sin(np.arange(260)[:, None] * 2 * np.pi / np.array([12, 12, 12]))
    values = season + 0.1 * np.random.default_rng(0).normal(size=season.shape)
    engine = AutoEngine(Auto())
    for end in (60, 260):
        engine.advance(np.arange(engine.rounds, end), values[engine.rounds : end], ("a", "b", "c"))
        first = end - engine.record.rounds
        assert f"Forecasts of the first {first} rounds do not count." in AutoReport(engine).reading()["Forecast"]
    assert first >= 100  # a season was found


# Copies ----------------------------------------------------------------------------------------------------------


def test_copies_are_named_and_kept():
    values = wind(60).values
    panel = panel_of(np.column_stack([values, 1.8 * values[:, 1] + 32.0, values[:, 1], -values[:, 0]]))
    engine = learned(panel, seasons=())
    assert engine.copies == ((1, 4, 5),)
    assert "Copies of each other: site 2 = site 5 = site 6." in in_words(engine)
    assert AutoReport(engine).copied().rows == (("site 2", "site 5, site 6"),)
    assert loads(dumps(engine)).copies == engine.copies


def test_of_many_copies_some_are_named():
    values = wind(60, sites=6).values
    engine = learned(panel_of(np.hstack([values] * 8)), seasons=())
    said = next(one for one in in_words(engine) if one.startswith("Copies"))
    first = "site 1 = site 7 = site 13 = site 19 = site 25 and 3 more"
    assert said.startswith(f"Copies of each other: {first}; site 2 = ")
    assert said.endswith("; and 2 more groups.")


# Weights ---------------------------------------------------------------------------------------------------------


def test_weights_over_time_are_those_of_the_scored_rounds_and_depend_on_no_cut():
    panel = wind(130)
    whole, cut = learned(panel, seasons=()), AutoEngine(Auto(seasons=()))
    edges = [0, 3, 21, 50, 57, 130]
    for first, end in zip(edges, edges[1:], strict=False):  # noqa: RUF007
        cut.advance(panel.times[first:end], panel.values[first:end], panel.tasks)
        cut = loads(dumps(cut))
    assert whole.weights.rounds == whole.record.rounds == 110
    np.testing.assert_allclose(whole.weights.sums, cut.weights.sums, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(whole.weights.sums.sum(axis=1)[:110], 1.0)
    np.testing.assert_allclose(AutoReport(whole).mean_weights().sum(axis=1), 1.0)
    whole.forget_record()
    assert not whole.weights.sums.any()
    assert not whole.ensemble.used.any()
    assert AutoReport(whole).carriers().rows == ()


def test_the_table_names_the_members_with_most_weight(base):
    engine = copy.copy(base)
    names = engine.ensemble.names
    engine.ensemble.used[:] = 0.0
    engine.ensemble.used[0, [names.index("tied"), names.index(RULE)]] = 30.0, 10.0
    engine.ensemble.used[1:, 0] = 5.0
    table = AutoReport(engine).carriers()
    assert table.rows[0] == ("site 1", "tied 75 %", "recent mean 25 %", "")
    assert table.rows[1] == ("site 2", "own past 100 %", "", "")
    assert [row[0] for row in AutoReport(engine).carriers(most=2).rows] == ["site 1", "site 2"]
    assert "2 more streams are not shown" in AutoReport(engine).carriers(most=2).note


def test_of_a_constant_stream_it_says_that_no_change_is_forecast():
    values = wind(60, sites=3).values.copy()
    values[:, 1] = 7.0
    engine = learned(panel_of(values), seasons=())
    assert AutoReport(engine).carriers().rows[1] == ("site 2", "no change 100 %", "", "")
    assert "Constant so far, so the forecast is “no change”: site 2." in in_words(engine)
    engine.advance(np.datetime64("2024-02-01", "us")[None], [[1.0, 8.0, 1.0]], engine.tasks)
    assert engine.constant == []


def test_the_picture_shows_a_few_members_by_name_and_the_rest_as_one(base):
    drawn = next(one for one in AutoReport(base).own_pictures() if one.name == "weights")
    labels = [text.get_text() for text in drawn.figure.legends[0].get_texts()]
    assert len(labels) == 9
    assert labels[0] == f"the other {len(base.ensemble.names) - 8}"  # on top of the stack
    tops = [line.get_ydata()[-1] for line in drawn.figure.axes[0].lines]
    assert tops == sorted(tops)
    assert tops[-1] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("copies", [[0, 0]], "a stream is a copy twice"),
        ("copies", [[0, 9]], "place of a copy"),
        ("copies", 3, "copies"),
        ("n_measured", 9, "n_measured"),
        ("weights", None, "weights of 0 rounds, and errors of 60"),
    ],
)
def test_a_file_with_parts_that_do_not_fit_is_refused(base, name, value, said):
    header, arrays = parts_of(dumps(base))
    state = header["model"]["forecaster"]["dict"]["state"]["dict"]
    if name == "weights":
        state["weights"]["value"]["dict"]["rounds"] = 0
    else:
        state[name] = value
    with pytest.raises(bd.FileError, match=said):
        loads(signed(header, arrays))


# Tables, facts and pages -----------------------------------------------------------------------------------------


def test_numbers_of_the_table_are_those_of_the_record(base):
    table, record = AutoReport(base).errors(), base.record
    assert table.columns == ("Stream", "RMSE", "no change", "best rule", "one filter", "unshared", "holds, %", "loss")
    rows = {row[0]: row for row in table.rows}
    own = record.rmse_of("model")
    for place, task in enumerate(base.tasks):
        cells = rows[task]
        assert cells[1] == f"{own[place] * record.scale[place]:.4g}"
        assert cells[2] == f"{own[place] / record.rmse_of('no change')[place]:.3f}"
        assert cells[7] == f"{record.pinball[place]:.3f}"
        for cell, name in zip(cells[3:6], (AutoReport(base).best_rule, "own past", "without sharing"), strict=True):
            gain = 100.0 * (1.0 - own[place] / record.rmse_of(name)[place])
            assert cell.replace("−", "-") == f"{round(gain, 1) + 0.0:+.1f}"
    gains = [float(row[3].replace("−", "-")) for row in table.rows[:-1]]
    assert gains == sorted(gains, reverse=True)
    assert table.rows[-1][0] == "All 4"


def test_losses_and_quantiles_by_horizon_are_those_of_the_records():
    levels = tuple(np.linspace(0.05, 0.95, 10))
    report = AutoReport(learned(wind(60), horizon=7, quantiles=levels, seasons=()))
    records = report.engine.records
    losses = [row[-1] for row in report.by_horizon().rows]
    assert losses == [f"{record.pinball.mean():.3f}" for record in records]
    table = report.quantiles()
    assert table.columns[1:] == 2 * ("1 ahead", "3 ahead", "5 ahead", "7 ahead")  # of many horizons, four
    for place, row in enumerate(table.rows):
        shares = [100.0 * records[h - 1].quantile_coverage[:, place].mean() for h in (1, 3, 5, 7)]
        assert row[:5] == (f"{levels[place]:g}", *(f"{share:.1f}" for share in shares))
        assert row[5:] == tuple(f"{records[h - 1].quantile_pinball[:, place].mean():.3f}" for h in (1, 3, 5, 7))
    assert not AutoReport(learned(wind(60), seasons=())).quantiles().rows


def test_means_are_named_by_the_number_of_streams_that_have_one():
    values = wind(60).values.copy()
    values[19:, 2] = 7.0  # nothing changes once scores begin
    table = AutoReport(learned(panel_of(values), seasons=())).errors()
    assert table.rows[-1][0] == "3 of 4"
    assert "Last row: means over the streams that have a number in the column." in table.note


def test_facts_say_what_the_model_goes_by():
    engine = learned(wind(60), timezone="Europe/Lisbon", holidays="PT", low=0.0, high=99.0)
    facts = AutoReport(engine).facts()
    assert facts["Seasons"] == "a day and a week"
    assert facts["Time zone"] == "Europe/Lisbon; times are taken to be local"
    assert facts["Holidays"] == "PT: they count as days off, like weekends"
    assert facts["Bounds"] == "at least 0, at most 99"
    assert facts["Units"].endswith("(measured on the first 20 rounds)")
    assert facts["Scored"] == "the last 40 rounds"
    assert facts["Learners"].startswith("own past; neighbours; tied; tied, long memory; ")
    assert facts["Rules"].startswith("no change; mean so far; ")
    assert facts["Sharing"] == "each stream is tied to 2 others, on average"
    engine.origin = replace(engine.origin, is_utc=True)
    assert AutoReport(engine).facts()["Time zone"].endswith("times are in UTC, and converted to it")
    plain = AutoEngine(Auto())
    plain.advance(np.arange(3), np.eye(3), list("abc"))
    assert AutoReport(plain).facts()["Members"] == "“no change” only, as there are too few rounds"
    assert "whole numbers" in AutoReport(plain).facts()["Time zone"]


def test_a_page_with_the_comparison_shows_all(compared):
    done, html, markdown, _ = compared
    shown = {picture.name for picture in pictures.pictures(done)}
    assert shown == {"over-time", "gains", "sharing", "forecasts", "weights", "graph"}
    assert html.index(in_words(done.forecaster)[0]) < html.index("How good the forecasts are")
    for words in (
        "What carries the forecasts",
        "Which members carry each stream",
        "Without sharing",
        "first 20 rounds",
    ):
        assert words in html
        assert words in markdown


def test_no_sentence_speaks_of_a_tuning_period(compared):
    for text in compared[1:3]:
        assert "tuning" not in text
        assert "Tuned" not in text
        assert "AutoEngine" not in text


def test_the_python_of_the_page_goes_on(compared):
    _, _, markdown, folder = compared
    code = re.search(r"```python\n(.*?)```", markdown, re.DOTALL)[1]
    names = {}
    assert f'load("{folder}/model.braided")' in code
    assert f"braided inspect {folder}/model.braided " in markdown
    exec(code, names)
    assert names["ahead"].tasks == [f"site {t}" for t in range(1, 5)]
    later = wind(82).times[80:]
    names["forecaster"].update(later, wind(82).values[80:], ["site 1", "site 2", "site 3", "site 4"])


@pytest.mark.parametrize("rounds", [3, 10, 25])
def test_short_tables_have_a_page(rounds, tmp_path):
    done, html, markdown = made_run(wind(rounds), tmp_path)
    shown = {picture.name for picture in pictures.pictures(done)}
    assert ("over-time" in shown) == ("weights" in shown) == (rounds > 20)
    assert ("Errors by stream" in html) == (rounds > 20)
    assert ("No forecast is scored yet" in html) == (rounds < 20)
    assert "tuning" not in html
    assert "tuning" not in markdown


def test_one_stream_has_a_page(tmp_path):
    done, html, _ = made_run(wind(60, sites=1), tmp_path)
    assert {picture.name for picture in pictures.pictures(done)} == {"over-time", "forecasts", "weights"}
    assert "Errors by stream" in html
    assert "tuning" not in html


def test_many_streams_have_a_page_that_is_folded_up(tmp_path):
    done, html, _ = made_run(wind(60, sites=60), tmp_path, seasons=())
    assert html.count("<details>") == 2
    assert {"gains", "graph", "weights"} <= {picture.name for picture in pictures.pictures(done)}
    table = AutoReport(done.forecaster).errors(most=10)
    assert [row[0] for row in table.rows][5] == "… 50 more"
    assert table.rows[-1][0] == "All 60"
    assert len(table.rows) == 12


def test_a_narrow_terminal_shows_all_numbers_beside_shorter_names(base):
    table = AutoReport(base).errors()
    long = replace(table, rows=tuple(("a" * 40 + row[0], *row[1:]) for row in table.rows))
    cut = fitted(long, 80)
    assert [row[1:] for row in cut.rows] == [row[1:] for row in table.rows]
    assert max(len(row[0]) for row in cut.rows) < 30
    assert fitted(long, 200) == long
    assert max(len(row[0]) for row in fitted(long, 10).rows) == 12
