"""Pending: forecasts whose values are still to come, and the intervals of all forecasts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, final

import numpy as np

from braided._compiled.spread import COMMON_LOG, LOG_FACTOR, Spread, fresh_spread, widths_inplace
from braided.errors import InputError
from braided.types import Floats, Ints
from braided.validate import insist_numbers


class Given(NamedTuple):
    """What was forecast of n rounds, h = 1 … H rounds before they came; NaN where nothing was."""

    forecast: Floats  # (H, n, T)
    last: Floats  # (H, n, T) the value known last then
    naive: Floats  # (H, n, T) the value a season before
    scale: Floats  # (H, n, T) typical error
    width: Floats  # (H, n, T) half of the interval


@final
class Pending:
    """The forecasts of the last H − 1 rounds, and how wide intervals are by now."""

    def __init__(self, horizon: int, coverage: float) -> None:
        from scipy.special import ndtri

        self.horizon, self.misses = horizon, 1.0 - coverage
        self._log_factor = float(np.log(ndtri(0.5 + coverage / 2.0)))  # of the first widths: of normal errors
        self.given = Given(*np.empty((len(Given._fields), horizon, horizon - 1, 0)))
        self.spreads = [self._fresh(h, 0) for h in range(1, horizon + 1)]

    def _fresh(self, horizon: int, n_streams: int) -> Spread:
        return fresh_spread(n_streams, horizon, self._log_factor)

    def meet(self, n: int) -> None:
        """Make room for new streams."""
        ends = ((0, 0), (0, 0), (0, n))
        self.given = Given(*(np.pad(array, ends, constant_values=np.nan) for array in self.given))
        self.spreads = [
            Spread(np.hstack([spread.own, self._fresh(h, n).own]), spread.common)
            for h, spread in enumerate(self.spreads, 1)
        ]

    def advance(
        self, forecast: Floats, last: Floats, naive: Floats, unit: Floats, values: Floats, order: Ints
    ) -> Given:
        """Take up forecasts (H, n, T) made before each of n rounds of `values`; return what was forecast of these.

        `unit` (T,) is NaN for streams that get no intervals; `order` lists the others, so that no bit depends on the
        order of the columns.
        """
        n = len(values)
        unknown = np.full(forecast.shape, np.nan)
        new = forecast, np.broadcast_to(last, forecast.shape), naive, unknown, unknown
        every = Given(*(np.concatenate(pair, axis=1) for pair in zip(self.given, new, strict=True)))
        found = Given(*(np.empty(forecast.shape) for _ in Given._fields))
        for k, spread in enumerate(self.spreads):
            rows = np.s_[self.horizon - 1 - k : self.horizon - 1 - k + n]  # the forecasts made k rounds before
            errors = values - every.forecast[k, rows]
            widths_inplace(spread, k, unit, order, every.width[k], every.scale[k], errors, self.misses)
            for array, whole in zip(found, every, strict=True):
                array[k] = whole[k, rows]
        self.given = Given(*(array[:, n:].copy() for array in every))
        return found

    def ahead(self, unit: Floats) -> Floats:
        """Return half-widths (H, T) of the forecasts of the next rounds; nothing is learned."""
        widths = np.empty((self.horizon, len(unit)))
        none, nobody = np.full((1, len(unit)), np.nan), np.empty(0, np.int64)
        for k, spread in enumerate(self.spreads):
            widths_inplace(spread, 0, unit, nobody, widths[k : k + 1], np.empty_like(none), none, self.misses)
        return widths

    def dump(self) -> dict[str, Any]:
        """Return all arrays."""
        spreads = [spread._asdict() for spread in self.spreads]
        return {"given": self.given._asdict(), "spreads": spreads}

    def restore(self, dumped: Mapping[str, Any], n_streams: int) -> None:
        """Take over what was dumped; raise InputError if it does not fit."""
        self.meet(n_streams)
        for name, array in self.given._asdict().items():
            insist_numbers(dumped["given"][name], f"pending {name}", array.shape, missing=True)
        if len(dumped["spreads"]) != self.horizon:
            raise InputError(f"there are intervals for {len(dumped['spreads'])} horizons, not {self.horizon}")
        for held, fresh in zip(dumped["spreads"], self.spreads, strict=True):
            for name, array in fresh._asdict().items():
                insist_numbers(held[name], f"{name} of the intervals", array.shape)
            own, common = np.asarray(held["own"]), np.asarray(held["common"])
            if (np.delete(own, LOG_FACTOR, axis=0) < 0.0).any() or (np.delete(common, COMMON_LOG) < 0.0).any():
                raise InputError("the intervals have errors below 0")
        self.given = Given(**dumped["given"])
        self.spreads = [Spread(**held) for held in dumped["spreads"]]
