"""Tables: CSV, Parquet, data frames and lines as rounds of values, and panels as files."""

from braided.tables.columns import Columns
from braided.tables.lines import Lines
from braided.tables.panel import Panel
from braided.tables.rounds import Chunk, Rounds, open_rounds, stacked
from braided.tables.table import read_table
from braided.tables.write import write_table

__all__ = ["Chunk", "Columns", "Lines", "Panel", "Rounds", "open_rounds", "read_table", "stacked", "write_table"]
