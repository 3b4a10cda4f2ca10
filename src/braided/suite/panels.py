"""Panels of the suite: data that come with the package, cut as the suite has them, and your files.

| panel                   | cut                                                                                      |
|-------------------------|------------------------------------------------------------------------------------------|
| `la-haute-borne`        | the first 12,000 steps of ten minutes                                                    |
| `us-incomes`            | whole                                                                                    |
| `us-employment`         | whole                                                                                    |
| `melbourne-pedestrians` | the first 8,000 hours by Melbourne's clock, with the hour that repeats in autumn once   |

People follow the clock on the wall, and so does the season of what they do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from braided.datasets import EMBEDDED, open_panel
from braided.errors import InputError
from braided.forecasting.clock import as_stamps
from braided.forecasting.zones import local_stamps
from braided.suite.past import cuts_of
from braided.tables import Panel

CUTS: dict[str, int | None] = {  # rounds, from the start
    "la-haute-borne": 12_000,
    "us-incomes": None,
    "us-employment": None,
    "melbourne-pedestrians": 8_000,
}
QUICK_ROUNDS = 1_000


def suite_panels(names: Sequence[str] = (), timezone: str | None = None, quick: bool = False) -> list[Panel]:
    """Return the panels of these names or files, or those of the suite that come with the package.

    With a time zone, times of files are UTC and become those of its clock. `quick` takes the first 1,000 rounds.

    >>> [panel.name for panel in suite_panels(["us-incomes"])]
    ['us-incomes']
    """
    chosen = list(names) or [name for name in CUTS if name in EMBEDDED]
    if len(set(chosen)) < len(chosen):
        raise InputError(f"a panel is named twice ({', '.join(chosen)}): name each once")
    return [_panel(name, timezone, quick) for name in chosen]


def _panel(name: str, timezone: str | None, quick: bool) -> Panel:
    panel = open_panel(name, any_streams=True)
    zone = panel.timezone or timezone
    if zone is not None:
        panel = by_local_clock(panel, zone)
    panel = first_rounds(panel, QUICK_ROUNDS if quick else CUTS.get(name))
    cuts_of(len(panel.times))  # refuses a panel that is too short, before anything is run
    return panel


def first_rounds(panel: Panel, most: int | None) -> Panel:
    """Return the first rounds of a panel, without streams that have no value in them."""
    times, values = panel.times[:most], panel.values[:most]
    there = np.flatnonzero((~np.isnan(values)).any(axis=0))
    tasks = tuple(panel.tasks[place] for place in there)
    return replace(panel, times=times, values=values[:, there], tasks=tasks)


def by_local_clock(panel: Panel, timezone: str) -> Panel:
    """Return a panel with times in UTC by the clock of a place; of hours that repeat, the first is kept.

    >>> hours = np.array(["2015-04-04T14:00", "2015-04-04T15:00", "2015-04-04T16:00", "2015-04-04T17:00"], "M8[us]")
    >>> panel = Panel("autumn", ("a",), hours, np.arange(4.0)[:, None], "made up")
    >>> by_local_clock(panel, "Australia/Melbourne").values.ravel()     # 1:00, 2:00, 2:00 again, 3:00
    array([0., 1., 3.])
    """
    if panel.times.dtype.kind != "M":
        raise InputError(f"{panel.name} has whole numbers for times, which no time zone moves: leave out --timezone")
    stamps = local_stamps(as_stamps(panel.times), timezone)
    kept = stamps > np.maximum.accumulate(np.append(stamps[0] - 1, stamps[:-1]))
    return replace(panel, times=stamps[kept].view("datetime64[us]"), values=panel.values[kept], timezone=None)
