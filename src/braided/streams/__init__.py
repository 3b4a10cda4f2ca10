"""Streams: panels of series, embedded real ones, a synthetic one, those of a table, and tables larger than memory."""

from braided.streams.columns import Columns
from braided.streams.embedded import EMBEDDED, embedded
from braided.streams.lines import Lines
from braided.streams.named import open_panel
from braided.streams.panel import Panel
from braided.streams.rounds import Chunk, Rounds, open_rounds, stacked
from braided.streams.synthetic import wind_field
from braided.streams.table import read_table
from braided.streams.wind_toolkit import read_wind_toolkit, wind_toolkit_sites
from braided.streams.write import write_table

__all__ = [
    "EMBEDDED",
    "Chunk",
    "Columns",
    "Lines",
    "Panel",
    "Rounds",
    "embedded",
    "open_panel",
    "open_rounds",
    "read_table",
    "read_wind_toolkit",
    "stacked",
    "wind_field",
    "wind_toolkit_sites",
    "write_table",
]
