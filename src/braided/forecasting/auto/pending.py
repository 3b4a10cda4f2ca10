"""Pending: forecasts whose values are still to come, and the intervals and quantiles of all forecasts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, final

import numpy as np

from braided._compiled.spread import COMMON_LOG, LOG_FACTOR, OF_LEVELS, Spread, Widths, fresh_spread, widths_inplace
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
    offsets: Floats  # (H, Q, n, T) of the quantiles, from the forecast


@final
class Pending:
    """The forecasts of the last H − 1 rounds, and how wide intervals are by now."""

    def __init__(self, horizon: int, coverage: float, levels: tuple[float, ...] = ()) -> None:
        from scipy.special import ndtri

        self.horizon, self.misses, self.levels = horizon, 1.0 - coverage, np.array(levels)
        self._log_factor = float(np.log(ndtri(0.5 + coverage / 2.0)))  # of the first intervals, as of normal errors
        self._multiples: Floats = ndtri(self.levels)  # of the first quantiles, as of normal errors
        none, offsets = np.empty((horizon, horizon - 1, 0)), np.empty((horizon, len(levels), horizon - 1, 0))
        self.given = Given(none, none, none, none, none, offsets)
        self.spreads = [self._fresh(h, 0) for h in range(1, horizon + 1)]

    def _fresh(self, horizon: int, n_streams: int) -> Spread:
        return fresh_spread(n_streams, horizon, self._log_factor, self._multiples)

    def meet(self, n: int) -> None:
        """Make room for new streams."""
        ends = (0, 0), (0, n)
        self.given = Given(
            *(np.pad(array, (*((0, 0),) * (array.ndim - 2), *ends), constant_values=np.nan) for array in self.given)
        )
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
        offsets = np.full((self.horizon, len(self.levels), *values.shape), np.nan)
        new = Given(forecast, np.broadcast_to(last, forecast.shape), naive, unknown, unknown, offsets)
        every = Given(*(np.concatenate(pair, axis=-2) for pair in zip(self.given, new, strict=True)))
        found = Given(*(np.empty(array.shape) for array in new))
        for k, spread in enumerate(self.spreads):
            rows = np.s_[self.horizon - 1 - k : self.horizon - 1 - k + n]  # the forecasts made k rounds before
            errors = values - every.forecast[k, rows]
            made = Widths(every.width[k], every.offsets[k], every.scale[k])
            widths_inplace(spread, k, unit, order, made, errors, self.misses, self.levels)
            for array, whole in zip(found, every, strict=True):
                array[k] = whole[k][..., rows, :]
        self.given = Given(*(array[..., n:, :].copy() for array in every))
        return found

    def ahead(self, unit: Floats) -> tuple[Floats, Floats]:
        """Return half-widths (H, T) of the next rounds, and offsets of quantiles (H, Q, T); nothing is learned."""
        none, nobody = np.full((1, len(unit)), np.nan), np.empty(0, np.int64)
        widths, offsets = (np.empty((self.horizon, *some, *none.shape)) for some in ((), self.levels.shape))
        for k, spread in enumerate(self.spreads):
            made = Widths(widths[k], offsets[k], np.empty_like(none))
            widths_inplace(spread, k, unit, nobody, made, none, self.misses, self.levels)
        return widths[:, 0], offsets[:, :, 0]

    def dump(self) -> dict[str, Any]:
        """Return all arrays."""
        spreads = [spread._asdict() for spread in self.spreads]
        return {"given": self.given._asdict(), "spreads": spreads}

    def restore(self, dumped: Mapping[str, Any], n_streams: int) -> None:
        """Take over what was dumped; raise InputError if it does not fit."""
        self.meet(n_streams)
        given = self.given._asdict() | dict(dumped["given"])  # older files have no offsets
        for name, array in self.given._asdict().items():
            insist_numbers(given[name], f"pending {name}", array.shape, missing=True)
        if len(dumped["spreads"]) != self.horizon:
            raise InputError(f"there are intervals for {len(dumped['spreads'])} horizons, not {self.horizon}")
        for held, fresh in zip(dumped["spreads"], self.spreads, strict=True):
            for name, array in fresh._asdict().items():
                insist_numbers(held[name], f"{name} of the intervals", array.shape)
            own, common = held["own"][:OF_LEVELS], held["common"][:OF_LEVELS]
            if (np.delete(own, LOG_FACTOR, axis=0) < 0.0).any() or (np.delete(common, COMMON_LOG) < 0.0).any():
                raise InputError("the intervals have errors below 0")
        self.given = Given(**given)
        self.spreads = [Spread(**held) for held in dumped["spreads"]]
