"""The scores of the suite as a table: `suite.csv`, a row per panel, method and stream."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from braided.files import write_whole
from braided.printable import printable
from braided.suite.scores import Outcome

COLUMNS = ("panel", "horizon", "method", "stream", "scored_values", "rmse_of_no_change", "rmse_to_no_change", "note")
MARK = ",".join(COLUMNS) + "\n"  # the first line: a file that begins otherwise is not overwritten


def write_scores(outcomes: Sequence[Outcome], path: Path) -> None:
    """Write all scores; where a method has none, the note says why."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(row for outcome in outcomes for row in _rows(outcome))
    write_whole({path: text.getvalue().encode()}, MARK)


def _rows(outcome: Outcome) -> Iterator[tuple[object, ...]]:
    for name, cell in outcome.cells.items():
        for place, stream in enumerate(outcome.streams):
            ratio, base = cell.ratios[place], outcome.no_change[place]
            shown = ["" if np.isnan(number) else f"{number:.6g}" for number in (base, ratio)]
            where = printable(outcome.name), outcome.horizon, name, printable(stream)
            yield *where, outcome.counts[place], *shown, cell.note
