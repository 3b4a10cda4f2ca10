"""Model files are safe on untrusted bytes: whatever a signed file holds, it is refused, or gives a model that works."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.soak import either

BATCHES, FILES = either((2, 300), (8, 2600))  # processes, and files in each


@pytest.mark.parametrize("batch", range(BATCHES))
def test_a_forged_file_never_crashes_the_process_or_ends_in_a_bare_exception(batch):
    command = [sys.executable, "-m", "tests.soak.forged_files", str(batch * FILES), str(FILES)]
    environment = os.environ | {"PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        command, cwd=Path(__file__).parents[2], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    assert f"{FILES} files" in done.stdout
