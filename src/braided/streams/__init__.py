"""Streams: panels of series, embedded real ones and a synthetic one."""

from braided.streams.embedded import EMBEDDED, embedded
from braided.streams.panel import Panel
from braided.streams.synthetic import wind_field

__all__ = ["EMBEDDED", "Panel", "embedded", "wind_field"]
