"""The page of the suite."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from braided.datasets import EMBEDDED
from braided.errors import InputError
from braided.printable import printable
from braided.report.common.page import Section, write_page
from braided.report.suite.tables import findings, size_of, tables
from braided.suite import SUITE_METHODS, Outcome
from braided.version import __version__

READING = {
    "Forecast": "Made one round before its value, or as many as the table says. A whole round is forecast before "
    "any of it is learned. A value counts after the first fifth of the rounds, if its stream had a value before.",
    "Against one filter per stream": "What seasons, rules and sharing add to separate filters.",
    "Against Auto without sharing": "What sharing is worth: the same mixture, in which no stream sees another.",
}


def write_suite_report(outcomes: Sequence[Outcome], folder: Path, options: Sequence[str] = ()) -> Path:
    """Write `index.html` and `report.md` into a folder, and return the path of the first.

    `options` are those that the suite had besides data and methods, such as `--quick`.
    """
    if not outcomes:
        raise InputError("no panels: a report needs at least one")
    facts = {printable(one.name): printable(one.source) for one in outcomes} | {"Version": f"braided {__version__}"}
    section = Section(
        "suite",
        "Forecasting suite",
        size_of(outcomes),
        findings(outcomes),
        tables(outcomes),
        [],
        facts,
        _command(outcomes, options),
    )
    shown = {name for one in outcomes for name in one.cells}
    methods = [method for name, method in SUITE_METHODS.items() if name in shown]
    return write_page(folder, "suite", [section], suite=section, reading=READING, methods=methods)


def _command(outcomes: Sequence[Outcome], options: Sequence[str]) -> str:
    """Return the command that runs the same suite again."""
    words = ["braided", "study", "--suite", "forecasting"]
    for name in dict.fromkeys(one.name for one in outcomes):
        words += ["--data", shlex.quote(name) if name in EMBEDDED else "FILE"]
    names = list(outcomes[0].cells)
    words += ["--methods", ",".join(names)] if names != list(SUITE_METHODS) else []
    return " ".join([*words, *map(shlex.quote, options)])
