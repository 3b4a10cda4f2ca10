"""Small tables of streams, synthetic, for the tests of runs."""

import numpy as np

from braided.streams import wind_field, write_table
from braided.streams.panel import Panel


def field(seed=3, steps=400, sites=4, missing=0.0):
    """A synthetic wind field, perhaps with holes."""
    panel = wind_field(seed=seed, steps=steps, sites=sites)
    values = panel.values.copy()
    values[np.random.default_rng(seed).uniform(size=values.shape) < missing] = np.nan
    return Panel(panel.name, panel.tasks, panel.times, values, panel.source, synthetic=True)


def written(path, **form):
    """The same in a file."""
    write_table(field(**form), path)
    return path
