"""Data sets: embedded real panels, synthetic ones, and files of NREL's WIND Toolkit."""

from braided.datasets.embedded import EMBEDDED, embedded, open_panel
from braided.datasets.synthetic import shop_sales, wind_field
from braided.datasets.wind_toolkit import read_wind_toolkit, wind_toolkit_sites

__all__ = ["EMBEDDED", "embedded", "open_panel", "read_wind_toolkit", "shop_sales", "wind_field", "wind_toolkit_sites"]
