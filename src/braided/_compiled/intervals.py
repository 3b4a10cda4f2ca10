"""Intervals that contain the promised share of values: each task's width follows its own hits and misses."""

import numpy as np

from braided._compiled import compiled
from braided.types import Floats, Ints

LOG_FACTOR, SEEN, SQUARES = 0, 1, 2  # the columns of `calibration` (T, 3)
STEP_DECAY = 0.6  # of the steps of the factor, with the number of samples
SMALLEST_STEP = 0.02


@compiled
def half_widths_inplace(
    calibration: Floats, widths: Floats, errors: Floats, deviations: Floats, tasks: Ints, ends: Ints, misses: float
) -> None:
    """Give each sample the half-width of its interval, then learn from the errors, group by group.

    A width is the task's factor times the deviation, or times the root mean square of the task's errors so far where
    there are no deviations; NaN where neither is known. A miss raises the factor's logarithm by step · (1 − misses),
    a hit lowers it by step · misses, so in the long run the share of misses is the promised one, whatever the noise.
    """
    first = 0
    for end in ends:
        for i in range(first, end):
            own = calibration[tasks[i]]
            spread = np.nan
            if deviations.size:
                spread = deviations[i]
            elif own[SEEN] > 0.0:
                spread = np.sqrt(own[SQUARES] / own[SEEN])
            widths[i] = np.exp(own[LOG_FACTOR]) * spread
            if not widths[i] < np.inf:
                widths[i] = np.nan
        for i in range(first, end):
            own = calibration[tasks[i]]
            own[SEEN] += 1.0
            own[SQUARES] += errors[i] * errors[i]
            if not np.isnan(widths[i]):
                missed = 1.0 if abs(errors[i]) > widths[i] else 0.0
                own[LOG_FACTOR] += max(own[SEEN] ** -STEP_DECAY, SMALLEST_STEP) * (missed - misses)
        first = end


@compiled
def delayed_widths_inplace(
    calibration: Floats, delay: int, widths: Floats, errors: Floats, deviations: Floats, misses: float
) -> None:
    """Give forecasts of several rounds ahead their half-widths; learn from the errors once the targets have come.

    The last n rows of `widths` (m + n, T) are filled, from `deviations` (n, T); row i of `errors` (n, T), NaN where
    there is none, belongs to the forecasts that were made `delay` rows before.
    """
    n, T = errors.shape
    before = len(widths) - n
    for i in range(n):
        for t in range(T):
            width = np.exp(calibration[t, LOG_FACTOR]) * deviations[i, t]
            widths[before + i, t] = width if width < np.inf else np.nan
        for t in range(T):
            given = widths[before + i - delay, t]
            if errors[i, t] == errors[i, t] and given == given:
                own = calibration[t]
                own[SEEN] += 1.0
                missed = 1.0 if abs(errors[i, t]) > given else 0.0
                own[LOG_FACTOR] += max(own[SEEN] ** -STEP_DECAY, SMALLEST_STEP) * (missed - misses)
