"""Data sets: embedded real panels, a synthetic one, and files of NREL's WIND Toolkit."""

from braided.datasets.embedded import EMBEDDED, embedded, open_panel
from braided.datasets.synthetic import wind_field
from braided.datasets.wind_toolkit import read_wind_toolkit, wind_toolkit_sites

__all__ = ["EMBEDDED", "embedded", "open_panel", "read_wind_toolkit", "wind_field", "wind_toolkit_sites"]
