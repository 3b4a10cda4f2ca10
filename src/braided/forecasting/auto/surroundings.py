"""Surroundings: what is known of a round besides the values: its local time, days off, further columns in units.

A `Stretch` is rounds in order with all of that, as an ensemble takes them.
"""

from __future__ import annotations

from typing import NamedTuple, final

import numpy as np

from braided.forecasting.auto.seasons import is_weekend
from braided.forecasting.clock import DAY, GAP_FACTOR, Clock
from braided.forecasting.holidays import holiday_flags
from braided.forecasting.plan import Planned
from braided.types import Flags, Floats, Ints

CLIP_EXTRAS_AT = 10.0  # deviations
HOLIDAY_COLUMNS = 3  # of `holidays_of`


class Stretch(NamedTuple):
    """Rounds in order, as an ensemble takes them."""

    stamps: Ints  # (n,) local times
    values: Floats  # (n, T) NaN where one is missing
    given: Floats  # (n, T, E) further columns, as known last before a round, and its holidays
    planned: Planned  # what is known ahead
    is_after_gap: Flags  # (n,)
    is_day_off: Flags  # (n,) weekends and holidays
    targets: Ints  # (n, H) local times of each round and of those after it, as they are expected

    def features(self) -> Floats:
        """Return the features that the caller gives (n, T, E + 2 P): as known last, holidays, and known ahead."""
        return np.concatenate([self.given, self.planned.features()], axis=2)

    def rows(self, which: slice) -> Stretch:
        """Return some of the rounds."""
        arrays = {name: array[which] for name, array in self._asdict().items() if name != "planned"}
        return Stretch(**arrays, planned=self.planned.part(which))


@final
class Surroundings:
    """Holidays, and the units of the further columns, the last `n_known` of which are known ahead."""

    def __init__(self, region: str | None, n_extras: int, n_known: int) -> None:
        self.region, self.n_known = region, n_known
        self.units: Floats = np.array([np.zeros(n_extras), np.ones(n_extras)])  # centres and scales

    def measure(self, extras: Floats) -> None:
        """Measure the units of the further columns (n, T, E)."""
        for k in range(extras.shape[2]):
            known = extras[:, :, k][~np.isnan(extras[:, :, k])]
            spread = float(known.std()) if len(known) else 0.0
            self.units[:, k] = known.mean() if len(known) else 0.0, spread if spread > 0.0 else 1.0

    def inward(self, extras: Floats, first: int = 0) -> Floats:
        """Return columns (…, E) from the first one on in units, clipped."""
        centre, scale = self.units[:, first:]
        return np.clip((extras - centre) / scale, -CLIP_EXTRAS_AT, CLIP_EXTRAS_AT)

    def stretch(
        self,
        times: Ints,
        local: Ints,
        targets: Ints,
        values: Floats,
        extras: Floats,
        plan: tuple[Floats, Ints],
        clock: Clock,
        is_dated: bool,
    ) -> Stretch:
        """Return rounds with all that is known of them; the first of the times is that of the round before.

        `plan` is a table of what is known ahead (m + 1, T, P), and its rows (n, H) for the rounds expected next.
        """
        known = np.nan_to_num(self.inward(extras))
        n_last = known.shape[2] - self.n_known
        given, flags = [known[:, :, :n_last]], np.zeros((len(values), 1 + targets.shape[1], 0))
        is_after_gap = np.diff(times) > GAP_FACTOR * clock.longest
        is_day_off = is_weekend(local[1:]) if is_dated else np.zeros(len(values), np.bool_)
        if self.region is not None and is_dated:
            holidays = holidays_of(local, self.region)
            given.append(np.repeat(holidays[:, None], values.shape[1], axis=1))
            is_day_off |= holidays[:, 0] > 0.0
            every = holiday_flags(np.column_stack([local[:-1], targets]).ravel(), self.region)
            flags = every.reshape(*flags.shape[:2], 1).astype(np.float64)
        table, rows = plan
        planned = Planned(self.inward(table, n_last), rows, known[:, :, n_last:], flags)
        return Stretch(local[1:], values, np.concatenate(given, axis=2), planned, is_after_gap, is_day_off, targets)


def holidays_of(local: Ints, region: str) -> Floats:
    """Return, for each round but the first, whether it is on a holiday, and how that differs from before (n, 3).

    The second column is the difference from the round before, the third that from a week ago.
    """
    today, week_ago = (holiday_flags(times, region).astype(np.float64) for times in (local, local - 7 * DAY))
    return np.column_stack([today[1:], np.diff(today), (today - week_ago)[1:]])
