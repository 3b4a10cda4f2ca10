"""LocalClock: a clock that counts days, and longer steps, on local time; some days have 23 or 25 hours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from braided.forecasting.clock import DAY, Clock, as_stamps
from braided.forecasting.zones import local_stamps, utc_stamps
from braided.types import Ints, Times


@final
@dataclass(frozen=True)
class LocalClock:
    """A clock, and the zone to which times are converted; None if they are local already, or no dates.

    >>> nights = ["2024-10-03T14", "2024-10-04T14", "2024-10-05T14", "2024-10-06T13", "2024-10-07T13"]    # in UTC
    >>> midnights = np.array(nights, "datetime64[h]")     # in Melbourne, where one night is an hour shorter
    >>> clock = LocalClock(LocalClock(Clock(), "Australia/Melbourne").measured(midnights), "Australia/Melbourne")
    >>> clock.ahead(as_stamps(midnights[:1]), 5).view("datetime64[us]").tolist() == [midnights.tolist()]
    True
    """

    clock: Clock
    zone: str | None

    def local(self, stamps: Ints) -> Ints:
        """Return times (…) on the local clock, which seasons follow."""
        return stamps if self.zone is None else local_stamps(stamps.ravel(), self.zone).reshape(stamps.shape)

    def measured(self, times: Times) -> Clock:
        """Measure steps; days and longer ones on the local clock."""
        clock = Clock.measure(times)
        if clock.step < DAY or self.zone is None:
            return clock
        return Clock.measure(self.local(as_stamps(times)).view("datetime64[us]"))

    def ahead(self, stamps: Ints, n: int) -> Ints:
        """Return times, and when the n − 1 rounds after each are expected (…, n)."""
        if self.zone is None or self.clock.step < DAY or n == 1:
            return self.clock.ahead(stamps, n)
        local = self.clock.ahead(self.local(stamps), n)[..., 1:]
        after = utc_stamps(local.ravel(), self.zone).reshape(local.shape)
        return np.concatenate([stamps[..., None], after], axis=-1)
