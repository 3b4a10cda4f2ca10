"""Summary: what a forecaster's record says, as columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from braided.forecasting import Engine
from braided.types import Floats


@final
@dataclass(frozen=True, eq=False)
class Summary:
    """Errors per stream, in the order of the streams; NaN where there is nothing to compare with."""

    tasks: tuple[Any, ...]
    counts: Floats  # forecasts scored
    rmse: Floats  # in the units of the values
    to_no_change: Floats  # over the error of "no change"
    single_to_no_change: Floats  # that of one filter per stream
    to_last_change: Floats
    to_single: Floats  # over the error of one filter per stream
    coverage: Floats  # share of the values in their intervals
    pinball: Floats  # mean loss of the intervals' ends, in typical changes

    @classmethod
    def of(cls, forecaster: Engine) -> Summary:
        """Take it from the record."""
        record = forecaster.record
        nothing = np.full(len(record.counts), np.nan)
        own, single, no_change, last_change = (
            record.rmse_of(name) if record.has(name) else nothing
            for name in ("model", "single", "no change", "last change")
        )
        pairs = ((own, no_change), (single, no_change), (own, last_change), (own, single))
        ratios = [
            np.divide(a, b, out=np.full(len(a), np.nan), where=b > 0.0)
            for a, b in (*pairs, (record.covered, record.intervals))
        ]
        return cls(forecaster.tasks, record.counts, own * record.scale, *[*ratios, record.pinball])

    @property
    def scored(self) -> bool:
        """Whether there is a forecast with an error to compare."""
        return bool((~np.isnan(self.to_no_change)).any())

    @property
    def gains(self) -> Floats:
        """By how many per cent sharing lowers the error, per stream."""
        return 100.0 * (1.0 - self.to_single)

    @property
    def means(self) -> dict[str, float]:
        """The means over the streams."""
        names = ("to_no_change", "single_to_no_change", "to_last_change", "to_single", "coverage", "pinball")
        known = {name: (column := getattr(self, name))[~np.isnan(column)] for name in names}
        return {name: float(column.mean()) if len(column) else np.nan for name, column in known.items()}
