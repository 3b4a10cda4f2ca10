"""The page of a run: what it found, how good the forecasts of each stream are, and how to continue."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from braided.printable import printable
from braided.report.common.page import Section, write_page
from braided.report.run.kinds import report_of
from braided.report.run.pictures import pictures
from braided.runs.table import Run

OPEN_ROWS = 30  # a longer table of streams is folded up
COMMANDS = """\
braided forecast MODEL FILE  # learn newer rows, and forecast the next round
braided inspect MODEL  # what the model is, and how good it has been"""


def write_run_report(run: Run, folder: Path) -> Path:
    """Write `index.html`, `report.md` and `figures/` of a run into a folder, and return the path of the first."""
    report, model = report_of(run.forecaster), "model.braided" if run.model is None else str(run.model)
    section = Section(
        "run",
        printable(run.plan["table"]),
        report.lead(),
        report.sentences_of_page(),
        [table for table in (report.errors(), *report.tables_of_page()) if table.rows],
        list(pictures(run)),
        report.facts()
        | {
            "Source": printable(run.plan["table"]),
            "Columns": run.plan["columns"],
            "Run": {"begun": "in one go", "continued": "continued", "finished": "finished before"}[run.how],
            "Version": f"braided {run.plan['version']}",
        },
        COMMANDS.replace("MODEL", printable(shlex.quote(model))),
    )
    values = {
        "reading": report.reading(),
        "python": report.python(json.dumps(model, ensure_ascii=not model.isprintable())),
        "other": report.title_of_details,
    }
    return write_page(folder, "run", [section], run=section, open_rows=OPEN_ROWS, **values)
