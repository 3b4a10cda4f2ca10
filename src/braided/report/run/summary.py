"""Summary: what a forecaster's record says, as rows and in plain words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from braided.forecasting import Engine
from braided.forecasting.units import LARGEST_LEVEL
from braided.printable import printable
from braided.runs.tuning_period import ROBUST_BEYOND
from braided.study import METHODS
from braided.types import Flags, Floats
from braided.validate import LARGEST_VALUE

SMALL = 0.05  # per cent: less is the same
MOST_NAMES = 5
MANY = 2.0  # per cent of the values that are far off


@final
@dataclass(frozen=True, eq=False)
class Summary:
    """Errors per task, in the order of the tasks; NaN where there is nothing to compare with."""

    tasks: tuple[Any, ...]
    counts: Floats  # forecasts scored
    rmse: Floats  # in the units of the values, or growth where logarithms are learned
    to_no_change: Floats  # over the error of "no change"
    single_to_no_change: Floats  # that of one filter per stream
    to_last_change: Floats
    to_single: Floats  # over the error of one filter per stream
    coverage: Floats  # share of the values in their intervals

    @classmethod
    def of(cls, forecaster: Engine) -> Summary:
        """Take it from the record."""
        record = forecaster.record
        own, single, no_change, last_change = record.rmse.T
        return cls(
            forecaster.tasks,
            record.counts,
            own * forecaster.units.scale,
            _ratio(own, no_change),
            _ratio(single, no_change),
            _ratio(own, last_change),
            _ratio(own, single),
            _ratio(record.covered, record.intervals),
        )

    @property
    def scored(self) -> bool:
        """Whether there is a forecast with an error to compare."""
        return bool((~np.isnan(self.to_no_change)).any())

    @property
    def gains(self) -> Floats:
        """By how many per cent sharing lowers the error, per task."""
        return 100.0 * (1.0 - self.to_single)

    @property
    def helped(self) -> Flags:
        """Whether it lowers a task's error by more than next to nothing."""
        return self.gains >= SMALL

    @property
    def means(self) -> dict[str, float]:
        """The means over the tasks."""
        names = ("to_no_change", "single_to_no_change", "to_last_change", "to_single", "coverage")
        known = {name: (column := getattr(self, name))[~np.isnan(column)] for name in names}
        return {name: float(column.mean()) if len(column) else np.nan for name, column in known.items()}


def _ratio(a: Floats, b: Floats) -> Floats:
    return np.divide(a, b, out=np.full(len(a), np.nan), where=b > 0.0)


def in_words(forecaster: Engine) -> list[str]:
    """Return what the record says, also where it goes against the method."""
    summary = Summary.of(forecaster)
    said = [*_sharing(forecaster, summary), *_parts(forecaster)]
    if not summary.scored:
        said = ["There was nothing to forecast after the part to tune on."]
    elif summary.means["to_no_change"] > 1.0 - SMALL / 100.0:
        said = [f"No better than the forecast “no change”. {_skill(summary)}", *said]
    else:
        said.append(_skill(summary))
    return [*said, *_intervals(forecaster, summary), *_trouble(forecaster)]


def _sharing(forecaster: Engine, summary: Summary) -> list[str]:
    if forecaster.single is None:
        choice = forecaster.origin.choice
        if choice is not None and any(METHODS[trial.method].shares for trial in choice.trials):
            return ["Sharing did not pay on the part to tune on, so each stream has a filter of its own."]
        return [] if forecaster.learner.shares else ["Each stream has a filter of its own."]
    gains = summary.gains
    known = ~np.isnan(gains)
    helped, hurt = summary.helped, gains <= -SMALL
    mean = 100.0 * (1.0 - summary.means["to_single"])
    verb = "makes no difference" if abs(mean) < SMALL else "helps" if mean > 0.0 else "hurts"
    how = f": {_percent(mean)} error than with one filter per stream, on average" * (abs(mean) >= SMALL)
    said = f"Sharing {verb}{how}; it lowers the error of {helped.sum():,} of {known.sum():,} streams"
    if hurt.any():
        worst = np.flatnonzero(hurt)[np.argsort(gains[hurt])]
        said += f", and raises that of {_several([f'{summary.tasks[i]} by {-gains[i]:.1f} %' for i in worst])}"
    return [said + "."]


