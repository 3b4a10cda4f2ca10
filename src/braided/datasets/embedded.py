"""Real data that comes with the package: small Parquet files, with their sources.

>>> panel = embedded("us-incomes")
>>> panel
Panel('us-incomes': 81 steps × 48 streams, 1929 to 2009, 0 values missing)
>>> panel.tasks[:3], panel.values[0, :3]
(('Alabama', 'Arizona', 'Arkansas'), array([323., 600., 310.]))
"""

from __future__ import annotations

from importlib.resources import files

import numpy as np

from braided.errors import InputError
from braided.tables.panel import Panel

EMBEDDED = {
    "la-haute-borne": "wind speed (m/s) at 4 turbines of La Haute Borne, France, every 10 minutes of 2014 and 2015",
    "us-incomes": "personal income per head (dollars) of 48 states of the US, yearly from 1929 to 2009",
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
    return Panel(name, tuple(table.column_names[1:]), times, values, about["source"])
