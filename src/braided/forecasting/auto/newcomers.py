"""Newcomers: streams that have too few values to join the ensemble, and the values they have."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, final

import numpy as np

from braided.errors import InputError
from braided.forecasting.units import JOIN_AFTER
from braided.types import Floats
from braided.validate import insist_numbers

LONGEST_WAIT = 2000  # rounds that are remembered of a stream


@final
class Newcomers:
    """Values so far, by column; missing ones included, as changes are one round long."""

    def __init__(self) -> None:
        self.values: dict[int, Floats] = {}

    def meet(self, places: Iterable[int]) -> None:
        """Wait for values of new columns."""
        self.values |= {place: np.empty(0) for place in places}

    def take_up(self, table: Floats) -> None:
        """Remember rounds (n, all columns)."""
        self.values = {place: np.append(held, table[:, place])[-LONGEST_WAIT:] for place, held in self.values.items()}

    def next_join(self, table: Floats) -> int:
        """Return the number of rounds up to the first in which a newcomer has enough values; all if none has."""
        end = len(table)
        for place, held in self.values.items():
            rows = np.flatnonzero(~np.isnan(table[:end, place]))
            needed = JOIN_AFTER - n_known(held)
            if len(rows) >= needed:
                end = int(rows[needed - 1]) + 1
        return end

    def ready(self) -> list[tuple[int, Floats]]:
        """Return those that have enough values."""
        return [(place, held) for place, held in sorted(self.values.items()) if n_known(held) >= JOIN_AFTER]

    def dump(self) -> list[Any]:
        """Return the columns and their values, for `braided.save`."""
        return [list(self.values), list(self.values.values())]

    def restore(self, dumped: Any) -> None:
        """Take over what was dumped."""
        self.values = dict(zip(*dumped, strict=True))

    def insist_sound(self, places: set[int], longest: int, join_at_once: bool) -> None:
        """Refuse newcomers other than `places`, or with more values than they can have."""
        if self.values.keys() != places:
            raise InputError("the streams that wait to join are not those outside the ensemble")
        for held in self.values.values():
            insist_numbers(held, "first values", (len(held),), missing=True)
            if (join_at_once and n_known(held) >= JOIN_AFTER) or len(held) > min(LONGEST_WAIT, longest):
                raise InputError(f"a stream with {len(held)} values waits to join")


def n_known(values: Floats) -> int:
    """Return how many values are there."""
    return int(np.count_nonzero(~np.isnan(values)))
