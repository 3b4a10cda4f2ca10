"""The page in a real browser: it fits, it is whole, it can be read, and it asks for nothing from anywhere."""

import json
import shutil
from dataclasses import replace
from itertools import pairwise

import pytest

from braided.datasets import wind_field
from braided.report import write_report
from braided.report.study.tables import tables
from braided.study import Results, plan_for, run_study

pytest.importorskip("selenium")
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs chromium and chromedriver")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --hide-scrollbars"
)
WIDTHS = (1280, 375)
SMALL_TEXT = """
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), small = [];
for (let node = walker.nextNode(); node; node = walker.nextNode()) {
  const parent = node.parentElement;
  if (node.textContent.trim() && parent.getClientRects().length && parseFloat(getComputedStyle(parent).fontSize) < 11)
    small.push(node.textContent);
}
return small;
"""
TABLES = """
return [...document.querySelectorAll('table')].map(table => ({
  caption: table.caption.textContent,
  heads: [...table.querySelectorAll('thead tr:last-child th[scope=col]')].map(cell => cell.textContent),
  rows: [...table.tBodies[0].rows].map(row => [...row.cells].map(cell => cell.textContent)),
  scopes: [...table.tBodies[0].rows].every(row => row.cells[0].scope === 'row'),
}));
"""
WIDE_TABLES = """
return [...document.querySelectorAll('.scroll')].filter(box => box.scrollWidth > box.clientWidth).map(box => {
  const left = element => element.getBoundingClientRect().left;
  box.scrollLeft = 1e6;
  return {moved: box.scrollLeft > 0, stays: Math.abs(left(box.querySelector('tbody th')) - left(box)) < 3,
          hint: getComputedStyle(box.parentElement, '::before').content};
});
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    panel = wind_field(seed=0, steps=900, sites=4)
    plan = plan_for(panel, windows=2, methods=("mt-wrls", "wrls", "mogd", "no-change"))
    return Results(run_study(replace(plan, forgetting=(1.0, 0.8)), panel, tmp_path_factory.mktemp("store"), jobs=1))


@pytest.fixture(scope="module")
def page(results, tmp_path_factory):
    return write_report([results], tmp_path_factory.mktemp("report"))


@pytest.fixture
def expected(results):
    """The tables that the page shows."""
    return tables(results)


@pytest.fixture
def n_figures():
    return 12


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS.split(), f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


def show(browser, page, width):
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(page.as_uri())
    browser.execute_script("document.querySelectorAll('details').forEach(part => part.open = true)")


@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_fits_and_is_readable(browser, page, n_figures, width):
    show(browser, page, width)
    whole, seen = browser.execute_script("const e = document.documentElement; return [e.scrollWidth, e.clientWidth]")
    assert whole <= seen == width
    assert browser.execute_script(SMALL_TEXT) == []
    images = browser.execute_script(
        "return [...document.images].map(i => [i.complete, i.naturalWidth, i.clientWidth, i.alt])"
    )
    assert len(images) == n_figures
    for complete, natural, shown, alt in images:
        assert complete
        assert natural > 0
        assert shown > 300
        assert alt


def test_wide_tables_scroll_within_themselves_and_say_so(browser, page):
    show(browser, page, 375)
    wide = browser.execute_script(WIDE_TABLES)
    assert wide
    for table in wide:
        assert table["moved"]
        assert table["stays"]
        assert "sideways" in table["hint"]


def test_tables_show_the_numbers_of_the_results(browser, page, expected):
    show(browser, page, 1280)
    shown = {table["caption"]: table for table in browser.execute_script(TABLES)}
    assert len(shown) == len(expected)
    for table in expected:
        found = shown[table.title]
        assert found["scopes"]
        assert found["heads"] == list(table.columns)
        assert found["rows"] == [list(row) for row in table.rows]


def test_headings_are_in_order_and_the_synthetic_badge_is_seen(browser, page):
    show(browser, page, 375)
    levels = browser.execute_script(
        "return [...document.querySelectorAll('h1,h2,h3,h4,h5,h6')].map(h => +h.tagName[1])"
    )
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(below - above <= 1 for above, below in pairwise(levels))
    badge = "const b = document.querySelector('.badge'); return [b.textContent, b.getClientRects().length]"
    assert browser.execute_script(badge) == ["synthetic data", 1]
    assert browser.execute_script("return document.documentElement.lang") == "en"


def test_nothing_is_asked_for_and_nothing_complained_of(browser, page):
    for log in ("browser", "performance"):
        browser.get_log(log)  # what came before
    show(browser, page, 1280)
    assert browser.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = {event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"}
    assert {url for url in asked if not url.startswith("data:")} == {page.as_uri()}
    sources = browser.execute_script("return [...document.querySelectorAll('[src], link')].map(e => e.src || e.href)")
    assert all(source.startswith("data:") for source in sources)
    assert browser.execute_script("return document.scripts.length") == 0
