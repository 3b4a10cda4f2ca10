"""`braided study --suite forecasting` as a user meets it."""

import subprocess
import sys

import pytest

from braided.datasets import wind_field
from braided.tables import write_table

pytestmark = pytest.mark.slow  # every test starts processes


def study(*arguments):
    command = [sys.executable, "-m", "braided", "study", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("suite")
    write_table(wind_field(seed=4, steps=300, sites=3), folder / "mine.csv")
    options = ("--suite", "forecasting", "--without-peers", "--timezone", "Europe/Dublin", "--jobs", "1")
    done = study(*options, "--data", folder / "mine.csv", "--out", folder / "out")
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def test_it_prints_methods_by_panels_and_writes_the_same_into_its_folder(finished):
    folder, printed = finished
    report = (folder / "out" / "report.md").read_text("utf-8")
    for title in ("Best rule", "One filter per stream", "Best of four tuned methods", "Auto"):
        assert title in printed
        assert title in report
    assert "LightGBM" not in printed
    assert (folder / "out" / "index.html").is_file()
    assert (folder / "out" / "suite.csv").read_text("utf-8").startswith("panel,horizon,method,stream,")
    names = "best-rule,seasonal-naive,single,run,auto-alone,auto"
    again = f"braided study --suite forecasting --data FILE --methods {names} --timezone Europe/Dublin\n"
    assert again in report


def test_it_replaces_its_own_files_and_no_others(finished):
    folder, _ = finished
    options = ("--suite", "forecasting", "--methods", "best-rule", "--data", folder / "mine.csv")
    assert study(*options, "--out", folder / "out").returncode == 0
    (folder / "other").mkdir()
    (folder / "other" / "suite.csv").write_text("mine\n")
    refused = study(*options, "--out", folder / "other")
    assert refused.returncode == 1
    assert "is not marked as a file that this command made" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--suite", "forecasting", "--windows", "3"), "--windows has no meaning with --suite"),
        (("--without-peers",), "--without-peers has no meaning without --suite"),
        (
            ("--suite", "forecasting", "--methods", "ridge-var", "--without-peers"),
            "--without-peers has no meaning with --methods: leave it out",
        ),
        (("--timezone", "UTC"), "--timezone has no meaning without --suite"),
        (("--suite", "forecasting", "--methods", "mt-wrls"), "the suite has no method 'mt-wrls'"),
        (("--suite", "forecasting", "--data", "us-income"), "did you mean 'us-incomes'?"),
        (("--suite", "forecasting", "--jobs", "0", "--quick"), "jobs is 0"),
    ],
)
def test_options_that_do_not_go_together_are_refused_in_one_line(arguments, message, tmp_path):
    done = study(*arguments, "--out", tmp_path / "out")
    assert done.returncode == 2
    assert message in done.stderr
    assert not (tmp_path / "out").exists()
