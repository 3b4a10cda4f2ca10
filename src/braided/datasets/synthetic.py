"""Synthetic panels: a wind field, whose relations come from a flow, and sales that follow promotions known ahead.

Eddies of many sizes, a sum of waves with random directions, are carried over the sites by a mean wind that drifts in
strength and direction, while they slowly change; now and then a front passes, site after site. What a site upstream
shows, a site downstream shows later, so neighbours help to forecast the next step.

>>> panel = wind_field(seed=0, steps=500)
>>> panel
Panel('synthetic': synthetic, 500 steps × 10 streams, 2012-01-01T00:00:00 to 2012-01-02T17:35:00, 0 values missing)
>>> bool((wind_field(seed=0, steps=500).values == panel.values).all())
True
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from braided.tables.panel import Panel
from braided.types import Floats
from braided.validate import count

MINUTES = 5  # between steps
EXTENT = 10.0  # km, the side of the square in which the sites lie
EDDIES = 96
SMALLEST_EDDY = 8.0  # km; five minutes carry it a quarter of its size
FRONT_EVERY = 36.0  # hours, on average
PROMOTED = 0.15  # share of the days


def wind_field(seed: int, steps: int = 24_000, sites: int = 10) -> Panel:
    """Return a panel of wind speeds (m/s) at random sites, every five minutes; the same for the same seed."""
    steps, sites = count(steps, "steps"), count(sites, "sites")
    rng = np.random.default_rng(count(seed, "seed", least=0))
    places = rng.uniform(0.0, EXTENT, (sites, 2))
    hours = np.arange(steps) * MINUTES / 60.0
    speed = 8.0 + 2.0 * _wander(rng, steps, hours_of_memory=24.0)
    heading = rng.uniform(0.0, 2 * np.pi) + 0.5 * _wander(rng, steps, hours_of_memory=48.0)
    velocity = 3.6 * speed[:, None] * np.stack([np.cos(heading), np.sin(heading)], axis=1)  # km per hour
    carried = np.cumsum(velocity, axis=0) * MINUTES / 60.0

    wind = np.repeat(speed[:, None], sites, axis=1)
    sizes = np.exp(rng.uniform(np.log(SMALLEST_EDDY), np.log(80.0), EDDIES))  # km
    for size in sizes:
        angle, phase, turn = rng.uniform(0.0, 2 * np.pi, 3)
        wave = 2 * np.pi / size * np.array([np.cos(angle), np.sin(angle)])
        change = np.sin(turn) * 8.0 / size  # small eddies live short
        position = places @ wave - (carried @ wave)[:, None] + phase + change * hours[:, None]
        wind += 0.35 * (size / 80.0) ** (1 / 3) * np.cos(position)
    for hour in np.cumsum(rng.exponential(FRONT_EVERY, max(int(hours[-1] / FRONT_EVERY * 3), 1))):
        angle, jump = rng.uniform(0.0, 2 * np.pi), rng.normal(0.0, 2.5)
        arrival = hour + places @ np.array([np.cos(angle), np.sin(angle)]) / 40.0  # fronts move at 40 km per hour
        since = np.clip(hours[:, None] - arrival, 0.0, None)
        wind += jump * np.tanh(since / 0.3) * np.exp(-since / 10.0)
    wind = np.clip(wind + 0.05 * rng.normal(size=wind.shape), 0.0, None)
    times = np.datetime64("2012-01-01T00:00:00") + np.arange(steps) * np.timedelta64(60 * MINUTES, "s")
    tasks = tuple(f"site {i + 1}" for i in range(sites))
    return Panel("synthetic", tasks, times, wind, "synthetic, made by braided.datasets.wind_field", synthetic=True)


class Sales(NamedTuple):
    """Sales of shops, and what was known ahead."""

    panel: Panel
    promotions: Floats  # (days, shops) 1 on days with a promotion
    surprises: Floats  # (days, shops) changes that nothing can forecast


def shop_sales(seed: int, days: int = 1500, shops: int = 10) -> Sales:
    """Return daily sales that wander, and are higher by a constant of the shop on days with a promotion.

    The best forecast h days ahead is the last value, corrected for the promotions then and on the day: its error is the
    sum of the h surprises.

    >>> sales = shop_sales(seed=0, days=3, shops=2)
    >>> sales.panel.tasks, sales.promotions.shape
    (('shop 1', 'shop 2'), (3, 2))
    """
    days, shops = count(days, "days"), count(shops, "shops")
    rng = np.random.default_rng(count(seed, "seed", least=0))
    promotions = (rng.random((days, shops)) < PROMOTED).astype(np.float64)
    effects = rng.uniform(1.0, 10.0, shops)
    surprises = 0.7 * (rng.normal(size=(days, 1)) + rng.normal(size=(days, shops)))
    values = 100.0 + surprises.cumsum(axis=0) + effects * promotions
    times = np.datetime64("2024-01-01") + np.arange(days)
    source = "synthetic, made by braided.datasets.shop_sales"
    panel = Panel("shop sales", tuple(f"shop {i + 1}" for i in range(shops)), times, values, source, synthetic=True)
    return Sales(panel, promotions, surprises)


def _wander(rng: np.random.Generator, steps: int, hours_of_memory: float) -> Floats:
    """A stationary first-order process of unit variance."""
    from scipy.signal import lfilter  # slow to import, and only needed here

    keep = np.exp(-MINUTES / 60.0 / hours_of_memory)
    noise = rng.normal(size=steps) * np.sqrt(1.0 - keep**2)
    noise[0] = rng.normal()
    path: Floats = lfilter([1.0], [1.0, -keep], noise)
    return path
