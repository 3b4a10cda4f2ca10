"""Auto: the settings of the mixture, which finds out everything else from the values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, final

from braided.errors import InputError
from braided.forecasting.auto.members import Member, insist_members
from braided.forecasting.auto.seasons import Seasons
from braided.forecasting.holidays import check_region
from braided.forecasting.zones import check_timezone
from braided.validate import count, insist_kinds, real, share

LONGEST_HORIZON = 200  # rounds; memory grows with its square
MOST_QUANTILES = 20


@final
@dataclass(frozen=True)
class Auto:
    """A mixture of rules and learners, which needs no tuning.

    Parameters
    ----------
    members
        What to mix besides the rules; by default what suits the number of streams and their seasons. `Defaults()`
        stands for these in a list with others.
    seasons
        Lengths in rounds, such as (7, 365.25), or () for none; by default those of the clock, such as day and week
        where steps are shorter than a day, or those that are found where times are whole numbers.
    timezone
        The clock that seasons follow, such as "Australia/Melbourne". Times in UTC are converted to it; times without
        an offset are taken to be local times.
    holidays
        The country, or country and region, whose public holidays count as days off, such as "AU" or "AU-VIC".
    low, high
        Bounds of forecasts and intervals.
    sharing
        Whether streams learn from each other; if not, every stream has a mixture of its own.
    robust
        Whether wild values have little weight.
    horizon
        How many rounds ahead to forecast: each value is forecast 1, 2, … so many rounds before it comes.
    quantiles
        The levels of the quantiles to forecast beside the interval, in rising order, such as (0.1, 0.5, 0.9).
    compares
        Whether a mixture that shares nothing runs alongside, to measure what sharing gains; doubles the time.

    >>> Auto(timezone="Australia/Melborne")
    Traceback (most recent call last):
    braided.errors.InputError: no timezone 'Australia/Melborne': did you mean 'Australia/Melbourne'?
    """

    members: tuple[Member, ...] | None = None
    seasons: tuple[float, ...] | None = None
    timezone: str | None = None
    holidays: str | None = None
    low: float | None = None
    high: float | None = None
    sharing: bool = True
    robust: bool = True
    compares: bool = False
    horizon: int = 1
    quantiles: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.members is not None:
            object.__setattr__(self, "members", tuple(self.members))
            insist_members(self.members)
        if self.seasons is not None:
            object.__setattr__(self, "seasons", Seasons(tuple(self.seasons), 1).lengths)
        if self.timezone is not None:
            check_timezone(self.timezone)
        if self.holidays is not None:
            check_region(self.holidays)
        for name in ("low", "high"):
            bound = getattr(self, name)
            object.__setattr__(self, name, None if bound is None else real(bound, name))
        if self.low is not None and self.high is not None and self.low >= self.high:
            raise InputError(
                f"low (--min) is {self.low:g} and high (--max) is {self.high:g}: give a low that is below high"
            )
        insist_kinds(self, sharing=bool, robust=bool, compares=bool)
        object.__setattr__(self, "horizon", count(self.horizon, "horizon", most=LONGEST_HORIZON))
        object.__setattr__(self, "quantiles", _levels(self.quantiles))


def _levels(given: Any) -> tuple[float, ...]:
    """Return the levels of quantiles; refuse anything else."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InputError(f"quantiles is {given!r:.80}: give levels between 0 and 1, such as (0.1, 0.5, 0.9)")
    levels = tuple(share(level, "quantiles") for level in given)
    if list(levels) != sorted({*levels}):
        raise InputError(f"quantiles are {levels!r:.80}: give each once, in rising order, such as (0.1, 0.5, 0.9)")
    if len(levels) > MOST_QUANTILES:
        raise InputError(f"quantiles are {len(levels)} levels: give {MOST_QUANTILES} or fewer")
    return levels
