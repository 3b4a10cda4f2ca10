"""Panels from files of NREL's WIND Toolkit: the chosen sites and dates, on one clock.

>>> from pathlib import Path
>>> from tempfile import TemporaryDirectory
>>> lines = ["SiteID,7,Data Timezone,0,Longitude,-80.2,Latitude,25.8", "Year,Month,Day,Hour,Minute,windspeed_100m",
...          "2012,1,1,0,0,5.0", "2012,1,1,0,5,5.5"]
>>> with TemporaryDirectory() as folder:
...     _ = Path(folder, "7.csv").write_text("\\n".join(lines))
...     read_wind_toolkit(folder, near=(25.76, -80.19), within_km=20)
Panel('wind-toolkit': 2 steps × 1 stream, 2012-01-01T00:00:00 to 2012-01-01T00:05:00, 0 values missing)
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from os import PathLike

import numpy as np

from braided.datasets.wind_toolkit_files import VARIABLES, Rows, Span, WindFile, check_size, find
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
    unit = VARIABLES[choice(variable, "variable", tuple(VARIABLES))]
    span = _span(start, end)
    files = find([paths] if isinstance(paths, str | PathLike) else paths)
    chosen = _choose(files, near, sites, within_km)
    parts: list[Rows] = []
    for file in files:
        columns = np.flatnonzero(np.isin(file.names, list(chosen)))
        if len(columns):
            _check_positions(file, columns, chosen)
            parts.append(file.read(columns, variable, high, span))
            _check_clocks(parts[0], parts[-1])
    if not any(len(rows.times) for rows in parts):
        dates = f"{min(rows.first for rows in parts)} to {max(rows.last for rows in parts)}"
        raise InputError(f"start is {start!r}, end is {end!r}, and the files hold {dates}: choose dates among them")
    times, values = _merged(parts, list(chosen), variable)
    which = "" if near is None else f", nearest to {near[0]:g}, {near[1]:g}"
    which += "" if within_km is None else f", within {within_km:g} km"
    source = (
        f"NREL WIND Toolkit: {variable} ({unit}) at {high:g} m, {'UTC' if parts[0].utc else 'time zone unknown'}, "
        f"{len(chosen)} sites{which}; cite Draxl, Clifton, Hodge and McCaa (2015), Applied Energy 151, 355-366"
    )
    return Panel("wind-toolkit", tuple(chosen), times, values, source)


def wind_toolkit_sites(paths: Paths) -> dict[str, Position]:
    """Return the positions of the sites in files, in degrees of latitude and longitude."""
    found: dict[str, Position] = {}
    for file in find([paths] if isinstance(paths, str | PathLike) else paths):
        _distances(file, (0.0, 0.0))  # refuses a file without positions
        _check_positions(file, slice(None), found)
        found = dict(zip(file.names.tolist(), map(tuple, file.positions.tolist()), strict=True)) | found
    return found


def _span(start: str | None, end: str | None) -> Span:
    """The first moment, and the first one after the end."""
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
        raise InputError(f"sites is {most}: the files have {len(chosen)}; ask for at most that, or give more files")
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
            places = f"at {known[name]} in one file, at {tuple(position)} in {file.path}"
            raise InputError(f"site {name} is {places}: read the files separately")


def _check_clocks(one: Rows, two: Rows) -> None:
    """Refuse files with different steps, phases or time zones."""
    if one.step != two.step:
        steps = f"{one.path} has a row every {one.step}, {two.path} every {two.step}"
        raise InputError(f"{steps}: give files of one step")
    if (two.first - one.first) % one.step:
        times = f"{one.path} has a row at {one.first}, {two.path} at {two.first}"
        raise InputError(f"{times}, and both one every {one.step}: give files of one clock")
    if one.utc != two.utc:
        with_zone, without = (one, two) if one.utc else (two, one)
        raise InputError(
            f"{with_zone.path} names its data's time zone, {without.path} doesn't: add the line Data Timezone,0 to the "
            "head of the latter if its times are UTC, Data Timezone,-5 if they are five hours behind"
        )


def _merged(parts: list[Rows], sites: list[str], variable: str) -> tuple[Ints, Floats]:
    """The times and values of all files; a value may be in several, if it is the same."""
    step = parts[0].step
    first = min(rows.times[0] for rows in parts if len(rows.times))
    times = np.arange(first, max(rows.times[-1] for rows in parts if len(rows.times)) + step, step)
    check_size(len(times), len(sites))
    values = np.full((len(times), len(sites)), np.nan)
    for rows in parts:
        cells = np.ix_((rows.times - first) // step, [sites.index(name) for name in rows.names])
        before, new = values[cells], rows.values

        def place(row: int, column: int, rows: Rows = rows) -> str:
            return f"{rows.values[row, column]:g} at {rows.times[row]} in {rows.path}"

        for row, column in np.argwhere(np.isinf(new) | (new < 0)):
            what = f"site {rows.names[column]} has the {variable} {place(row, column)}"
            raise InputError(f"{what}: if that means a missing value, write NaN there; else download it again")
        for row, column in np.argwhere((before != new) & ~np.isnan(before) & ~np.isnan(new)):
            also = f"and {before[row, column]:g} in a file before it"
            raise InputError(f"site {rows.names[column]} has {place(row, column)}, {also}: give one of them")
        values[cells] = np.where(np.isnan(new), before, new)
    return times, values
