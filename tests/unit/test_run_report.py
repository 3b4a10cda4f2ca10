"""The report of a run: what it says, what it leaves out, odd names and odd runs."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

import braided as bd
from braided.forecasting import Origin
from braided.forecasting.clock import NEVER, step_in_words, time_in_words
from braided.report import Summary, in_words, write_run_report
from braided.report.run import engine_report, learner_report, pictures, rows
from braided.report.run.kinds import report_of
from braided.runs import Choice, Run, Settings, Trial, TuningPeriod
from braided.runs.output import ForecastFile
from braided.runs.start import start
from braided.study import METHODS
from braided.tables import Chunk

SINGLE = {"forgetting": 0.999, "penalty": 10.0}
SHARING = SINGLE | {"ridge": 0.01}
NAMES = ("<b>&", "$x_1$", "北|`*_", "a" * 200)
EVERY = {"over-time", "gains", "forecasts", "graph"}


def make_run(
    folder,
    panel=None,
    method="mt-wrls",
    parameters=None,
    head=120,
    rounds=None,
    name="wind.csv",
    suffix=".parquet",
    tried=64,
    logarithm=False,
):
    """A run over a panel, without the command and its search."""
    panel = panel or bd.datasets.wind_field(seed=0, steps=400, sites=4)
    times, values = panel.times[:rounds], panel.values[:rounds]
    parameters = parameters or (SHARING if METHODS[method].shares else SINGLE)
    first = Chunk(times[:head], panel.tasks, values[:head], np.empty((head, len(panel.tasks), 0)))
    best, single = Trial(method, parameters, head if tried else 0, 0.6), Trial("wrls", SINGLE, head, 0.64)
    trials = [best, single, Trial("wrls-neighbours", SINGLE, head, None)] if tried else []
    choice = Choice(best, single, tuple(trials), tried)
    forecaster = start(TuningPeriod.of(first, 4, logarithm), choice, Settings(()), name)
    file = ForecastFile(folder / f"forecasts{suffix}")
    for part, record in ((slice(head), False), (slice(head, None), True)):
        made = forecaster.advance(times[part], values[part], panel.tasks, record=record)
        if record:
            file.add(made)
    path = file.finish()
    file.clear()
    return Run(
        forecaster,
        path,
        {"table": name, "columns": "long table: time 'time'", "version": bd.__version__},
        "begun",
    )


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("small"))


def pictures_of(run):
    return {picture.name: picture for picture in pictures.pictures(run)}


def tables_of(run):
    forecaster = run.forecaster
    made = (report_of(forecaster).errors(), learner_report.trials(forecaster.origin.choice))
    return {table.name: table for table in made if table.rows}


def written(run, folder):
    page = write_run_report(run, folder)
    return page.read_text("utf-8"), (folder / "report.md").read_text("utf-8")


def test_a_run_shows_what_it_has(small):
    assert set(pictures_of(small)) == EVERY
    assert set(tables_of(small)) == {"streams", "tried"}
    for picture in pictures_of(small).values():
        assert picture.alt
        assert picture.caption
        assert picture.size[0] == 461  # 4.8 inches


def test_the_page_begins_with_what_came_of_it(small, tmp_path):
    html, markdown = written(small, tmp_path)
    first = in_words(small.forecaster)[0]
    line = "4 streams, typical step 5 min; 280 rounds scored, after 2012-01-01 09:55 and up to 2012-01-02 09:15."
    for text in (html, markdown):
        assert "wind.csv" in text
        assert text.index(line) < text.index(first) < text.index("How good the forecasts are")
    assert "Ridge 0.01 is the smallest tried: a better one may lie beyond." in html


def test_numbers_of_the_table_are_those_of_the_record(small):
    table, record = tables_of(small)["streams"], small.forecaster.record
    ratio = record.rmse_of("model") / record.rmse_of("no change")
    rows = {row[0]: dict(zip(table.columns[1:], row[1:], strict=True)) for row in table.rows}
    for place, task in enumerate(small.forecaster.tasks):
        own = table.rows[[row[0] for row in table.rows].index(task)]
        assert own[3] == f"{ratio[place]:.3f}"
        gain = 100.0 * (1.0 - record.rmse_of("model")[place] / record.rmse_of("single")[place])
        assert rows[task]["loss"] == f"{record.pinball[place]:.3f}"
        assert rows[task]["gain, %"].replace("−", "-") == f"{round(gain, 1) + 0.0:+.1f}"
    assert table.rows[-1][0] == "All 4"
    assert table.rows[-1][3] == f"{ratio.mean():.3f}"
    gains = [float(row["gain, %"].replace("−", "-")) for row in list(rows.values())[:-1]]
    assert gains == sorted(gains, reverse=True)


def test_the_curve_ends_with_the_error_of_all_forecasts(small):
    record = small.forecaster.record
    axis = pictures_of(small)["over-time"].figure.axes[0]
    rounds, ratio = axis.lines[0].get_data()
    assert rounds[-1] == record.rounds == 280
    assert ratio[-1] == pytest.approx(np.sqrt(record.curve_of("model").sum() / record.curve_of("no change").sum()))


def test_one_filter_per_stream_is_not_compared_with_itself(tmp_path):
    run = make_run(tmp_path, method="wrls")
    assert set(pictures_of(run)) == EVERY - {"gains"}
    assert "gain, %" not in tables_of(run)["streams"].columns
    assert "does not use it" in pictures_of(run)["graph"].caption
    html, _ = written(run, tmp_path)
    assert "Each stream has its own filter." in html


def test_nothing_to_forecast_leaves_the_graph_and_what_was_tried(tmp_path):
    run = make_run(tmp_path, rounds=120)
    assert run.forecasts is None
    assert set(pictures_of(run)) == {"graph"}
    assert set(tables_of(run)) == {"tried"}
    html, markdown = written(run, tmp_path)
    assert "There was nothing to forecast" in html
    assert "nothing to forecast after 2012-01-01 09:55" in markdown


def test_one_round_has_points_and_no_stretch(tmp_path):
    run = make_run(tmp_path, rounds=121)
    assert set(pictures_of(run)) == EVERY - {"forecasts"}
    written(run, tmp_path)


def test_missing_values_leave_holes(tmp_path):
    panel = bd.datasets.wind_field(seed=0, steps=300, sites=3)
    values = panel.values.copy()
    values[250:260, 0] = np.nan
    values[200:, 2] = np.nan
    panel = replace(panel, values=values)
    for suffix in (".csv", ".parquet"):
        drawn = pictures_of(make_run(tmp_path, panel, suffix=suffix))["forecasts"]
        axes = {axis.get_title("left"): axis for axis in drawn.figure.axes}
        assert axes.keys() == {"site 1", "site 2"}  # the third ended long before
        actual = axes["site 1"].lines[0].get_ydata()
        assert len(actual) == 100
        assert np.isnan(actual[50:60]).all()


def test_lines_do_not_cross_a_gap_of_the_clock(tmp_path):
    panel = bd.datasets.wind_field(seed=0, steps=200, sites=2)
    times = panel.times.copy()
    times[150:] += np.timedelta64(3, "h")
    run = make_run(tmp_path, replace(panel, times=times))
    actual = pictures_of(run)["forecasts"].figure.axes[0].lines[0].get_ydata()
    assert np.isnan(actual).sum() == 1
    assert run.forecaster.gaps == 1


def test_a_stream_that_stands_still_is_drawn(tmp_path):
    panel = bd.datasets.wind_field(seed=0, steps=240, sites=2)
    values = panel.values.copy()
    values[120:, 1] = values[119, 1]
    written(make_run(tmp_path, replace(panel, values=values)), tmp_path)


def test_integers_are_times(tmp_path):
    run = make_run(tmp_path, bd.datasets.embedded("us-incomes"), head=30, logarithm=True, name="us-incomes")
    html, _ = written(run, tmp_path)
    assert "48 streams, typical step 1; 51 rounds scored, after 1958 and up to 2009." in html
    assert "RMSE in the units of the values" in html
    assert "error of the logarithms over “no change”" in html  # of the trials
    axis = pictures_of(run)["forecasts"].figure.axes[-1]
    assert axis.get_xlabel() == "Time"
    assert "<details>" in html  # a long table is folded up


def test_strange_names_are_shown_as_they_are(tmp_path):
    wind = bd.datasets.wind_field(seed=0, steps=200, sites=4)
    run = make_run(tmp_path, replace(wind, tasks=NAMES), suffix=".csv", name="<script>alert(1)</script>")
    html, markdown = written(run, tmp_path / "report")
    assert "<b>" not in html
    assert "<script" not in html
    assert "&lt;b&gt;&amp;" in html
    assert r"\<b\>\&" in markdown
    assert "<script" not in re.sub(r"\\<", "", markdown)
    files = sorted((tmp_path / "report" / "figures").iterdir())
    assert {file.name for file in files} == {f"run-{name}.{kind}" for name in EVERY for kind in ("png", "svg")}
    for file in files[1::2]:
        ElementTree.parse(file)
    links = re.findall(r"\]\(([^)]+)\)", markdown)
    assert len(links) == 4
    assert all((tmp_path / "report" / link).is_file() for link in links)
    anchors = re.findall(r' id="([^"]+)"', html)
    assert len(anchors) == len(set(anchors))


def test_of_many_streams_the_ends_are_shown(tmp_path, monkeypatch):
    monkeypatch.setattr(engine_report, "STREAMS_SHOWN", 4)
    monkeypatch.setattr(pictures, "NAMED_GAINS", 5)
    run = make_run(tmp_path, bd.datasets.wind_field(seed=0, steps=200, sites=9))
    table = report_of(run.forecaster).errors(most=4)
    order = [str(run.forecaster.tasks[place]) for place in rows.best_first(Summary.of(run.forecaster).to_single)]
    assert [row[0] for row in table.rows] == [*order[:2], "… 5 more", *order[-2:], "All 9"]
    assert "Of 9 streams, the 2 with the largest gain and the 2 with the smallest are shown." in table.note
    axis = pictures_of(run)["gains"].figure.axes[0]
    assert axis.get_xlabel() == "Streams, the largest gain first"
    assert len(engine_report.links(run.forecaster.graph).rows) == 4
    monkeypatch.setattr(pictures, "STREAMS_IN_GRAPH", 8)
    assert set(pictures_of(run)) == EVERY - {"graph"}


def test_of_many_streams_it_says_which_are_joined(small, tmp_path):
    run = make_run(tmp_path, bd.datasets.wind_field(seed=0, steps=150, sites=70))
    assert run.forecaster.graph.is_sparse
    assert "Each stream is tied to the most similar ones." in pictures_of(run)["graph"].caption
    assert "most similar" not in pictures_of(small)["graph"].caption


def test_a_loss_far_larger_than_all_else_is_cut():
    gains = np.array([2.0, 1.0, 1.0, -500.0])
    for drawn in (pictures._gains(gains, list("abcd"), "%"), pictures._gains(np.repeat(gains, 11), [], "%")):
        assert any("−500.0" in text.get_text() for text in drawn.axes[0].texts)
        assert min(*drawn.axes[0].get_xlim(), *drawn.axes[0].get_ylim()) > -10.0


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"forgetting": 1.0, "penalty": 1e10, "ridge": 1.0}, ""),
        ({"forgetting": 0.99, "penalty": 1.0, "ridge": 0.1}, ""),
        ({"forgetting": 0.95, "penalty": 1e-10}, "Forgetting 0.95 is the smallest tried"),
        (
            {"penalty": 1e4, "ridge": 0.01},
            "Penalty 1e4 is the largest tried but 1e10, ridge 0.01 is the smallest tried",
        ),
    ],
)
def test_parameters_at_the_end_of_their_grid_are_named(parameters, said):
    best = Trial("mt-wrls", parameters)
    choice = Choice(best, best, tried=9)
    assert learner_report.at_the_edge(choice) == [f"{said}: a better one may lie beyond."] * bool(said)
    assert learner_report.at_the_edge(replace(choice, tried=0)) == []  # given, not searched for


def test_the_one_that_is_used_stands_first(small, tmp_path):
    table = tables_of(small)["tried"]
    assert table.columns == ("Method", "λ", "σ", "γ", "error")
    assert table.rows[0] == ("MT-WRLS", "10", "0.999", "0.01", "0.600")
    assert [row[-1] for row in table.rows] == ["0.600", "0.640", "broke"]
    assert table.best_first
    given = tables_of(make_run(tmp_path, tried=0))["tried"]
    assert [row[-1] for row in given.rows] == ["–", "0.640"]
    assert "were given" in given.note


@pytest.mark.parametrize(
    ("method", "parameters"),
    [
        ("mt-wrls", None),
        ("wrls-neighbours", None),
        ("mt-wrls-elm", SHARING | {"hidden": 10.0}),
        ("oslssvr", {"width": 2.0, "novelty": 0.1, "penalty": 10.0}),
    ],
)
def test_the_python_makes_the_same_model_from_scratch(method, parameters, tmp_path):
    panel = bd.datasets.wind_field(seed=0, steps=160, sites=3)
    run = make_run(tmp_path, panel, method, parameters)
    html, markdown = written(run, tmp_path)
    code = re.search(r"```python\n(.*?)```", markdown, re.DOTALL)[1]
    bd.save(run.forecaster, tmp_path / "model.braided")
    names = {}
    exec(code.replace("model.braided", str(tmp_path / "model.braided")), names)
    names["new"].advance(panel.times, panel.values, panel.tasks)
    np.testing.assert_array_equal(names["new"].ahead().forecast, run.forecaster.ahead().forecast)
    assert "bd.forecasting.LearnerEngine(learner, preparation)" in html


def test_a_model_made_by_hand_has_a_page_too(tmp_path):
    run = make_run(tmp_path)
    run.forecaster.origin = Origin(position=replace(run.forecaster.origin.position, tuning_rounds=0))
    html, _ = written(run, tmp_path)
    assert "MTWRLS: made by hand" in html
    assert "What was tried" not in html


def test_facts_of_a_learner_alone(small):
    facts = learner_report.facts_of_learner(small.forecaster.learner)
    assert facts["Streams"] == "site 1, site 2, site 3, site 4"
    assert facts["Learner"].startswith("MTWRLS(")


def test_steps_and_times_in_words():
    minute = 60_000_000
    steps = {600 * minute: "10 h", minute // 120: "500 ms", 1440 * minute: "1 day", 90 * minute: "90 min"}
    assert {step: step_in_words(step, True) for step in steps} == steps
    assert time_in_words(0, True) == "1970-01-01"
    assert time_in_words(NEVER, True) == "the start"


def test_the_same_run_gives_the_same_bytes(small, tmp_path):
    first, again = (write_run_report(small, tmp_path / name).parent for name in ("first", "again"))
    files = sorted(path.relative_to(first) for path in first.rglob("*") if path.is_file())
    assert len(files) == 2 + 2 * 4
    for file in files:
        assert (first / file).read_bytes() == (again / file).read_bytes()


def test_a_figure_that_fails_leaves_the_old_report_as_it_was(small, tmp_path, monkeypatch):
    def fail(*_):
        raise RuntimeError("out of ink")

    (tmp_path / "index.html").write_text("old")
    monkeypatch.setattr(pictures, "similarities", fail)
    with pytest.raises(RuntimeError, match="out of ink"):
        write_run_report(small, tmp_path)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("index.html", "old")]


def test_the_mean_gain_is_the_mean_of_the_gains(small):
    table = report_of(small.forecaster).errors()
    gains = Summary.of(small.forecaster).gains
    assert table.rows[-1][table.columns.index("gain, %")] == rows.signed(np.mean(gains))
