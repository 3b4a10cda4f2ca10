"""Store: the results of a study, in tidy Parquet files, one per table and unit, with the plan they belong to.

| table       | a row is                                | and holds                                            |
|-------------|-----------------------------------------|------------------------------------------------------|
| `scores`    | window, split, protocol, method, task   | RMSE, MAE, each also over those of both baselines    |
| `forecasts` | the same, and step                      | forecast and actual change                           |
| `choices`   | window, split, protocol, method         | parameters, candidates, discarded, breakdowns        |
| `timings`   | window, split, protocol, method         | seconds; the only table that differs between runs    |
| `graphs`    | window, split, task, other              | similarity in the tuning period                      |
| `series`    | window, split, task, step               | the level: what there was to forecast                |

A file appears whole or not at all, so a study that was killed goes on where it stopped.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from braided.errors import FileError
from braided.files import PLAN_MARK, mark_of, open_plan, read_plan, remove_own, write_whole
from braided.study.plan import Unit
from braided.study.run import Block

Columns: TypeAlias = dict[str, NDArray[Any]]
TABLE_MARK = mark_of("table of a study")
TABLES = ("series", "graphs", "forecasts", "timings", "scores", "choices")  # as written: where the last is, all are


@final
class Store:
    """A folder of Parquet tables."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def about(self) -> dict[str, Any]:
        """The plan and the data that the tables belong to."""
        return read_plan(self.folder / "plan.json", "study")

    def open(self, about: dict[str, Any]) -> None:
        """Start the store, or continue one with the same plan; refuse one with another plan."""
        open_plan(self.folder / "plan.json", about, "study")

    def clear(self) -> None:
        """Delete the plan and the tables, and nothing else."""
        files = [file for name in TABLES for file in (self.folder / name).glob("*.parquet")]
        remove_own({self.folder / "plan.json": PLAN_MARK} | dict.fromkeys(files, TABLE_MARK))

    def has(self, unit: Unit) -> bool:
        """Whether a unit is finished."""
        return (self.folder / TABLES[-1] / f"{unit.label}.parquet").exists()

    def add(self, unit: Unit, tables: dict[str, list[Block]]) -> None:
        """Write the tables of a unit, each given as blocks of rows."""
        import pyarrow as pa
        import pyarrow.parquet as parquet

        for name in TABLES:
            buffer = pa.BufferOutputStream()
            rows = [pa.RecordBatch.from_pydict(_columns(block)) for block in tables[name]]
            table = pa.Table.from_batches(rows).replace_schema_metadata({"file": TABLE_MARK})
            parquet.write_table(table, buffer, compression="zstd")
            write_whole({self.folder / name / f"{unit.label}.parquet": buffer.getvalue().to_pybytes()}, TABLE_MARK)

    def read(self, name: str, **wanted: Any) -> Columns:
        """Return the rows of a table that have the values wanted, column by column, in the order of the units."""
        import pyarrow as pa
        import pyarrow.parquet as parquet

        files = sorted((self.folder / name).glob("[!.]*.parquet"))
        if not files:
            raise FileError(f"{self.folder / name} holds no results: run the study first")
        rows = [(column, "=", value) for column, value in wanted.items()] or None
        table = pa.concat_tables(
            [parquet.read_table(file, filters=rows, use_threads=False, pre_buffer=False) for file in files]
        )
        return {column: table[column].to_numpy() for column in table.column_names}


def _columns(block: Block) -> Columns:
    length = max(np.size(column) for column in block.values())
    return {name: np.broadcast_to(column, length) for name, column in block.items()}
