"""Settings of the whole suite: random tests draw the same examples in every run, and compiled code is never stale."""

import hashlib
import os
from pathlib import Path

from hypothesis import HealthCheck, settings

settings.register_profile(
    "braided", derandomize=True, deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("braided")

# Numba renews a function when its own file changes, not when a file it calls into does.
_root = Path(__file__).parent
_sources = b"".join(path.read_bytes() for path in sorted((_root / "src/braided/_compiled").glob("*.py")))
_cache = _root / ".pytest_cache" / f"compiled-{hashlib.sha256(_sources).hexdigest()[:12]}"
os.environ.setdefault("NUMBA_CACHE_DIR", str(_cache))
