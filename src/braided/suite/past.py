"""Past: what is known of a panel before each of its rounds, for rules and for other packages.

Every array has a row per round, and a row without values for each gap. What it holds of a row comes from rows at least
`horizon` before that, or, where the name says so (`levels`, `changes`, `target`), from the row itself, to be shifted by
`back` or to be learned.
Units and similarities come from the rounds before the first cut, which is where the scores begin; methods that are
refitted may measure them again at each cut (`pieces`).

>>> import braided as bd
>>> past = Past(bd.datasets.wind_field(seed=0, steps=100, sites=3), cuts_of(100))      # synthetic
>>> past.cuts[:3], past.last.shape
((20, 28, 36), (100, 3))
>>> bool((past.last[1:] == past.levels[:-1]).all())
True
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import final

import numpy as np
import scipy.sparse as sparse

from braided._compiled.panel import CLIP_CHANGES_AT
from braided.errors import InputError
from braided.forecasting import Clock, Units
from braided.forecasting.auto.engine import last_known
from braided.forecasting.auto.view import similar_streams
from braided.forecasting.clock import as_stamps
from braided.forecasting.preparation import Rows, with_gaps
from braided.forecasting.units import without_too_large
from braided.suite.seasons import Season, calendar, seasons_of
from braided.tables import Panel
from braided.types import Floats, Ints

SCORED_AFTER = 0.2  # of the rounds
REFITS = 10  # of what is refitted, at equal cuts after that
FEWEST_ROUNDS = 20


def cuts_of(n_rounds: int, refits: int = REFITS) -> tuple[int, ...]:
    """Return the rounds before which a method is refitted; the first is the first round that is scored."""
    if n_rounds < FEWEST_ROUNDS:
        raise InputError(f"the panel has {n_rounds} rounds: the suite needs {FEWEST_ROUNDS}")
    return tuple(np.linspace(round(SCORED_AFTER * n_rounds), n_rounds, refits + 1)[:-1].astype(int).tolist())


@final
@dataclass(frozen=True, eq=False)
class Past:
    """A panel in units, with what each forecast may know."""

    panel: Panel
    cuts: tuple[int, ...]  # rounds, as `cuts_of` returns them
    horizon: int = 1  # how many rounds ahead is forecast

    @property
    def first(self) -> int:
        """The first round that is scored."""
        return self.cuts[0]

    def pieces(self, again: bool) -> Iterator[tuple[Past, int, int]]:
        """Yield, for what is refitted at the cuts, each cut, the next one, and the past as it is measured by then.

        With `again`, units and similarities are measured at each cut, on all rounds before; else at the first one only.
        """
        for start, end in pairwise([*self.cuts, len(self.panel.times)]):
            yield Past(self.panel, (start,), self.horizon) if again else self, start, end

    @cached_property
    def clock(self) -> Clock:
        """When rounds are expected."""
        return Clock.measure(self.panel.times[: self.first])

    @cached_property
    def seasons(self) -> tuple[Season, ...]:
        """The seasons of the clock."""
        return seasons_of(self.panel.times, self.clock)

    @cached_property
    def calendar(self) -> Floats:
        """What the clock says of each row (rows, k); 0 in gaps."""
        rounds = self._table.rounds
        return np.where(rounds[:, None] >= 0, calendar(self.panel.times, self.clock)[rounds], 0.0)

    @cached_property
    def _table(self) -> Rows:
        values, _ = without_too_large(self.panel.values)
        stamps = as_stamps(self.panel.times)
        return with_gaps(self.clock, stamps, values, np.empty((*values.shape, 0)), int(stamps[0]))

    @cached_property
    def rows(self) -> Ints:
        """The row of each round (n,)."""
        return np.flatnonzero(self._table.rounds >= 0)

    @cached_property
    def ends(self) -> list[tuple[int, int]]:
        """The rows from each cut to the next, or to the end."""
        starts = self.rows[list(self.cuts)].tolist()
        return list(zip(starts, [*starts[1:], len(self.values)], strict=True))

    @property
    def values(self) -> Floats:
        """The values (rows, T), NaN where one is missing."""
        return self._table.values

    @cached_property
    def units(self) -> Units:
        """The units of each stream's values."""
        return Units.measure(self.values[: self.ends[0][0]])

    @cached_property
    def levels(self) -> Floats:
        """The values in units (rows, T)."""
        return self.units.inward(self.values)

    @cached_property
    def changes(self) -> Floats:
        """The changes in units; NaN where a value or the one before is missing."""
        return np.diff(self.levels, axis=0, prepend=np.nan)

    @cached_property
    def target(self) -> Floats:
        """The changes over the horizon in units; NaN where a value or the one so many rows before is missing."""
        return self.levels - back(self.levels, self.horizon)

    @cached_property
    def last(self) -> Floats:
        """The last level known when a row is forecast, NaN where there is none: the forecast "no change"."""
        return back(known_so_far(self.levels), self.horizon)

    def lag_of(self, season: Season) -> int:
        """How many rows before one is the last that is a whole number of seasons earlier, and known."""
        return season.lag * -(-self.horizon // season.lag)

    @cached_property
    def mean_change(self) -> Floats:
        """The mean change of all streams in each row (rows, 1), 0 where there is none; wild changes are clipped."""
        clipped = self.changes.clip(-CLIP_CHANGES_AT, CLIP_CHANGES_AT)
        there = ~np.isnan(clipped)
        return np.nansum(clipped, axis=1, keepdims=True) / np.maximum(there.sum(axis=1, keepdims=True), 1)

    @cached_property
    def similarity(self) -> sparse.csr_array:
        """Spearman correlations of the changes before the first cut, none below 0."""
        return sparse.csr_array(similar_streams(self.levels[: self.ends[0][0]]).similarity).maximum(0.0)

    def around(self, series: Floats) -> Floats:
        """Return the similarity-weighted mean of each stream's neighbours, of those that are there; else NaN."""
        there = ~np.isnan(series)
        weight = (self.similarity @ there.T.astype(np.float64)).T
        total: Floats = (self.similarity @ np.nan_to_num(series).T).T
        return np.divide(total, weight, out=np.full_like(total, np.nan), where=weight > 0.0)

    def forecasts(self, changes: Floats) -> Floats:
        """Return forecasts of the change from the last known level (rows, T) as those of the values (rounds, T)."""
        there = np.arange(len(self.panel.tasks))
        levels = self.last + np.where(np.isnan(changes), 0.0, changes)
        return self.units.outward(levels[self.rows], there)

    @cached_property
    def no_change(self) -> Floats:
        """The forecast "no change" of each value (rounds, T): the last known one."""
        return back(known_so_far(self.values), self.horizon)[self.rows]


def back(series: Floats, lag: int) -> Floats:
    """Return what a series was `lag` rows before each row; NaN before its first."""
    shifted = np.full_like(series, np.nan)
    shifted[lag:] = series[: max(len(series) - lag, 0)]
    return shifted


def known_so_far(series: Floats) -> Floats:
    """Return the last value that is there up to each row (rows, T).

    >>> known_so_far(np.array([[np.nan], [1.0], [np.nan], [2.0]])).ravel()
    array([nan,  1.,  1.,  2.])
    """
    before, last = last_known(series, np.full(series.shape[1], np.nan))
    return np.vstack([before[1:], last])
