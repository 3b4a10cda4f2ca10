"""Summary: what a forecaster's record says, as columns and in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from braided.forecasting import Engine, LearnerEngine
from braided.forecasting.auto import AutoEngine
from braided.methods import METHODS
from braided.printable import counted
from braided.report.common.table import several
from braided.report.run import auto_summary
from braided.report.run.sentences import NAMES_IN_SENTENCE, broken_down, intervals, named, steps, too_large
from braided.report.run.versus import SMALLEST_GAIN, Versus, percent
from braided.runs.tuning_period import ROBUST_BEYOND
from braided.types import Floats

MANY_UNUSUAL = 2.0  # per cent of the values


@final
@dataclass(frozen=True, eq=False)
class Summary:
    """Errors per stream, in the order of the streams; NaN where there is nothing to compare with."""

    tasks: tuple[Any, ...]
    counts: Floats  # forecasts scored
    rmse: Floats  # in the units of the values
    to_no_change: Floats  # over the error of "no change"
    single_to_no_change: Floats  # that of one filter per stream
    to_last_change: Floats
    to_single: Floats  # over the error of one filter per stream
    coverage: Floats  # share of the values in their intervals

    @classmethod
    def of(cls, forecaster: Engine) -> Summary:
        """Take it from the record."""
        record = forecaster.record
        nothing = np.full(len(record.counts), np.nan)
        own, single, no_change, last_change = (
            record.rmse_of(name) if record.has(name) else nothing
            for name in ("model", "single", "no change", "last change")
        )
        pairs = ((own, no_change), (single, no_change), (own, last_change), (own, single))
        ratios = [
            np.divide(a, b, out=np.full(len(a), np.nan), where=b > 0.0)
            for a, b in (*pairs, (record.covered, record.intervals))
        ]
        return cls(forecaster.tasks, record.counts, own * record.scale, *ratios)

    @property
    def scored(self) -> bool:
        """Whether there is a forecast with an error to compare."""
        return bool((~np.isnan(self.to_no_change)).any())

    @property
    def gains(self) -> Floats:
        """By how many per cent sharing lowers the error, per stream."""
        return 100.0 * (1.0 - self.to_single)

    @property
    def means(self) -> dict[str, float]:
        """The means over the streams."""
        names = ("to_no_change", "single_to_no_change", "to_last_change", "to_single", "coverage")
        known = {name: (column := getattr(self, name))[~np.isnan(column)] for name in names}
        return {name: float(column.mean()) if len(column) else np.nan for name, column in known.items()}


def in_words(forecaster: Engine) -> list[str]:
    """Return what the record says, also where it goes against the method."""
    if isinstance(forecaster, AutoEngine):
        return auto_summary.in_words(forecaster)
    summary = Summary.of(forecaster)
    said = [*_sharing(forecaster, summary), *_parts(forecaster)]
    if not summary.scored:
        said = ["There was nothing to forecast after the tuning period."]
    elif summary.means["to_no_change"] > 1.0 - SMALLEST_GAIN / 100.0:
        said = [f"No better than the forecast “no change”. {_skill(summary)}", *said]
    else:
        said.append(_skill(summary))
    return said + intervals(forecaster) + _trouble(forecaster)


def _sharing(forecaster: Engine, summary: Summary) -> list[str]:
    if "single" not in forecaster.contenders:
        choice = forecaster.origin.choice
        if choice is not None and any(METHODS[trial.method].shares for trial in choice.trials):
            return ["Sharing did not help in the tuning period, so each stream has its own filter."]
        has_links = not isinstance(forecaster, LearnerEngine) or forecaster.learner.shares
        return [] if has_links else ["Each stream has its own filter."]
    versus = Versus.of(forecaster.record, "single")
    how = f"{percent(versus.gain)} error than with one filter per stream, on average"
    if abs(versus.gain) < SMALLEST_GAIN:
        verdict = "makes no difference"
    elif versus.is_sure:
        verdict = f"{'helps' if versus.gain > 0.0 else 'hurts'}: {how}"
    else:
        verdict = f"makes no clear difference ({how}, could be chance)"
    subject = "Sharing" if forecaster.shares else "This method, which shares nothing,"
    said = f"{subject} {verdict}; it lowers the error of {versus.n_lower:,} of {counted(versus.n_known, 'stream')}"
    if len(versus.worse):
        by = [f"{summary.tasks[place]} by {-versus.gains[place]:.1f} %" for place in versus.worse]
        said += f", and raises that of {several(by, NAMES_IN_SENTENCE)}"
    return [said + "."]


def _parts(forecaster: Engine) -> list[str]:
    """Say what tied weights and the neighbours' changes gain by themselves, in the tuning period."""
    choice = forecaster.origin.choice
    scores = {trial.method: trial.score for trial in (choice.trials if choice else ()) if trial.score is not None}
    alone, names = scores.get("wrls"), {"mt-wrls": "tied weights alone"}
    names |= {
        "wrls-neighbours": "the neighbours' changes and the gap to their level alone",
        "mt-wrls-neighbours": "both",
    }
    if not alone or not all(scores.get(name) for name in names):
        return []
    parts = [f"{words} {percent(100.0 * (1.0 - scores[name] / alone))}" for name, words in names.items()]
    return [f"In the tuning period{', of logarithms' * forecaster.needs_positive}: {', '.join(parts)}."]


def _skill(summary: Summary) -> str:
    own, last = (100.0 * (1.0 - summary.means[name]) for name in ("to_no_change", "to_last_change"))
    said = f"{percent(own)} error than the forecast “no change”, {percent(last)} than “the last change repeats”"
    worse = [summary.tasks[place] for place in np.flatnonzero(summary.to_no_change > 1.0 + SMALLEST_GAIN / 100.0)]
    if worse:
        said += f"; “no change” is better for {several(worse, NAMES_IN_SENTENCE)}"
    return f"{said[0].upper()}{said[1:]}."


def _unforecast(forecaster: Engine) -> list[str]:
    unforecast = forecaster.unforecast
    share = 100.0 * unforecast / max(unforecast + forecaster.record.counts.sum(), 1.0)
    said = f"No forecast, as the value before was missing: {counted(unforecast, 'value')} ({share:.1f} %)."
    return [said] * (unforecast > 0)


def _trouble(forecaster: Engine) -> list[str]:
    said = [
        *steps(forecaster),
        *too_large(forecaster),
        *_unforecast(forecaster),
        *broken_down(forecaster, "the learner started again (stronger penalties help)"),
    ]
    unusual = forecaster.learner.health.unusual if isinstance(forecaster, LearnerEngine) else 0
    if unusual:
        share = 100.0 * unusual / forecaster.samples
        hint = "; if they are right, try --as-is" * (share > MANY_UNUSUAL)
        off = f"More than {ROBUST_BEYOND:g} deviations off, and given less weight"
        said.append(f"{off}: {counted(unusual, 'value')} ({share:.1f} %){hint}.")
    return said + named(
        {
            "Joined late": forecaster.latecomers,
            "No value lately": forecaster.silent,
            "Too few values to join": forecaster.waiting,
        }
    )
