"""What an import costs: nothing heavy until it is used."""

import os
import subprocess
import sys

import pytest

import braided as bd


def loaded_by(code):
    probe = f"{code}\nimport sys\nprint(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    return set(subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True).stdout.split())


def test_importing_braided_loads_nothing_heavy():
    assert not loaded_by("import braided") & {"numba", "llvmlite", "matplotlib", "pandas", "polars", "scipy", "numpy"}


def test_a_graph_needs_no_compiler():
    assert "numba" not in loaded_by("import braided as bd; bd.TaskGraph.pooled(['a', 'b']).inverse")


def test_it_runs_where_nothing_can_be_cached(tmp_path):
    """A read-only install without a home: compiled in every process, and no error."""
    code = "from numba.core import caching; caching.CacheImpl._locator_classes = []\n"
    code += "from braided._compiled.linear import dot; import numpy as np; assert dot(np.ones(2), np.ones(2)) == 2"
    loaded_by(code)


BITS = """
import hashlib, numpy as np, braided as bd
rng = np.random.default_rng(0)
X, y, tasks = rng.normal(size=(400, 10)), rng.normal(size=400), rng.integers(0, 5, 400)
graph, digest = bd.TaskGraph.pooled(range(5)), hashlib.sha256()
for model in (bd.MTOSLSSVR(graph, 10, novelty=1e-9), bd.MTWRLS(graph, 10, forgetting=0.9), bd.WRLS(graph, 10)):
    digest.update(model.progressive(X, y, tasks).tobytes())
    digest.update(model.predict_many(X, tasks).tobytes())
print(digest.hexdigest())
"""


@pytest.mark.slow
def test_what_was_compiled_here_and_what_is_loaded_give_the_same_bits(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", BITS]
    first, second = (
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout for _ in range(2)
    )
    assert first == second


def test_all_public_names_resolve():
    assert set(bd.__all__) <= set(dir(bd))
    for name in bd.__all__:
        assert getattr(bd, name) is not None
    assert not hasattr(bd, "nothing")
