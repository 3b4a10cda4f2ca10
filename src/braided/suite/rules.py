"""Rules: forecasts without a model, which any method should beat.

| rule                              | forecast of the change from the last known level             |
|-----------------------------------|--------------------------------------------------------------|
| no change                         | 0                                                            |
| mean so far                       | to the mean of all levels so far                             |
| recent mean                       | to their exponential mean, with a weight of 0.2 for the last |
| mean change so far                | the mean of all changes so far                               |
| recent mean change                | their exponential mean (0.1)                                 |
| last change                       | the last change, once more                                   |
| mean change of all streams        | the streams' mean last change                                |
| recent mean change of all streams | an exponential mean (0.3) of these                           |
| value, change a season ago        | to the value, or the change, of a day, week or year before   |

Auto mixes the same rules, under the same names.

>>> import braided as bd
>>> past = Past(bd.datasets.wind_field(seed=0, steps=300, sites=3), cuts_of(300))      # synthetic
>>> [*rules_of(past)][:3]
['no change', 'mean so far', 'recent mean']
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from braided._compiled.panel import CHANGE_WEIGHT, COMMON_WEIGHT, LEVEL_WEIGHT
from braided.forecasting.auto.members import RULE_NAMES
from braided.suite.past import Past, back, known_so_far
from braided.suite.past import cuts_of as cuts_of  # for the example
from braided.types import Floats


def rules_of(past: Past) -> dict[str, Floats]:
    """Return the forecasts of each rule: changes from the last known level (rows, T), NaN where it has none."""
    return dict(_rules(past))


def _rules(past: Past) -> Iterator[tuple[str, Floats]]:
    last, changes, h = past.last, past.changes, past.horizon
    common = np.broadcast_to(past.mean_change, changes.shape)
    made = (
        np.zeros_like(last),
        back(_running_mean(past.levels), h) - last,
        back(_exponential_mean(past.levels, LEVEL_WEIGHT), h) - last,
        h * back(_running_mean(changes), h),
        h * back(_exponential_mean(changes, CHANGE_WEIGHT), h),
        back(changes, h),
        back(common, h),
        h * back(_exponential_mean(common, COMMON_WEIGHT), h),
    )
    yield from zip(RULE_NAMES, made, strict=True)
    for season in past.seasons:
        lag = past.lag_of(season)
        then = back(past.levels, lag)
        for name, base in (("value", last), ("change", back(past.levels, lag + h))):
            ago = then - base
            ago[: season.known_after] = np.nan
            yield f"{name} a {season.name} ago", ago


def _running_mean(series: Floats) -> Floats:
    """The mean of what is there up to each row."""
    count = (~np.isnan(series)).cumsum(axis=0)
    total = np.nancumsum(series, axis=0)
    return np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)


def _exponential_mean(series: Floats, weight: float) -> Floats:
    """The exponential mean up to each row, which starts at the first value; a missing value changes nothing."""
    means = known_so_far(series)  # the first value where there is none before
    for row in range(1, len(series)):
        before = means[row - 1]
        moved = before + weight * (series[row] - before)
        means[row] = np.where(np.isnan(moved), np.where(np.isnan(before), series[row], before), moved)
    return means
