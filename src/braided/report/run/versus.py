"""Versus: the model's errors beside those of one contender of the record, stream by stream and on the whole.

>>> record = Record.blank(np.ones(2), ("model", "no change"))
>>> rounds, places = np.divmod(np.arange(80), 2)
>>> errors = np.column_stack([np.where(places == 0, 0.5, 0.9), np.ones(80)])
>>> record.add(errors, np.full(80, np.nan), places, rounds, n_rounds=40)
>>> versus = Versus.of(record, "no change")
>>> versus.ratio, round(versus.gain, 1), versus.n_lower, versus.is_sure
(array([0.5, 0.9]), 30.0, 2, True)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self, final

import numpy as np

from braided.forecasting import Record
from braided.statistics import paired_over_blocks
from braided.types import Floats, Ints

SMALLEST_GAIN = 0.05  # per cent: less counts as no difference


@final
@dataclass(frozen=True, eq=False)
class Versus:
    """The model beside a contender."""

    name: str
    ratio: Floats  # (T,) its root mean square error over that of the contender; NaN where nothing can be compared
    is_sure: bool  # whether the mean gain is more than chance: over time, the errors of all streams agree with it

    @classmethod
    def of(cls, record: Record, name: str) -> Self:
        """Compare with a contender of the record."""
        own, other = record.rmse_of("model"), record.rmse_of(name)
        ratio = np.divide(own, other, out=np.full(len(own), np.nan), where=other > 0.0)
        verdict = paired_over_blocks(record.curve_of("model"), record.curve_of(name), record.curve[:, 0])
        compared = cls(name, ratio, False)
        return cls(name, ratio, verdict.is_sure and (verdict.gain > 0.0) == (compared.gain > 0.0))

    @property
    def gains(self) -> Floats:
        """By how many per cent the model's error is lower, per stream."""
        return 100.0 * (1.0 - self.ratio)

    @property
    def gain(self) -> float:
        """The mean of the gains; NaN without any."""
        return float(self.gains[self._known].mean()) if len(self._known) else np.nan

    @property
    def n_known(self) -> int:
        """The number of streams that can be compared."""
        return len(self._known)

    @property
    def n_lower(self) -> int:
        """The number of streams whose error is lower."""
        return int(np.count_nonzero(self.gains[self._known] >= SMALLEST_GAIN))

    @property
    def worse(self) -> Ints:
        """The places of the streams whose error is higher, the worst first."""
        gains = np.where(np.isnan(self.ratio), 0.0, self.gains)
        order = np.argsort(gains, kind="stable")
        return order[: int(np.count_nonzero(gains <= -SMALLEST_GAIN))]

    @property
    def _known(self) -> Ints:
        return np.flatnonzero(~np.isnan(self.ratio))


def percent(gain: float) -> str:
    """Say by how much an error is lower or higher.

    >>> percent(4.321), percent(-0.7), percent(0.01)
    ('4.3 % less', '0.7 % more', 'no less')
    """
    return f"{abs(gain):.1f} % {'less' if gain >= 0 else 'more'}" if abs(gain) >= SMALLEST_GAIN else "no less"
