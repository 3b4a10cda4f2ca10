"""Tables: CSV, Parquet, data frames and lines as rounds of values, and panels as files."""

from braided.tables.columns import Columns
from braided.tables.lines import Lines
from braided.tables.panel import Panel
from braided.tables.panel_io import read_table, write_table
from braided.tables.rounds import Chunk, Rounds, open_rounds, stacked

__all__ = ["Chunk", "Columns", "Lines", "Panel", "Rounds", "open_rounds", "read_table", "stacked", "write_table"]
