"""Intervals and quantiles of forecasts 1, 2, … rounds ahead: how large errors typically are, and multiples of that.

A stream's typical error s is the geometric mean of two running root mean squares of its errors e, one slow, one fast,
which counts for less at longer horizons.
All streams together have a factor c, the running mean of e² / s²: shocks that many share make all intervals wider. The
half-width is √c · s times a multiple, whose logarithm is a stream's own and a common one: a value outside raises them,
one inside lowers them, so that in the long run the promised share is inside, whatever the noise. The longer the horizon
h, the smaller are the steps and the power of c, as h forecasts in a row share most of their error.

The quantile of level q is the forecast plus √c · s times a multiple with a sign, sinh(a). A value above raises a by q
steps, one below lowers it by 1 − q steps. Each level has its own a, so that quantiles of skewed errors lie at different
distances on either side. Far from 0, sinh is an exponential, like the multiple of an interval.

A stream's first errors are judged by those of all streams, in units of its changes. An error of next to nothing, as of
a stream that is constant, makes the fast mean smaller and changes nothing else.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from braided._compiled import compiled
from braided.types import Floats, Ints

SLOW, FAST, SEEN, LOG_FACTOR, OF_LEVELS = range(5)  # of own: mean squares, number of errors, log multiple, a …
SQUARE, VOLATILITY, COMMON_LOG, ROUNDS = range(4)  # of common: mean e² in units, c, logarithm, rounds with an error
SLOW_MEMORY, FAST_MEMORY = 0.005, 0.1  # of the newest error; fast: less at longer horizons, by √h
FIRST_ERRORS = 2.0  # that the errors of all streams count for, in a stream's own
COMMON_WINDOW = 500.0  # values of all streams in the mean c; more at longer horizons, by √h
LARGEST_COMMON_MEMORY = 0.3
FAST_DECAY = 0.25  # of the weight of the fast mean by the horizon, one half for the next round
COMMON_DECAY = 0.125  # of the exponent of c by the horizon: overlapping forecasts repeat a shock
CLIP_SQUARES_AT = 25.0  # s², in c
CLIP_ERRORS_AT = 100.0  # s², in s; or times the square of a tenth of the unit, if that is more
LEAST_TYPICAL = 0.1  # units, for that
FIRST_STEP, STEP_DECAY, SMALLEST_STEP = 0.25, 0.6, 0.02  # of the logarithms
OWN_STEP, COMMON_STEP = 0.5, 0.7
LEAST_SQUARE = 1e-280
LEAST_ERROR = 1e-3  # s: less is next to nothing
LEAST_SCALE, LARGEST_SCALE = 1e-140, 1e150  # s, so that its square is a number above 0
LARGEST_RELATIVE = 1e100  # units that an error counts for


class Spread(NamedTuple):
    """State for one horizon and Q levels; each a is the sum of a stream's own part and a common one."""

    own: Floats  # (4 + Q, T)
    common: Floats  # (4 + Q,)


class Widths(NamedTuple):
    """Intervals and quantiles of forecasts (m, T)."""

    half: Floats  # (m, T) half-widths of the intervals
    offsets: Floats  # (Q, m, T) of the quantiles, from the forecast
    scale: Floats  # (m, T) s


def fresh_spread(n_streams: int, horizon: int, log_factor: float, multiples: Floats | None = None) -> Spread:
    """Return the state before the first error: h changes are √h times as large as one; `multiples` (Q,) of levels."""
    first = np.empty(0) if multiples is None else multiples
    own = np.zeros((OF_LEVELS + len(first), n_streams))
    own[LOG_FACTOR], own[OF_LEVELS:] = log_factor, np.arcsinh(first)[:, None]
    return Spread(own, np.concatenate([[float(horizon), 1.0], np.zeros(2 + len(first))]))


@compiled
def scale_of(spread: Spread, unit: Floats, t: int, fast: float) -> float:
    """s of a stream, where the fast mean has weight `fast`; NaN for one without a unit, 0 for one whose unit is 0."""
    own, common = spread
    if not unit[t] > 0.0:
        return unit[t]
    scale = unit[t] * np.sqrt(common[SQUARE])
    if own[SEEN, t] > 0.0:
        slow = np.sqrt(own[SLOW, t])
        scale = slow * np.exp(0.5 * fast * np.log(own[FAST, t] / own[SLOW, t]))
    return min(max(scale, LEAST_SCALE), LARGEST_SCALE)


