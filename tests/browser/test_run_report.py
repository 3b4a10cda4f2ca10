"""The page of a run in a real browser: what holds for that of a study holds for it, with odd names too."""

from dataclasses import replace
from itertools import pairwise

import pytest

from braided.datasets import wind_field
from braided.report import write_run_report
from braided.report.run.kinds import report_of
from tests.browser import test_report as study_page
from tests.unit.test_run_report import NAMES, make_run

pytestmark = study_page.pytestmark
browser = study_page.browser
test_the_page_fits_and_is_readable = study_page.test_the_page_fits_and_is_readable
test_wide_tables_scroll_within_themselves_and_say_so = study_page.test_wide_tables_scroll_within_themselves_and_say_so
test_tables_show_the_numbers_of_the_results = study_page.test_tables_show_the_numbers_of_the_results
test_nothing_is_asked_for_and_nothing_complained_of = study_page.test_nothing_is_asked_for_and_nothing_complained_of


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    panel = replace(wind_field(seed=0, steps=300, sites=4), tasks=NAMES)
    return make_run(tmp_path_factory.mktemp("run"), panel, name="<script>" + "very/long/path/" * 9)


@pytest.fixture(scope="module")
def page(run, tmp_path_factory):
    return write_run_report(run, tmp_path_factory.mktemp("report"))


@pytest.fixture
def expected(run):
    return [report_of(run.forecaster).errors(), *report_of(run.forecaster).tables_of_page()]


@pytest.fixture
def n_figures():
    return 4


def test_the_title_is_the_source_and_headings_are_in_order(browser, page, run):
    study_page.show(browser, page, 375)
    heads = browser.execute_script(
        "return [...document.querySelectorAll('h1,h2,h3,h4,h5,h6')].map(h => [+h.tagName[1], h.textContent])"
    )
    assert heads[0] == [1, run.plan["table"]]
    assert all(below[0] - above[0] <= 1 for above, below in pairwise(heads))
    assert [level for level, _ in heads].count(1) == 1
    first = browser.execute_script("return document.querySelector('.findings li').textContent")
    assert first.startswith("Sharing")
