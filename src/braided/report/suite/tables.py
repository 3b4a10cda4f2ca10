"""Tables and sentences of the suite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from braided.printable import counted, printable
from braided.report.common.table import Table, brief, short
from braided.suite import SUITE_METHODS, Cell, Outcome
from braided.types import Floats

LONGEST_NOTE = 28  # letters, in a cell
SUBJECTS = ("auto", "run")  # what is compared with the others; the first that has scores
SAID = ("single", "auto-alone")  # in words: what everything adds, and what sharing adds
YARDSTICKS = ("single", "auto-alone", "best-rule", "seasonal-naive", "lightgbm", "ridge-var", "auto-ets", "auto-arima")


def tables(outcomes: Sequence[Outcome]) -> list[Table]:
    """Return all tables of a suite."""
    of_panels = [errors(one) for one in by_panel(outcomes)], [changes(one) for one in by_panel(outcomes)]
    made = [*of_panels[0], *of_panels[1], _panels(outcomes), _times(outcomes)]
    return [table for table in made if table.rows]


def by_panel(outcomes: Sequence[Outcome]) -> list[Sequence[Outcome]]:
    """Return the outcomes for each table: all panels together or, at several horizons, panel by panel."""
    if all(one.horizon == 1 for one in outcomes):
        return [outcomes]
    return [[one for one in outcomes if one.name == name] for name in dict.fromkeys(one.name for one in outcomes)]


def _heads(outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    if all(one.horizon == 1 for one in outcomes):
        return tuple(short(one.name, 24) for one in outcomes)
    return tuple(f"{one.horizon} ahead" for one in outcomes)


def _where(outcomes: Sequence[Outcome]) -> tuple[str, str]:
    """The end of a table's name and of its title."""
    if all(one.horizon == 1 for one in outcomes):
        return "", "one step ahead"
    return f"-{printable(outcomes[0].name)}", printable(outcomes[0].name)


def errors(outcomes: Sequence[Outcome]) -> Table:
    """Return the headline: methods × panels."""
    rows = tuple(
        (SUITE_METHODS[name].title, *(_text(one.cells[name]) for one in outcomes)) for name in _names(outcomes)
    )
    end, where = _where(outcomes)
    long = {
        cell.note: f"{SUITE_METHODS[name].title} on {printable(one.label)}: {cell.note}."
        for one in outcomes
        for name, cell in one.cells.items()
        if len(cell.note) > LONGEST_NOTE
    }
    return Table(
        name=f"errors{end}",
        title=f"RMSE over “no change”, {where}, synchronous",
        group="synchronous",
        columns=("Method", *_heads(outcomes)),
        rows=rows,
        note=" ".join(["Mean over the streams, on the values after the first fifth of the rounds.", *long.values()]),
    )


def changes(outcomes: Sequence[Outcome]) -> Table:
    """Return how the error of the first of the subjects that has scores compares with that of each yardstick."""
    subject = _subject(outcomes)
    rows = []
    for name in YARDSTICKS if subject else ():
        cells = [_change(one, subject, name) for one in outcomes]
        if name != subject and any(cell != "–" for cell in cells):
            rows.append((f"against {SUITE_METHODS[name].title}", *cells))
    end, where = _where(outcomes)
    title = f"Change of the error, {SUITE_METHODS[subject].title}" if subject else ""
    return Table(
        name=f"changes{end}",
        title=title + f", {where}" * bool(end and subject),
        group="synchronous",
        columns=("", *_heads(outcomes)),
        rows=tuple(rows),
        note="Mean over the streams of the ratio of both RMSE, less 1; in brackets, on how many streams it is lower.",
    )


