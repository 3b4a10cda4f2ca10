"""What the record of Auto says, in words: beside the best rule, one filter per stream, without sharing, "no change".

Each comparison is of the root mean square error in a stream's own units, as a mean over the streams, and says whether a
paired test over time is sure of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from braided.forecasting.auto import AutoEngine
from braided.forecasting.auto.engine import ALONE, ONE_FILTER, SCORED_FROM
from braided.forecasting.record import NO_CHANGE
from braided.printable import counted, printable
from braided.report.common.table import several
from braided.report.run.sentences import NAMES_IN_SENTENCE, broken_down, intervals, named, steps, too_large
from braided.report.run.versus import SMALLEST_GAIN, Versus, percent
from braided.statistics import SURE

CLEAR_GAIN = 2.0  # per cent: more is not called about the same, even where it could be chance
COPIES_IN_SENTENCE = 4  # groups


def in_words(engine: AutoEngine) -> list[str]:
    """Return what a newcomer should know, the most important first."""
    said = [*_comparisons(engine), *intervals(engine)] if is_scored(engine) else [_nothing(engine)]
    streams: dict[str, Sequence[object]] = {
        "Joined late": engine.latecomers,
        "No value lately": engine.silent,
        "“No change” is forecast, as there are too few values": engine.waiting if engine.measured_on else (),
    }
    return [
        *said,
        *_copies(engine),
        *steps(engine),
        *too_large(engine),
        *broken_down(engine, "the member concerned started again, and the others went on"),
        *named(streams),
    ]


def is_scored(engine: AutoEngine) -> bool:
    """Whether there is a forecast whose error can be compared with that of "no change"."""
    return bool((engine.record.rmse_of(NO_CHANGE) > 0.0).any())


def rules_of(engine: AutoEngine) -> list[str]:
    """Return the rules of the record."""
    return [] if engine.ensemble is None else engine.ensemble.names[engine.ensemble.n_learners :]


def best_rule(engine: AutoEngine) -> str | None:
    """Return the rule with the least error in hindsight: mean over the streams of RMSE over that of "no change"."""
    record = engine.record
    none = record.rmse_of(NO_CHANGE)
    known = none > 0.0
    errors = {name: (record.rmse_of(name)[known] / none[known]).mean() for name in rules_of(engine) if known.any()}
    return min(errors, key=lambda name: errors[name], default=None)


def _nothing(engine: AutoEngine) -> str:
    if engine.rounds <= SCORED_FROM:
        return f"No forecast counts yet: scores begin after {SCORED_FROM} rounds, and there are {engine.rounds:,}."
    return f"Nothing changed after the first {SCORED_FROM} rounds, so there is no error to compare with."


def _comparisons(engine: AutoEngine) -> list[str]:
    record, rule, said = engine.record, best_rule(engine), []
    are_several = int(np.count_nonzero(record.counts)) > 1
    if rule is not None:
        versus = Versus.of(record, rule)
        said.append(_compared(versus, f"the best simple rule in hindsight, “{rule}”", are_several))
        if len(versus.worse) and are_several:
            names = several([engine.tasks[place] for place in versus.worse], NAMES_IN_SENTENCE)
            said[-1] += f" The rule is better for {names}."
    if record.has(ONE_FILTER):
        what = "one filter per stream" if are_several else "one filter on the stream's own past"
        said.append(_compared(Versus.of(record, ONE_FILTER), what, are_several))
    if record.has(ALONE):
        said.append(_compared(Versus.of(record, ALONE), "without sharing", are_several))
    elif engine.shares:
        said.append("What streams gain from each other is not measured; --compare does that, in about twice the time.")
    elif are_several:
        said.append("Nothing is shared: each stream has a mixture of its own.")
    if rule != NO_CHANGE:
        what = "“no change”, the forecast that the next value equals the last"
        said.append(_compared(Versus.of(record, NO_CHANGE), what, are_several))
    return said


def _compared(versus: Versus, what: str, are_several: bool) -> str:
    """Say how much lower the error is than that of something, how sure that is, and for how many streams."""
    gain = versus.gain
    if abs(gain) < SMALLEST_GAIN:
        said = f"The same error as {what}."
    elif versus.is_sure:
        said = f"{percent(gain)} error than {what} ({100 * SURE:g} % sure)."
    else:
        said = f"About the same error as {what}: {percent(gain)} could be chance."
        if abs(gain) >= CLEAR_GAIN:
            said = f"Not surely different from {what}: {percent(gain)} error, which could be chance."
    n, known = versus.n_lower, versus.n_known
    if not are_several:
        return said
    how_many = f"all {known:,}" if n == known else f"{n:,} of {known:,}" if n else f"none of {known:,}"
    return f"{said} Less error for {how_many} streams."


def _copies(engine: AutoEngine) -> list[str]:
    groups = copies_of(engine)
    if not groups:
        return []
    listed = [equated(group) for group in groups[:COPIES_IN_SENTENCE]]
    more = len(groups) - len(listed)
    said = f"Copies of each other: {'; '.join(listed)}" + f"; and {counted(more, 'more group')}" * (more > 0)
    return [said + "."]


def equated(names: Sequence[object]) -> str:
    """Write copies of each other, and how many more there are."""
    more = len(names) - NAMES_IN_SENTENCE
    return " = ".join(map(printable, names[:NAMES_IN_SENTENCE])) + f" and {more:,} more" * (more > 0)


def copies_of(engine: AutoEngine) -> list[list[object]]:
    """Return the names of streams that are copies of each other, group by group."""
    return [[engine.columns[place] for place in group] for group in engine.copies]
