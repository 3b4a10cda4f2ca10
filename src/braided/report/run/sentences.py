"""Sentences that the summaries of all engines share: intervals, and what was wrong with the data."""

from __future__ import annotations

from collections.abc import Sequence

from braided.forecasting import Engine
from braided.forecasting.units import LARGEST_LEVEL
from braided.printable import counted
from braided.report.common.table import several
from braided.validate import LARGEST_VALUE

NAMES_IN_SENTENCE = 5


def intervals(forecaster: Engine) -> list[str]:
    """Say which share of the values the intervals contained; nothing if there was none."""
    record = forecaster.record
    known = record.intervals > 0.0
    if not known.any():
        return []
    held = 100.0 * record.covered[known] / record.intervals[known]
    by_stream = f" ({held.min():.1f} to {held.max():.1f} % by stream)" * (len(held) > 1)
    return [f"The {100 * forecaster.coverage:g} % intervals contained {held.mean():.1f} % of the values{by_stream}."]


def steps(forecaster: Engine) -> list[str]:
    """Say how many steps were too long."""
    said = [f"{counted(forecaster.gaps, 'gap')} longer than the typical step; no feature spans a gap."]
    said = said * (forecaster.gaps > 0)
    if forecaster.irregular:
        said.append(f"Longer than typical, but not gaps: {counted(forecaster.irregular, 'step')}.")
    return said


def too_large(forecaster: Engine) -> list[str]:
    """Say how many values were too large to use."""
    limit = f"beyond {LARGEST_VALUE:g}, or {LARGEST_LEVEL:g} times the stream's typical change".replace("e+", "e")
    said = f"Too large to use ({limit}), and taken as missing: {counted(forecaster.too_large, 'value')}."
    return [said] * (forecaster.too_large > 0)


def broken_down(forecaster: Engine, then: str) -> list[str]:
    """Say how often the arithmetic broke down, and what happened then."""
    times = counted(forecaster.breakdowns, "time")
    return [f"The arithmetic broke down {times}; {then}."] * (forecaster.breakdowns > 0)


def named(streams: dict[str, Sequence[object]]) -> list[str]:
    """Name streams under what they have in common."""
    return [f"{what}: {several(names, NAMES_IN_SENTENCE)}." for what, names in streams.items() if names]
