"""Two identical runs started at once: one result, that of a single run, and one refusal."""

import subprocess
import sys

from tests.cli.test_cli import braided
from tests.cli.test_streams import GIVEN
from tests.runs.tables import written
from tests.soak import either

TIMES = either(1, 10)


def test_of_two_runs_at_once_one_is_refused_and_the_other_gives_the_result_of_a_single_one(tmp_path):
    written(tmp_path / "mine.csv", steps=6000, sites=4)
    command = ("run", "mine.csv", *GIVEN, "--every", "200")  # many saves, so that it takes some seconds
    whole = braided(*command, "--out", "whole", cwd=tmp_path)
    assert whole.returncode == 0, whole.stderr
    names = [path.name for path in (tmp_path / "whole").glob("*.*") if not path.name.startswith(".")]
    for number in range(TIMES):
        out = tmp_path / f"out-{number}"
        arguments = [sys.executable, "-m", "braided", *command, "--out", out.name]
        pipes = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
        both = [subprocess.Popen(arguments, cwd=tmp_path, text=True, **pipes) for _ in range(2)]
        said = [process.communicate()[1] for process in both]
        assert sorted(process.returncode for process in both) == [0, 1], said
        refused = next(place for place, process in enumerate(both) if process.returncode)
        assert f"is in use by process {both[1 - refused].pid}" in said[refused]
        assert (out / "forecasts.parquet").read_bytes() == (tmp_path / "whole" / "forecasts.parquet").read_bytes()
        assert sorted(path.name for path in out.glob("*.*") if not path.name.startswith(".")) == sorted(names)
