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
