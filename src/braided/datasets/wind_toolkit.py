"""Panels from files of NREL's WIND Toolkit: the sites and dates that are wanted, on one clock.

>>> from pathlib import Path
>>> from tempfile import TemporaryDirectory
>>> lines = ["SiteID,7,Data Timezone,0,Longitude,-80.2,Latitude,25.8", "Year,Month,Day,Hour,Minute,windspeed_100m",
...          "2012,1,1,0,0,5.0", "2012,1,1,0,5,5.5"]
>>> with TemporaryDirectory() as folder:
...     _ = Path(folder, "7.csv").write_text("\\n".join(lines))
...     read_wind_toolkit(folder, near=(25.76, -80.19), within_km=20)
Panel('wind-toolkit': 2 steps × 1 streams, 2012-01-01T00:00:00 to 2012-01-01T00:05:00, 0 values missing)
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path

import numpy as np

from braided.datasets.wind_toolkit_files import UNITS, Rows, Span, WindFile, check_size, find
from braided.errors import InputError
from braided.tables.panel import Panel
from braided.types import Floats, Ints
from braided.validate import choice, count, not_negative, positive, real

MAX_SITES = 100_000
EARTH_KM = 6371.0088  # mean radius

Paths = str | PathLike[str] | Iterable[str | PathLike[str]]
Position = tuple[float, float]  # degrees of latitude and longitude


def read_wind_toolkit(
    paths: Paths,
    *,
    height: float = 100,
    near: Position | None = None,
    sites: int | None = None,
    within_km: float | None = None,
    start: str | None = None,
    end: str | None = None,
    variable: str = "wind speed",
) -> Panel:
    """Return a panel of the sites in files, or folders of files: CSV of NREL's download service, .srw, HDF5.

    `near` (latitude, longitude) sorts the sites by distance; `sites` keeps the nearest, `within_km` those not farther.
    `start` and `end` are ISO dates or times, both included; `variable` may be "wind direction". Times are UTC, except
    in older CSV files that don't name their time zone: those stay as they are.
    """
    high = positive(height, "height")
    unit = UNITS[choice(variable, "variable", tuple(UNITS))]
    span = _span(start, end)
    files = find(_paths(paths))
    chosen = _choose(files, near, sites, within_km)
    tasks = list(chosen)

    parts: list[tuple[WindFile, list[str], Rows]] = []
    for file in files:
        columns = np.flatnonzero(np.isin(file.names, tasks))
        if len(columns):
            own = [str(name) for name in file.names[columns]]
            _check_positions(file, columns, chosen)
            parts.append((file, own, file.read(columns, variable, high, span)))
            _check_clocks(parts[0][0], parts[0][2], file, parts[-1][2])
    held = [rows for _, _, rows in parts if len(rows.times)]
    if not held:
        dates = f"{min(rows.first for _, _, rows in parts)} to {max(rows.last for _, _, rows in parts)}"
        raise InputError(f"start is {start!r}, end is {end!r}, and the files hold {dates}: choose dates among them")
    first, last, step = min(rows.times[0] for rows in held), max(rows.times[-1] for rows in held), held[0].step
    times = np.arange(first, last + step, step)
    check_size(len(times), len(tasks))
    places = {name: place for place, name in enumerate(tasks)}
    values = np.full((len(times), len(tasks)), np.nan)
    for file, own, rows in parts:
        cells = np.ix_((rows.times - first) // step, [places[name] for name in own])
        before = values[cells]
        for row, column in np.argwhere(np.isinf(rows.values) | (rows.values < 0)):
            raise InputError(
                f"site {own[column]} has the {variable} {rows.values[row, column]:g} at {rows.times[row]} in "
                f"{file.path}: if that stands for a missing value, write NaN there; else download it again"
            )
        for row, column in np.argwhere((before != rows.values) & ~np.isnan(before) & ~np.isnan(rows.values)):
            raise InputError(
                f"site {own[column]} has {rows.values[row, column]:g} at {rows.times[row]} in {file.path}, and "
                f"{before[row, column]:g} in a file before it: give one of them"
            )
        values[cells] = np.where(np.isnan(rows.values), before, rows.values)

    which = "" if near is None else f", nearest to {near[0]:g}, {near[1]:g}"
    which += "" if within_km is None else f", within {within_km:g} km"
    source = (
        f"NREL WIND Toolkit: {variable} ({unit}) at {high:g} m, {'UTC' if held[0].utc else 'time zone unknown'}, "
        f"{len(tasks)} sites{which}; cite Draxl, Clifton, Hodge and McCaa (2015), Applied Energy 151, 355-366"
    )
    return Panel("wind-toolkit", tuple(tasks), times, values, source)


def wind_toolkit_sites(paths: Paths) -> dict[str, Position]:
    """Return where the sites in files are, in degrees of latitude and longitude."""
    found: dict[str, Position] = {}
    for file in find(_paths(paths)):
        _distances(file, (0.0, 0.0))  # refuses a file without positions
        _check_positions(file, slice(None), found)
        found = dict(zip(file.names.tolist(), map(tuple, file.positions.tolist()), strict=True)) | found
    return found


def _paths(paths: Paths) -> list[Path]:
    return [Path(paths)] if isinstance(paths, str | PathLike) else [Path(path) for path in paths]


def _span(start: str | None, end: str | None) -> Span:
    """The first moment, and the first one after."""
    first, _ = _moments("0001-01-01" if start is None else start, "start")
    _, after = _moments("9999-12-31" if end is None else end, "end")
    if first >= after:
        raise InputError(f"start is {start!r}, end is {end!r}: the end must not come before the start")
    return first, after


def _moments(text: str, name: str) -> Span:
    """When a date or a time starts and ends."""
    try:
        first = datetime.fromisoformat(text)
        if first.tzinfo is not None:
            first = first.astimezone(UTC).replace(tzinfo=None)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name} is {text!r}: write a date such as 2012-01-31, or a time, 2012-01-31 18:30") from error
    moment = np.datetime64(first, "s")
    return moment, moment + np.timedelta64(86_400 if len(text) <= 10 else 1, "s")


def _choose(
    files: list[WindFile], near: Position | None, sites: int | None, within_km: float | None
) -> dict[str, Position]:
    """The chosen sites, and where they are."""
    most = None if sites is None else count(sites, "sites")
    limit = np.inf if within_km is None else not_negative(within_km, "within_km")
    if near is None and (sites, within_km) != (None, None):
        raise InputError("near is not given: sites and within_km need a place, (latitude, longitude) in degrees")
    found: dict[str, tuple[float, Position]] = {}
    for file in files:
        away = np.zeros(len(file.names)) if near is None else _distances(file, near)
        order = np.argsort(away, kind="stable")[: max(1, int((away <= limit).sum()))][:most]
        if len(order) > MAX_SITES:
            raise InputError(f"there are {len(order)} sites: choose the nearest with near= and sites= or within_km=")
        for column in order:
            latitude, longitude = file.positions[column].tolist()
            found.setdefault(str(file.names[column]), (float(away[column]), (latitude, longitude)))
    ranked = sorted(found, key=lambda name: found[name][0])
    chosen = [name for name in ranked if found[name][0] <= limit][:most]
    if not chosen:
        nearest = f"the nearest, {ranked[0]}, is {found[ranked[0]][0]:.1f} km away"
        raise InputError(f"no site lies within {limit:g} km of {near}: {nearest}; near is (latitude, longitude)")
    if most is not None and within_km is None and len(chosen) < most:
        raise InputError(f"sites is {most}: the files have {len(chosen)}; ask for as many, or give more files")
    return {name: found[name][1] for name in chosen}


def _distances(file: WindFile, near: Position) -> Floats:
    """How far away the sites are on a great circle, in km."""
    try:
        here = np.radians([real(degrees, "near") for degrees in near])
    except TypeError:
        here = np.empty(0)
    if here.shape != (2,) or abs(here[0]) > np.pi / 2:
        raise InputError(f"near is {near!r}: give (latitude, longitude) in degrees, such as (25.76, -80.19)")
    if np.isnan(file.positions).any():
        raise InputError(f"{file.path} doesn't say where its site is: write its latitude and longitude into its head")
    there = np.radians(file.positions)
    half = np.sin((there - here) / 2) ** 2
    chord = half[:, 0] + np.cos(here[0]) * np.cos(there[:, 0]) * half[:, 1]
    return 2 * EARTH_KM * np.arcsin(np.sqrt(np.minimum(chord, 1.0)))


def _check_positions(file: WindFile, columns: Ints | slice, known: dict[str, Position]) -> None:
    """Refuse a name that means two places: the sites of HDF5 files without names are numbered."""
    for name, position in zip(file.names[columns].tolist(), file.positions[columns].tolist(), strict=True):
        if name in known and any(abs(a - b) > 0.01 for a, b in zip(position, known[name], strict=True)):
            raise InputError(
                f"site {name} is at {known[name]} in one file, at {tuple(position)} in {file.path}: read them apart"
            )


def _check_clocks(file: WindFile, rows: Rows, other_file: WindFile, other: Rows) -> None:
    """Refuse files with different steps, phases or time zones."""
    one, two = file.path, other_file.path
    if rows.step != other.step:
        raise InputError(f"{one} has a row every {rows.step}, {two} every {other.step}: give files of one step")
    if (other.first - rows.first) % rows.step:
        times = f"{one} has a row at {rows.first}, {two} at {other.first}"
        raise InputError(f"{times}, and both one every {rows.step}: give files of one clock")
    if rows.utc != other.utc:
        with_zone, without = (one, two) if rows.utc else (two, one)
        raise InputError(
            f"{with_zone} names its data's time zone, {without} doesn't: add the line Data Timezone,0 to the head of "
            "the latter if its times are UTC, Data Timezone,-5 if they are five hours behind"
        )
