"""A panel from a table of one's own: CSV, Parquet or a data frame, long or wide, its rows in any order.

>>> from pathlib import Path
>>> from tempfile import TemporaryDirectory
>>> rows = ["time,site,wind_speed", "2024-01-01,north,5.5", "2024-01-01,south,4.0", "2024-01-02,south,4.5",
...         "2024-01-03,north,NA", "2024-01-03,south,6.0", "2024-01-02,north,7.0"]
>>> with TemporaryDirectory() as folder:
...     path = Path(folder, "wind.csv")
...     _ = path.write_text("\\n".join(rows))
...     panel = read_table(path)
>>> panel
Panel('wind.csv': 3 steps × 2 tasks, 2024-01-01T00:00:00 to 2024-01-03T00:00:00, 1 value missing)
>>> panel.values
array([[5.5, 4. ],
       [7. , 4.5],
       [nan, 6. ]])
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from braided.errors import InputError
from braided.tables.cells import to_seconds
from braided.tables.panel import Panel
from braided.tables.rounds import open_rounds, stacked


def read_table(source: Any, *, time: str | None = None, task: str | None = None, value: str | None = None) -> Panel:
    """Return the panel in a table: `time`, `task` and `value` name its columns where they can't be guessed.

    The table is what `open_rounds` takes. Times are integers such as years, or ISO 8601; those with a UTC offset become
    UTC. A value is missing where its row is absent, or where it is empty, NA or NaN.
    """
    rounds = open_rounds(source, time=time, task=task, value=value, sort_rows=sys.maxsize)
    times, found, values, _ = stacked(list(rounds.chunks()))
    if len(found) == 1:
        raise InputError(rounds.one_task_only(found[0]))
    values = values[:, sorted(range(len(found)), key=found.__getitem__)]
    tasks = tuple(sorted(found))
    columns = rounds.columns
    low, high = np.fmin.reduce(values), np.fmax.reduce(values)  # of the values that are there
    for place in np.flatnonzero(~(low < high)):
        what = "has no value at all" if np.isnan(low[place]) else f"is constant, {low[place]}"
        raise InputError(
            f"{columns.task or 'column'} {tasks[place]!r:.80} of {rounds.place} {what}: there is nothing to learn; "
            f"leave {'its rows' if columns.task else 'it'} out"
        )
    name = rounds.name if rounds.name == "data frame" else f"file {rounds.name}"
    what = "a column per task" if columns.task is None else f"{columns.value!r} by {columns.task!r}"
    return Panel(rounds.name, tasks, to_seconds(times), values, f"{name}, {what} and {columns.time!r}")
