"""Scores: the error of a method on each stream of a panel, relative to "no change".

A value counts if it comes after the first fifth of the rounds and its stream had a value before: then every method has
a forecast. A method that makes none there (a tuned method, right after a missing value) forecasts "no change".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from braided.suite.past import Past
from braided.types import Floats, Ints


@final
@dataclass(frozen=True, eq=False)
class Cell:
    """How one method did on one panel."""

    ratios: Floats  # (T,) RMSE over that of "no change"; NaN for a stream without a score
    note: str = ""  # which rule was the best, how many streams were forecast, or why there is no score
    seconds: float = 0.0

    @property
    def error(self) -> float:
        """The mean over the streams; NaN where there is none."""
        there = ~np.isnan(self.ratios)
        return float(self.ratios[there].mean()) if there.any() else np.nan


@final
@dataclass(frozen=True, eq=False)
class Outcome:
    """How all methods did on one panel."""

    name: str
    source: str
    streams: tuple[str, ...]
    rounds: int
    first: int  # the first round that is scored
    counts: Ints  # (T,) values that are scored
    no_change: Floats  # (T,) RMSE of "no change"
    cells: dict[str, Cell]  # by the name of the method
    horizon: int = 1  # how many rounds ahead

    @property
    def label(self) -> str:
        """The panel, and how many rounds ahead if that is not 1."""
        return self.name if self.horizon == 1 else f"{self.name}, {self.horizon} ahead"


def root_mean_squares(past: Past, forecasts: Floats) -> Floats:
    """Return the RMSE of forecasts (rounds, T) on each stream; NaN where nothing is scored.

    >>> import braided as bd
    >>> from braided.suite.past import cuts_of
    >>> past = Past(bd.datasets.wind_field(seed=0, steps=100, sites=2), cuts_of(100))      # synthetic
    >>> bool((root_mean_squares(past, past.panel.values) == 0.0).all())
    True
    """
    scored = scored_values(past)
    with np.errstate(over="ignore"):
        errors = np.where(scored, past.values[past.rows] - forecasts, 0.0)
        total = np.sqrt((errors**2).sum(axis=0) / np.maximum(scored.sum(axis=0), 1))
    made: Floats = np.where(scored.any(axis=0), total, np.nan)
    return made


def scored_values(past: Past) -> np.typing.NDArray[np.bool_]:
    """Return which values (rounds, T) are scored."""
    scored = ~np.isnan(past.values[past.rows]) & ~np.isnan(past.no_change)
    scored[: past.first] = False
    return scored


def ratios(past: Past, forecasts: Floats) -> Floats:
    """Return the RMSE of each stream over that of "no change"; NaN where it is not scored, or never changes.

    Where a forecast is missing, "no change" takes its place; a stream without any forecast is not scored.
    """
    there = ~np.isnan(forecasts)
    whole = np.where(there, forecasts, past.no_change)
    base = root_mean_squares(past, past.no_change)
    made = root_mean_squares(past, whole)
    usable = there.any(axis=0) & (base > 0.0)
    return np.divide(made, base, out=np.full_like(base, np.nan), where=usable)