def findings(outcomes: Sequence[Outcome]) -> list[str]:
    """Return in words what the tables show, also where it goes against braided."""
    subject = _subject(outcomes)
    said = [_best(one) for one in outcomes]
    for name in SAID if subject else ():
        found = {one.label: ratios for one in outcomes if len(ratios := _ratios(one, subject, name))}
        if found:
            each = ", ".join(f"{_percent(ratios)} on {printable(panel)}" for panel, ratios in found.items())
            said.append(
                f"Change of the error, {SUITE_METHODS[subject].title} against {SUITE_METHODS[name].title}: {each}."
            )
    return said


def _ratios(outcome: Outcome, subject: str, yardstick: str) -> Floats:
    """The error of a method over that of another, on the streams that have both."""
    if subject not in outcome.cells or yardstick not in outcome.cells:
        return np.empty(0)
    own, other = outcome.cells[subject].ratios, outcome.cells[yardstick].ratios
    there = ~np.isnan(own) & (other > 0.0)
    return own[there] / other[there]


def _change(outcome: Outcome, subject: str, yardstick: str) -> str:
    ratios = _ratios(outcome, subject, yardstick)
    return f"{_percent(ratios)} ({(ratios < 1.0).sum()} of {len(ratios)})" if len(ratios) else "–"


def _percent(ratios: Floats) -> str:
    return f"{100.0 * (ratios.mean() - 1.0):+.1f} %".replace("-", "−")


def _best(outcome: Outcome) -> str:
    known = {name: cell.error for name, cell in outcome.cells.items() if not np.isnan(cell.error)}
    whole = {name: error for name, error in known.items() if not np.isnan(outcome.cells[name].ratios).any()}
    known = whole or known  # a score on some of the streams can't be compared
    if not known:
        return f"{printable(outcome.label)}: no method has a score."
    best = min(known, key=known.__getitem__)
    return f"{printable(outcome.label)}: {SUITE_METHODS[best].title} has the least error, {brief(known[best])}."


def _subject(outcomes: Sequence[Outcome]) -> str:
    scored = {name for one in outcomes for name, cell in one.cells.items() if not np.isnan(cell.error)}
    return next((name for name in SUBJECTS if name in scored), "")


def _names(outcomes: Sequence[Outcome]) -> list[str]:
    return list(dict.fromkeys(name for one in outcomes for name in one.cells))


def _text(cell: Cell) -> str:
    """Write a score with its note, or the note alone."""
    if np.isnan(cell.error):
        return short(cell.note, LONGEST_NOTE) or "–"
    return f"{brief(cell.error)} ({short(cell.note, LONGEST_NOTE)})" if cell.note else brief(cell.error)


def _panels(outcomes: Sequence[Outcome]) -> Table:
    return Table(
        name="panels",
        title="Panels",
        group="other",
        columns=("Panel", "streams", "rounds", "scored from round", "scored values"),
        rows=tuple(_panel(one) for one in outcomes),
    )


def _panel(outcome: Outcome) -> tuple[str, ...]:
    counts = len(outcome.streams), outcome.rounds, outcome.first + 1, int(outcome.counts.sum())
    return printable(outcome.label), *(f"{number:,}" for number in counts)


def _times(outcomes: Sequence[Outcome]) -> Table:
    def seconds(name: str) -> Iterator[str]:
        for one in outcomes:
            yield f"{one.cells[name].seconds:.1f}" if one.cells[name].seconds else "–"

    return Table(
        name="times",
        title="Seconds",
        group="other",
        columns=("Method", *(short(one.label, 24) for one in outcomes)),
        rows=tuple((SUITE_METHODS[name].title, *seconds(name)) for name in _names(outcomes)),
        note="From the values to all forecasts, with tuning and refits; some methods use several processes.",
    )


def size_of(outcomes: Sequence[Outcome]) -> str:
    """Say how much was run."""
    longest = max(one.horizon for one in outcomes)
    ahead = "one step ahead" if longest == 1 else f"1 to {longest} steps ahead"
    panels = counted(len({one.name for one in outcomes}), "panel")
    return f"{counted(len(_names(outcomes)), 'method')} on {panels}, {ahead}"