@compiled
def step_of(seen: float, horizon: float) -> float:
    """The step of a logarithm after that many errors."""
    return max(FIRST_STEP * seen**-STEP_DECAY, SMALLEST_STEP) / horizon


@compiled
def learn_error_inplace(own: Floats, t: int, horizon: float, scale: float, unit: float, error: float) -> None:
    """Take up an error of a stream in its mean squares; one of next to nothing in the fast one only."""
    typical, first = scale * scale, own[SEEN, t] == 0.0
    square = min(error * error, CLIP_ERRORS_AT * max(scale, LEAST_TYPICAL * unit) ** 2)
    own[SEEN, t] += 1.0
    newest = 1.0 / (own[SEEN, t] + FIRST_ERRORS)
    for which, memory in ((SLOW, SLOW_MEMORY), (FAST, FAST_MEMORY / np.sqrt(horizon))):
        before = typical if first else own[which, t]
        if which == FAST or abs(error) > LEAST_ERROR * scale:
            before += max(memory, newest) * (square - before)
        own[which, t] = max(before, LEAST_SQUARE)


@compiled
def widths_inplace(
    spread: Spread, delay: int, unit: Floats, order: Ints, made: Widths, errors: Floats, misses: float, levels: Floats
) -> None:
    """Give forecasts intervals and quantiles, round by round, and learn from errors once the values have come.

    The last n rows of what is `made` (m + n rows) are filled. Row i of `errors` (n, T), NaN where there is none,
    belongs to the forecasts of `delay` rows before. `unit` (T,) is a stream's typical change, NaN for no intervals;
    `order` the streams that have one, in the order in which their errors are added up; `misses` the share of values
    that are to be outside; `levels` (Q,) the shares that are to be below the quantiles.
    """
    own, common = spread
    (n, T), horizon = errors.shape, delay + 1.0
    before, above = len(made.half) - n, np.empty(len(levels))
    fast = 0.5 * horizon**-FAST_DECAY
    for i in range(n):
        volatility = common[VOLATILITY] ** (0.5 * horizon**-COMMON_DECAY)
        factor = np.exp(common[COMMON_LOG]) * volatility
        for t in range(T):
            scale = scale_of(spread, unit, t, fast)
            width = np.exp(own[LOG_FACTOR, t]) * factor * scale
            made.scale[before + i, t], made.half[before + i, t] = scale, width if width < np.inf else np.nan
            for q in range(len(levels)):
                multiple = np.sinh(own[OF_LEVELS + q, t] + common[OF_LEVELS + q])
                made.offsets[q, before + i, t] = multiple * volatility * scale if width < np.inf else np.nan
        then = before + i - delay
        square, ratio, missed, count = 0.0, 0.0, 0.0, 0
        above[:] = 0.0
        for t in order:
            error, width, scale = errors[i, t], made.half[then, t], made.scale[then, t]
            if error == error and width == width and scale > 0.0 and unit[t] > 0.0:
                learn_error_inplace(own, t, horizon, scale, unit[t], error)
                if abs(error) > LEAST_ERROR * scale:
                    step = OWN_STEP * step_of(own[SEEN, t], horizon)
                    miss = (1.0 if abs(error) > width else 0.0) - misses
                    own[LOG_FACTOR, t] += step * miss
                    for q in range(len(levels)):
                        more = levels[q] - (0.0 if error > made.offsets[q, then, t] else 1.0)
                        own[OF_LEVELS + q, t] += step * more
                        above[q] += more
                    relative = min(abs(error) / unit[t], LARGEST_RELATIVE)
                    square += min(relative * relative, CLIP_ERRORS_AT * common[SQUARE])
                    ratio += min((error / scale) ** 2, CLIP_SQUARES_AT)
                    missed += miss
                    count += 1
        if count > 0:
            common[ROUNDS] += 1.0
            newest = 1.0 / (common[ROUNDS] + 1.0)
            memory = min(count / (COMMON_WINDOW * np.sqrt(horizon)), LARGEST_COMMON_MEMORY)
            common[SQUARE] += newest * (square / count - common[SQUARE])
            common[VOLATILITY] += max(memory, newest) * (ratio / count - common[VOLATILITY])
            step = COMMON_STEP * step_of(common[ROUNDS], horizon)
            common[COMMON_LOG] += step * missed / count
            common[OF_LEVELS:] += step * above / count