def _parts(forecaster: Engine) -> list[str]:
    """Say what tied weights and the neighbours' changes gain by themselves, on the part to tune on."""
    choice = forecaster.origin.choice
    trials = () if choice is None else choice.trials
    scores = {trial.method: trial.score for trial in trials if trial.score is not None}
    alone = scores.get("wrls")
    names = {
        "mt-wrls": "tied weights alone",
        "wrls-neighbours": "the neighbours' changes and the gap to their level alone",
    }
    names["mt-wrls-neighbours"] = "both"
    if alone and all(scores.get(name) for name in names):
        parts = [f"{words} {_percent(100.0 * (1.0 - scores[name] / alone))}" for name, words in names.items()]
        return [f"On the part to tune on: {', '.join(parts)}."]
    return []


def _several(names: list[str]) -> str:
    more = len(names) - MOST_NAMES
    return ", ".join(map(printable, names[:MOST_NAMES])) + f" and {more:,} more" * (more > 0)


def _skill(summary: Summary) -> str:
    means = summary.means
    own, goes_on = (100.0 * (1.0 - means[name]) for name in ("to_no_change", "to_last_change"))
    said = f"{_percent(own)} error than the forecast “no change”, {_percent(goes_on)} than “the last change repeats”"
    worse = [str(summary.tasks[place]) for place in np.flatnonzero(summary.to_no_change > 1.0 + SMALL / 100.0)]
    if worse:
        said += f"; “no change” is better for {_several(worse)}"
    return f"{said[0].upper()}{said[1:]}."


def _percent(gain: float) -> str:
    return f"{abs(gain):.1f} % {'less' if gain >= 0 else 'more'}" if abs(gain) >= SMALL else "no less"


def _intervals(forecaster: Engine, summary: Summary) -> list[str]:
    if not forecaster.record.intervals.any():
        return []
    low, high = np.nanmin(summary.coverage), np.nanmax(summary.coverage)
    return [
        f"Intervals of {100 * forecaster.coverage:g} % held {100 * summary.means['coverage']:.1f} % of the values "
        f"({100 * low:.1f} to {100 * high:.1f} % by stream)."
    ]


def _trouble(forecaster: Engine) -> list[str]:
    said = []
    if forecaster.gaps:
        count = f"{forecaster.gaps} gap{'s' * (forecaster.gaps > 1)}"
        said.append(f"{count} longer than the usual step; lags do not reach across.")
    if forecaster.irregular:
        said.append(f"{forecaster.irregular:,} steps are longer than usual, but no gaps.")
    if forecaster.too_large:
        count = f"{forecaster.too_large:,} value{'s were' if forecaster.too_large > 1 else ' was'}"
        most = f"beyond {LARGEST_VALUE:g}, or {LARGEST_LEVEL:g} times the stream's typical change".replace("e+", "e")
        said.append(f"{count} too large to use ({most}), and count{'s' * (forecaster.too_large == 1)} as missing.")
    if forecaster.unforecast:
        share = 100.0 * forecaster.unforecast / (forecaster.unforecast + forecaster.record.counts.sum())
        said.append(
            f"{forecaster.unforecast:,} values ({share:.1f} %) had no forecast: they came right after a missing one."
        )
    if forecaster.breakdowns:
        times = f"{forecaster.breakdowns} time{'s' * (forecaster.breakdowns > 1)}"
        said.append(f"The arithmetic broke down {times}; the learner started afresh (stronger penalties help).")
    unusual = forecaster.learner.health.unusual
    if unusual:
        share = 100.0 * unusual / forecaster.learner.samples
        off = f"more than {ROBUST_BEYOND:g} deviations off"
        hint = "; if they are right, try --as-is" * (share > MANY)
        said.append(f"{unusual:,} values ({share:.1f} %) were {off}, and count for less{hint}.")
    position = forecaster.origin.position
    late = () if position is None else forecaster.tasks[position.tuning_streams :]
    if late:
        said.append(f"Joined late: {_several([str(task) for task in late])}.")
    silent = forecaster.silent
    if silent:
        said.append(f"No value lately: {_several([str(task) for task in silent])}.")
    waiting = forecaster.columns[len(forecaster.tasks) :]
    if waiting:
        said.append(f"Too few values to join: {_several([str(task) for task in waiting])}.")
    return said
