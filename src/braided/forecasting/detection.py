"""Detection of seasons, for tables whose times are numbers and say nothing of days or years.

First, what a trend and the last value explain is removed from each stream. A season is then a length at which the rest
follows its own mean over earlier rounds of the same phase, in all streams together, more closely than by chance.

>>> import numpy as np
>>> noise = np.random.default_rng(0).normal(size=(100, 3))
>>> weekend = np.arange(100)[:, None] % 7 >= 5
>>> detect_seasons(noise + 3 * weekend), detect_seasons(noise), detect_seasons(noise.cumsum(axis=0))
((7,), (), ())
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from braided.types import Flags, Floats, Ints

FALSE_ALARMS = 0.02  # a bound on the share of tables without a season in which one is found
MOST_STREAMS = 300  # looked at; of more, a selection spread evenly
MOST_CANDIDATES = 30  # lengths looked at closely
FEWEST_CHANGES = 8  # of a stream, or it is left out
LEAST_RESPONSE = -0.995  # to the last value: a stream that swings back fully would leave nothing of a season of 2
CLIP_SURPRISES_AT = 5.0  # times their typical size
MOST_EXPLAINED = 0.7  # share of what a length explains; if a divisor explains more of it, both are seasons
MOST_MULTIPLE = 10  # of a season: up to this one, a length one round off is taken for the multiple itself
ROUNDING = 1e-9  # below this, what is left of values near 1 means nothing
PRIOR_VISITS = 0.5  # of a phase: a mean of few rounds counts for less


def detect_seasons(levels: Floats) -> tuple[int, ...]:
    """Return the lengths of at most two seasons, in rounds, the shorter first, from 2 to a third of the rounds.

    Levels are (rounds, streams), NaN where missing. A second season is one that shows once the first is removed. A
    multiple of a season only counts if its phases differ by more than the shorter season explains.

    Streams that wander are common, so a season must be more than slow waves: one that moves levels only a few times,
    such as a higher level on four weekends, is not found. Nor is a weak season of 2, which looks like swings.
    """
    longest = len(levels) // 3
    some = levels[:, :: -(-levels.shape[1] // MOST_STREAMS) or 1]
    first = _strongest(_surprises(some), longest)
    if first is None:
        return ()
    surprises = _surprises(some, first)  # without what the season itself made the last value seem to explain
    first = _strongest(surprises, longest) or first
    part = _part(surprises, first, longest)
    while part is not None and not _best(_without(surprises, part), [first], longest):
        first, part = part, _part(surprises, part, longest)  # the shorter explains all that the longer does: 7, not 14
    if part is not None and _are_two(part, first, surprises):
        return part, first
    second = _strongest(_without(surprises, first), longest, first)
    if second is not None and second % first == 0 and not _are_two(first, second, surprises):
        first, second = second, _strongest(_without(surprises, second), longest, second)
    return (first,) if second is None else (min(first, second), max(first, second))


def _are_two(part: int, length: int, surprises: Floats) -> bool:
    """Whether a length and a divisor of it are two seasons, like week and day, or one, like a year and its half.

    They are two if the divisor is at most a quarter of the length, and explains most of what the length explains.
    """
    arrays = _without(surprises, part), surprises
    left, whole = (_correlations(array)[0][length] * np.nanmean(array**2) for array in arrays)
    return length >= 4 * part and bool(left <= (1.0 - MOST_EXPLAINED) * whole)


def _part(surprises: Floats, length: int, longest: int) -> int | None:
    """The divisor of a length that makes the best season, or None."""
    return _best(surprises, [part for part in range(2, length // 2 + 1) if length % part == 0], longest)


def _surprises(levels: Floats, season: int = 1) -> Floats:
    """What a trend and the last value do not explain, in units of its typical size; NaN where missing.

    Noise, random walks, and streams that return to a mean or swing around it leave white noise. How far a stream
    follows its last value is measured on what its season, if one is known, leaves.
    """
    kept = [found for level in levels.T if (found := _surprises_of(level, season)) is not None]
    return np.stack(kept, axis=1) if kept else np.empty((max(len(levels) - 1, 0), 0))


def _surprises_of(level: Floats, season: int) -> Floats | None:
    """The surprises of one stream, or None if it has too few values or they hold no surprise."""
    there = ~np.isnan(level)
    both = there[1:] & there[:-1]
    if both.sum() < FEWEST_CHANGES or (units := _in_units(level)) is None:
        return None
    times = np.linspace(-1.0, 1.0, len(both))[both]
    trend = np.stack([np.ones_like(times), times], axis=1)
    pairs = np.stack([units[1:][both], units[:-1][both]], axis=1)
    pairs -= trend @ np.linalg.lstsq(trend, pairs, rcond=None)[0]
    phases = np.flatnonzero(both) % season
    now, last = (column - _phase_means(column, phases) for column in pairs.T)
    energy = last @ last
    response = max(float(now @ last / energy), LEAST_RESPONSE) if energy > 0 else 0.0
    left = pairs @ (1.0, -response)
    size = np.sqrt(np.mean(left**2))
    if size < ROUNDING:
        return None
    typical = max(float(np.median(np.abs(left))) / 0.6745, 0.1 * size)  # the median does not see a few wild ones
    clipped = np.clip(left / typical, -CLIP_SURPRISES_AT, CLIP_SURPRISES_AT)
    surprises = np.full(len(both), np.nan)
    surprises[both] = clipped / np.sqrt(np.mean(clipped**2))
    return surprises


def _in_units(level: Floats) -> Floats | None:
    """A level brought between 0 and 1, or None if it is constant."""
    low, high = np.nanmin(level), np.nanmax(level)
    if not low < high:
        return None
    largest = max(abs(low), abs(high))  # as differences of huge values would overflow
    return (level / largest - low / largest) / (high / largest - low / largest)


def _phase_means(values: Floats, phases: Ints) -> Floats:
    """For each value, the mean of its phase."""
    return (np.bincount(phases, values) / np.maximum(np.bincount(phases), 1))[phases]


def _strongest(surprises: Floats, longest: int, beside: int | None = None) -> int | None:
    """The length that shows most clearly, or None; `beside` is a known season that was removed."""
    if longest < 2 or not surprises.shape[1]:
        return None
    correlations, sizes = _correlations(surprises)
    lengths = _candidates(correlations * sizes, longest).tolist()
    kept = [length for length in lengths if beside is None or _differs(length, beside, correlations)]
    return _best(surprises, kept, longest)


def _best(surprises: Floats, lengths: Sequence[int], longest: int) -> int | None:
    """The length that gains most, of those that chance would hardly produce; or None."""
    least = np.sqrt(2.0 * np.log(longest / FALSE_ALARMS))
    found = [
        (gain, -length) for length in lengths for deviations, gain in [_scores(surprises, length)] if deviations > least
    ]
    return -max(found)[1] if found else None


def _correlations(surprises: Floats) -> tuple[Floats, Floats]:
    """The mean correlation of rounds at each lag, over all streams, and the square root of the number of pairs."""
    rounds = len(surprises)
    there = ~np.isnan(surprises)
    sums, pairs = (
        np.fft.irfft((np.abs(np.fft.rfft(array, 2 * rounds, axis=0)) ** 2).sum(axis=1), 2 * rounds)[:rounds]
        for array in (np.where(there, surprises, 0.0), there.astype(np.float64))
    )
    pairs = np.round(pairs)
    return np.where(pairs > 0, sums / np.maximum(pairs, 1.0), 0.0), np.sqrt(pairs)


def _candidates(strengths: Floats, longest: int) -> Ints:
    """The lengths at which the correlation peaks highest, and their neighbours, as noise shifts a flat peak."""
    inner = strengths[1:-1]
    is_peak: Flags = (inner >= strengths[:-2]) & (inner >= strengths[2:]) & (inner > 0)
    peaks = 1 + np.flatnonzero(is_peak)
    peaks = peaks[(peaks >= 2) & (peaks <= longest)]
    highest = peaks[np.argsort(-strengths[peaks], kind="stable")[:MOST_CANDIDATES]]
    around = np.unique(highest[:, None] + np.array([-1, 0, 1]))
    return around[(around >= 2) & (around <= longest)]


def _scores(surprises: Floats, length: int) -> tuple[float, float]:
    """How clearly rounds agree with their phase's mean so far, in standard deviations; and what that gains.

    The gain is that of the squared error, with the best multiple of the mean as a forecast. The mean uses earlier
    rounds only, so its products with the rounds are uncorrelated where there is no season. They are first summed over
    the streams, so that streams that move together count as few.
    """
    rounds, streams = surprises.shape
    cycles = -(-rounds // length)
    grid = np.full((cycles * length, streams), np.nan)
    grid[:rounds] = surprises
    grid = grid.reshape(cycles, length, streams)
    there = ~np.isnan(grid)
    values = np.where(there, grid, 0.0)
    before = values.cumsum(axis=0) - values
    visits = there.cumsum(axis=0) - there
    means = np.where(there, before / (visits + PRIOR_VISITS), 0.0)
    products = (values * means).sum(axis=2)
    size = float(np.sqrt((products**2).sum()))
    if not size > 0:
        return 0.0, 0.0
    total = float(products.sum())
    return total / size, total**2 / float((means**2).sum())


def _without(surprises: Floats, length: int) -> Floats:
    """The surprises less the mean of their phase."""
    left = surprises.copy()
    for phase in range(length):
        rows = left[phase::length]
        visits = np.maximum((~np.isnan(rows)).sum(axis=0), 1)
        rows -= np.nansum(rows, axis=0) / visits
    left[np.abs(left) < ROUNDING] = 0.0  # or a season without noise would leave a pattern
    return left


def _differs(length: int, known: int, correlations: Floats) -> bool:
    """Whether a length can be a season beside a known one, rather than a trace of it.

    A season that changes slowly, or is not a whole number of rounds, leaves traces near small multiples and divisors.
    """
    if length % known == 0:
        others = [other for other in (length - known, length + known) if 0 < other < len(correlations)]
        return length > known and bool((correlations[length] > correlations[others]).all())
    nearest = max(round(length / known), 1)
    is_near_multiple = nearest <= MOST_MULTIPLE and abs(length - nearest * known) <= 1
    return not is_near_multiple and all(abs(k * length - known) > k for k in (1, 2, 3)) and known % length > 0
