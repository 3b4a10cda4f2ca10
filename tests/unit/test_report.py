"""The report: odd studies, harmless names, the same bytes every time, all or nothing."""

import re
from copy import copy
from dataclasses import replace
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest

from braided.datasets import embedded, wind_field
from braided.errors import FileError, InputError
from braided.report import write_report
from braided.report.common import style
from braided.report.common.picture import render
from braided.report.study import figures, page, pictures
from braided.report.study.tables import tables
from braided.study import METHODS, Results, plan_for, run_study
from braided.tables import Panel

WIND = wind_field(seed=0, steps=900, sites=4)
EVERY = {"series", "graph", "timings", "errors-I", "errors-II"}  # figures that any study has


def study(folder, panel=WIND, windows=2, methods=("mt-wrls", "wrls", "mogd", "no-change"), splits=("I", "II")):
    plan = plan_for(panel, windows, methods=methods)
    plan = replace(plan, forgetting=(1.0, 0.8), splits={name: plan.splits[name] for name in splits})
    return Results(run_study(plan, panel, folder, jobs=1))


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return study(tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    names = ("<b>&", "$x_1$", "北|`*_", "a" * 200)
    panel = Panel("<script>", names, WIND.times[:80], WIND.values[:80], "made up & <i>strange</i>")
    return study(tmp_path_factory.mktemp("odd"), panel, windows=1, methods=("wrls",), splits=("I",))


@pytest.fixture(scope="module")
def written(odd, small, tmp_path_factory):
    return write_report([odd, small, small], tmp_path_factory.mktemp("report")).parent


def names_of(results):
    return {picture.name for picture in pictures.pictures(results)}


def test_a_study_shows_what_it_has(small):
    ranks = {"ranks-I", "ranks-II", "over-time-I", "over-time-II"}
    assert names_of(small) == EVERY | ranks | {"forecasts", "choices", "more-choices"}


def test_one_window_and_one_method_have_no_ranks(odd):
    assert names_of(odd) == EVERY - {"errors-II"} | {"forecasts", "choices", "over-time-I"}


def test_a_naive_method_alone_has_nothing_chosen(tmp_path):
    assert names_of(study(tmp_path, methods=("no-change",))) == EVERY | {"over-time-I", "over-time-II"}


def test_a_single_task_has_no_graph(tmp_path):
    panel = Panel("one", WIND.tasks[:1], WIND.times, WIND.values[:, :1], "made up")
    assert "graph" not in names_of(study(tmp_path, panel, methods=("no-change", "last-change")))


def test_many_tasks_are_all_named_in_an_order_that_groups_them(tmp_path):
    panel = wind_field(seed=0, steps=450, sites=20)
    results = study(tmp_path, panel, windows=1, methods=("no-change",), splits=("I",))
    drawn = figures.graph(results)
    labels = [label.get_text() for label in drawn.axes[0].get_yticklabels()]
    assert sorted(labels) == sorted(panel.tasks)
    assert labels != list(panel.tasks)


def test_incomes_are_shown_by_year(tmp_path):
    results = study(tmp_path, embedded("us-incomes"), methods=("no-change", "mean-change"))
    for drawn, first in ((figures.series(results), 1930), (figures.over_time(results, "II"), 1929 + 44)):
        axis = drawn.axes[0]
        assert axis.get_xlabel() == "Year"
        assert tuple(axis.get_xlim()) == (first, 2009)


def test_what_lies_far_outside_is_written_at_the_edge(small):
    wild = copy(small)
    wild.scores = small.scores.copy()
    wild.scores[0, 0, 0, 1] = 99.0
    assert any("99" in text.get_text() and "▸" in text.get_text() for text in figures.errors(wild, "I").axes[0].texts)
    assert not any("▸" in text.get_text() for text in figures.errors(small, "I").axes[0].texts)


def test_the_papers_figures_stand_beside_data_of_the_project_only(small, odd):
    assert any("paper" in title for table in tables(small) for title, _ in table.groups)
    assert not any("paper" in title for table in tables(odd) for title, _ in table.groups)


def test_methods_that_are_not_told_apart_are_joined():
    assert figures.joined(np.array([1.0, 4.0, 7.0]), 1.0) == []
    assert figures.joined(np.array([1.0, 1.0, 1.0]), 0.5) == [(0, 2)]
    assert figures.joined(np.array([1.0, 2.0, 3.0, 4.0]), 2.0) == [(0, 2), (1, 3)]


def test_a_family_has_one_colour():
    names = ("mt-wrls", "madmm", "wrls", "oslssvr", "l21", "graph-ridge", "no-change", "mean-change")
    kinds = [METHODS[name].family for name in names]
    assert kinds == [kind for kind in ("multi-task", "single-task", "batch", "baseline") for _ in range(2)]
    assert len(set(style.COLOURS.values())) == len(set(style.MARKS.values())) == 4


def test_drawing_leaves_the_readers_settings_alone_and_does_not_heed_them(small):
    plain = render(figures.timings(small), "svg")
    with matplotlib.rc_context({"font.size": 30.0, "axes.facecolor": "red"}):
        before = dict(matplotlib.rcParams)
        assert render(figures.timings(small), "svg") == plain
        assert dict(matplotlib.rcParams) == before


def test_strange_names_are_shown_as_they_are(written):
    html = (written / "index.html").read_text("utf-8")
    assert "<b>" not in html
    assert "<script" not in html
    assert "<i>" not in html
    assert "&lt;b&gt;&amp;" in html
    text = (written / "report.md").read_text("utf-8")
    assert r"\<b\>\&" in text
    assert "<script" not in re.sub(r"\\<", "", text)
    for file in (written / "figures").glob("*.svg"):
        ElementTree.parse(file)  # whole, whatever is in it
    assert "$x_1$" in (written / "figures" / "script-series.svg").read_text("utf-8")


def test_each_study_has_files_and_anchors_of_its_own(written):
    html = (written / "index.html").read_text("utf-8")
    anchors = re.findall(r' id="([^"]+)"', html)
    assert len(anchors) == len(set(anchors))
    assert {"script", "synthetic", "synthetic-3"} <= set(anchors)
    assert set(re.findall(r'href="#([^"]+)"', html)) <= set(anchors)


def test_links_of_the_markdown_lead_to_files(written):
    links = re.findall(r"\]\(([^)]+)\)", (written / "report.md").read_text("utf-8"))
    assert len(links) == len(set(links)) > 20
    assert all((written / link).is_file() for link in links)
    assert {file.suffix for file in (written / "figures").iterdir()} == {".png", ".svg"}


def test_real_data_carry_no_badge_and_synthetic_do(written):
    html = (written / "index.html").read_text("utf-8")
    assert html.count('<span class="badge">synthetic data</span>') == 2  # the same study twice, but not the odd one


def test_the_same_store_gives_the_same_bytes(odd, tmp_path):
    first, again = (write_report([odd], tmp_path / name).parent for name in ("first", "again"))
    files = sorted(path.relative_to(first) for path in first.rglob("*") if path.is_file())
    assert len(files) == 2 + 2 * 7
    for file in files:
        assert (first / file).read_bytes() == (again / file).read_bytes()


def test_a_figure_that_fails_leaves_the_old_report_as_it_was(odd, tmp_path, monkeypatch):
    def fail(*_):
        raise RuntimeError("out of ink")

    (tmp_path / "index.html").write_text("old")
    monkeypatch.setattr(figures, "timings", fail)
    with pytest.raises(RuntimeError, match="out of ink"):
        write_report([odd], tmp_path)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("index.html", "old")]


def test_a_folder_that_cannot_be_made_is_named(odd, tmp_path, monkeypatch):
    monkeypatch.setattr(page, "pictures", lambda _: iter(()))
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(FileError, match=r"can't write to .*file"):
        write_report([odd], tmp_path / "file")


def test_no_study_is_no_report(tmp_path):
    with pytest.raises(InputError, match="no studies"):
        write_report([], tmp_path)
