"""Seasons: how long they are, and where a round lies in them.

Times become *positions*, counted in steps of the clock: dates by their day and hour, months and years by the calendar.
So a season is a number of steps, which need not be whole, and what was "a season ago" is found by position: missing
rounds, business days and months of any length need no special treatment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from braided._compiled.panel import Calendar
from braided._compiled.targets import Targets
from braided.errors import InputError
from braided.forecasting.clock import DAY, LARGEST_STAMP, Clock
from braided.types import Flags, Floats, Ints
from braided.validate import count, insist_kinds, real

HOUR = DAY // 24
MONTH = 28 * DAY  # the shortest
YEAR_DAYS = 365.25
WEEKS_PER_YEAR = 52
WAVES = {4: 1, 7: 3, 12: 5, 24: 4, 48: 4, 52: 2, 288: 4}  # harmonics by steps per season
OTHER_WAVES = 3
KNOWN_AFTER = 1.2  # seasons, from which their features are used
MOST_PHASES = 24  # bins of the shortest season, for filters by phase
MONDAY = 3  # the epoch's day, a Thursday, counted from Monday
SHORTEST, LONGEST = 2.0, 10_000.0  # seasons, in steps
MOST_SEASONS = 4
MONTHS_BEGIN = np.cumsum([0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30])  # in a leap year


@final
@dataclass(frozen=True)
class Seasons:
    """The lengths of seasons in steps, and how times become positions.

    >>> days = np.arange("2024-01-01", "2024-02-10", dtype="datetime64[D]").astype("datetime64[us]")
    >>> Seasons.of_clock(Clock.measure(days), is_dated=True).lengths
    (7.0, 365.25)
    """

    lengths: tuple[float, ...]
    step: int
    months: int = 0  # in a step; 0 if steps are not months
    is_dated: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengths", tuple(sorted(real(length, "season") for length in self.lengths)))
        for length in self.lengths:
            if not SHORTEST <= length <= LONGEST:
                raise InputError(
                    f"a season (--season) has {length:g} rounds: give a length between {SHORTEST:g} and {LONGEST:,.0f}"
                )
        if len(self.lengths) > MOST_SEASONS or len({*self.lengths}) < len(self.lengths):
            raise InputError(f"seasons are {self.lengths}: give at most {MOST_SEASONS}, each once")
        count(self.step, "step of the seasons", most=LARGEST_STAMP)
        count(self.months, "months of the seasons", least=0, most=12 * 10_000)
        insist_kinds(self, is_dated=bool)

    @classmethod
    def of_clock(cls, clock: Clock, is_dated: bool, lengths: tuple[float, ...] | None = None) -> Seasons:
        """Return the seasons given, or else those of the calendar: day, week and year, where steps are shorter."""
        step, by_clock, months = clock.step, tuple[float, ...](), 0
        if is_dated and step >= MONTH:
            months = max(round(step / (YEAR_DAYS * DAY / 12)), 1)
            by_clock = (12 / months,)
        elif is_dated and step >= 7 * DAY:
            by_clock = (WEEKS_PER_YEAR * 7 * DAY / step,)
        elif is_dated and step >= DAY:
            by_clock = tuple(days * DAY / step for days in (7, YEAR_DAYS))
        elif is_dated:
            by_clock = (DAY / step, 7 * DAY / step)
        by_clock = tuple(length for length in by_clock if SHORTEST <= length <= LONGEST)
        return cls(by_clock if lengths is None else lengths, step, months, is_dated)

    @property
    def in_words(self) -> list[str]:
        """How long each season is: a day, a week, a year, or a number of rounds."""
        named = {12 / self.months: "a year"} if self.months else {}
        if self.is_dated and not self.months:
            day, year = DAY / self.step, "a year"
            named = {day: "a day", 7 * day: "a week", YEAR_DAYS * day: year, WEEKS_PER_YEAR * 7 * day: year}
        return [named.get(length, f"{length:g} rounds") for length in self.lengths]

    @property
    def reach(self) -> int:
        """How many rounds seasonal features look back; where clocks are set back, an hour comes twice."""
        repeated = int(np.ceil(HOUR / self.step)) if self.is_dated and self.step < DAY and self.lengths else 0
        return max((int(np.ceil(length)) for length in self.lengths), default=0) + repeated + 1

    @property
    def waves(self) -> Ints:
        """The number of harmonics of each season."""
        return np.array([WAVES.get(round(length), OTHER_WAVES) for length in self.lengths], np.int64)

    @property
    def bins(self) -> Ints:
        """Where the phases of each season begin in an array of those of all."""
        return np.cumsum([0, *(int(np.ceil(length)) for length in self.lengths)])

    @property
    def known_from(self) -> Ints:
        """The rounds from which features of each season are used."""
        return np.array([int(np.ceil(KNOWN_AFTER * length)) for length in self.lengths], np.int64)

    @property
    def n_phases(self) -> int:
        """The number of bins for filters by phase; 1 without a season."""
        return min(int(np.ceil(self.lengths[0])), MOST_PHASES) if self.lengths else 1

    def positions(self, stamps: Ints) -> Floats:
        """Return local times as positions, in steps."""
        if not self.months:
            return stamps / self.step
        times = stamps.astype("datetime64[us]")
        months = times.astype("datetime64[M]")
        into = (times - months).astype(np.int64) / (31.0 * DAY)
        return (months.astype(np.int64) + into) / self.months

    def calendar(self, positions: Floats, before: Floats, is_after_gap: Flags) -> Calendar:
        """Return where rounds lie in seasons; `before` are the positions of earlier rounds, as far back as needed."""
        n, known = len(positions), np.maximum.accumulate(np.concatenate([before, positions]))  # an hour may come twice
        places = len(before) + np.arange(n)
        back, phase = np.zeros((2, n, len(self.lengths)), np.int64)
        angle = np.zeros((n, len(self.lengths)))
        for s, length in enumerate(self.lengths):
            wanted, phase[:, s] = self._season_ago(positions, length)
            back[:, s] = rounds_back(known, places, wanted)
            angle[:, s] = positions % length / length
        return Calendar(back, phase, angle, is_after_gap)

    def targets(self, positions: Floats, before: Floats) -> Targets:
        """Return where the rounds lie that are forecast 1 … H rounds ahead, from their positions (n, H)."""
        n, n_ahead = positions.shape
        known = np.maximum.accumulate(np.append(before, positions[:, 0]))
        places = len(before) + np.arange(n)[:, None]
        steps = np.arange(1, n_ahead + 1)
        back, phase = np.zeros((2, n, n_ahead, len(self.lengths)), np.int64)
        for s, length in enumerate(self.lengths):
            wanted, phase[:, :, s] = self._season_ago(positions, length)
            more = np.ceil(steps / length) - 1.0  # seasons, so that the round is known when the forecast is made
            back[:, :, s] = rounds_back(known, places, wanted - more * length)
        return Targets(back[:, 1:], phase)

    def moments(self, stamps: Ints) -> Floats:
        """Return what the clock says of local times (…, K): the phase of each season, and what these leave out.

        Where steps are shorter than a day, that is the day of the week and of the year.
        """
        positions = self.positions(stamps)
        columns: list[Floats | Ints] = [positions % length for length in self.lengths]
        if self.is_dated and self.step < DAY:
            days = stamps.astype("datetime64[us]").astype("datetime64[D]")
            into_year = days - days.astype("datetime64[Y]").astype("datetime64[D]")
            columns += [(days.astype(np.int64) + MONDAY) % 7, into_year.astype(np.int64)]
        return np.stack(columns, axis=-1, dtype=np.float64) if columns else np.empty((*stamps.shape, 0))

    def _season_ago(self, positions: Floats, length: float) -> tuple[Floats, Ints]:
        """Return the positions a season before, and the bins of the phases."""
        if length == YEAR_DAYS and self.step == DAY and self.is_dated:  # a year of days follows the dates
            return by_date(positions)
        bins = np.minimum(positions % length + 1e-9, np.ceil(length) - 1)
        return positions - length, bins.astype(np.int64)

    def phases(self, phase: Ints) -> Ints:
        """Return the bins (…) of rounds in the shortest season, for filters by phase, from those in each (…, S)."""
        if not self.lengths:
            return np.zeros(phase.shape[:-1], np.int64)
        return phase[..., 0] * self.n_phases // int(np.ceil(self.lengths[0]))


def rounds_back(known: Floats, places: Ints, wanted: Floats) -> Ints:
    """Return how many rounds before `places` the positions wanted were known; 0 where there was no such round."""
    found = np.searchsorted(known, wanted - 0.5)  # the first that is less than half a step earlier
    near = (found < places) & (np.abs(known[np.minimum(found, places)] - wanted) <= 0.5)
    return np.where(near, places - found, 0)


def by_date(positions: Floats) -> tuple[Floats, Ints]:
    """Return the position of the same date a year before, and the day of a leap year, of positions in days.

    >>> days = np.array(["2023-03-01", "2024-02-29", "2024-03-01"], dtype="datetime64[D]")
    >>> before, day = by_date(days.astype(np.float64))
    >>> before.astype("datetime64[D]").astype(str).tolist(), day.tolist()
    (['2022-03-01', '2023-03-01', '2023-03-01'], [60, 59, 60])
    """
    days = np.floor(positions).astype(np.int64).astype("datetime64[D]")
    months = days.astype("datetime64[M]")
    into = (days - months).astype(np.int64)
    before = (months - 12).astype("datetime64[D]").astype(np.int64) + into
    return before + positions % 1.0, MONTHS_BEGIN[months.astype(np.int64) % 12] + into


def is_weekend(stamps: Ints) -> Flags:
    """Return which times are on Saturdays and Sundays."""
    return (stamps // DAY + MONDAY) % 7 >= 5
