"""First rounds: they are kept until everything has been measured on them for the last time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, final

import numpy as np

from braided.errors import InputError
from braided.forecasting.clock import LARGEST_STAMP, NEVER
from braided.forecasting.engine import widened
from braided.types import Floats, Ints
from braided.validate import count, insist_integers, insist_numbers


class Part(NamedTuple):
    """Rounds that came together."""

    stamps: Ints  # (n,)
    values: Floats  # (n, T) of the streams seen by then
    extras: Floats  # (n, T, E) the last known ones before each round

    def widened(self, n_columns: int) -> Part:
        """Return the rounds with blank columns for the streams that came later."""
        more = n_columns - self.values.shape[1]
        return Part(self.stamps, widened(self.values, more), widened(self.extras, more))


@final
class FirstRounds:
    """The rounds so far, part by part."""

    def __init__(self, parts: Sequence[Part] = ()) -> None:
        self.parts = list(parts)

    @property
    def stamps(self) -> Ints:
        """Their times."""
        return np.concatenate([np.empty(0, np.int64), *(part.stamps for part in self.parts)])

    def whole(self, n_columns: int) -> Part:
        """Return all of them, with all columns seen by now."""
        return Part(*map(np.concatenate, zip(*(part.widened(n_columns) for part in self.parts), strict=True)))

    def keep_last(self, n: int, n_columns: int) -> None:
        """Forget all but the last n."""
        stamps, values, extras = self.whole(n_columns)
        self.parts = [Part(stamps[-n:], values[-n:], extras[-n:])]

    def dump(self) -> list[Any]:
        """Return them for `braided.save`."""
        return [[part.extras, part.values, part.stamps] for part in self.parts]

    @classmethod
    def restore(cls, dumped: Any) -> FirstRounds:
        """Return what was dumped."""
        return cls([Part(stamps, values, extras) for extras, values, stamps in dumped])

    def insist_sound(self, n: int, last: int, n_columns: int, n_extras: int) -> None:
        """Refuse anything but n rounds in order, the last of them at `last`."""
        stamps = self.stamps
        insist_integers(stamps, "times of the first rounds", (n,), NEVER, LARGEST_STAMP)
        if n and ((np.diff(stamps) <= 0).any() or stamps[-1] != last):
            raise InputError("the first rounds are not in order, or end elsewhere")
        for part in self.parts:
            width = count(np.shape(part.values)[1], "columns of the first rounds", least=0, most=n_columns)
            insist_numbers(part.values, "first rounds", (len(part.stamps), width), missing=True)
            insist_numbers(part.extras, "extras of the first rounds", (len(part.stamps), width, n_extras), missing=True)
