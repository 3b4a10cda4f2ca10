"""Streams: panels of series, embedded real ones, a synthetic one, and those of a table of one's own."""

from braided.streams.embedded import EMBEDDED, embedded
from braided.streams.named import open_panel
from braided.streams.panel import Panel
from braided.streams.synthetic import wind_field
from braided.streams.table import read_table

__all__ = ["EMBEDDED", "Panel", "embedded", "open_panel", "read_table", "wind_field"]
