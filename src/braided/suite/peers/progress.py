"""Progress of a slow method."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[float], None]  # which share is done


def silent(share: float) -> None:
    """Report no progress."""
