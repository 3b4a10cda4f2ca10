"""Data sets by name: real data that comes with the package, in small Parquet files with their sources, and others.

>>> panel = embedded("us-incomes")
>>> panel
Panel('us-incomes': 81 steps × 48 streams, 1929 to 2009, 0 values missing)
>>> panel.tasks[:3], panel.values[0, :3]
(('Alabama', 'Arizona', 'Arkansas'), array([323., 600., 310.]))
>>> open_panel("us-income")
Traceback (most recent call last):
braided.errors.InputError: no data and no file 'us-income': did you mean 'us-incomes'?
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib.resources import files

import numpy as np

from braided.datasets.synthetic import wind_field
from braided.errors import InputError
from braided.files import is_there
from braided.tables.panel import Panel
from braided.tables.panel_io import read_table

EMBEDDED = {
    "la-haute-borne": "wind speed (m/s) at 4 turbines of La Haute Borne, France, every 10 minutes of 2014 and 2015",
    "us-incomes": "personal income per head (dollars) of 48 states of the US, yearly from 1929 to 2009",
    "us-employment": "employees (thousands) in 145 sectors of the US, monthly from 1990 to 2019",
    "melbourne-pedestrians": "people counted at 4 places in Melbourne, hourly in 2015 and 2016, with missing values",
}


def embedded(name: str) -> Panel:
    """Return one of the panels that come with the package; `EMBEDDED` lists them."""
    if name not in EMBEDDED:
        raise InputError(f"no embedded data {name!r}: there are {', '.join(map(repr, EMBEDDED))}")
    import pyarrow.parquet as parquet  # slow to import, and only needed here

    with files("braided.datasets").joinpath("data", f"{name}.parquet").open("rb") as file:
        # Without threads: those of pyarrow abort a process that ends soon after.
        table = parquet.ParquetFile(file, pre_buffer=False).read(use_threads=False)
    about = {key.decode(): value.decode() for key, value in table.schema.metadata.items()}
    times, *columns = (column.to_numpy() for column in table.columns)
    values = np.stack(columns, axis=1).astype(np.float64) / float(about["per_unit"])
    return Panel(name, tuple(table.column_names[1:]), times, values, about["source"], timezone=about.get("timezone"))


def open_panel(name: str, seed: int = 0, any_streams: bool = False) -> Panel:
    """Return an embedded panel, the synthetic wind field of a seed, or the panel in a file (see `read_table`)."""
    if name == "synthetic":
        return wind_field(seed)
    if name in EMBEDDED:
        return embedded(name)
    if not is_there(name):
        known = [*EMBEDDED, "synthetic"]
        near = get_close_matches(name, known, n=1)
        remedy = f"did you mean {near[0]!r}?" if near else f"give one of {', '.join(known)}, or a file"
        raise InputError(f"no data and no file {name!r}: {remedy}")
    return read_table(name, any_streams=any_streams)
