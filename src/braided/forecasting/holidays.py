"""Holidays: which times fall on a public holiday, by the optional package `holidays`.

On a holiday a Tuesday looks like a Sunday. Days are those of the wall clock (see `zones`).

>>> import numpy as np
>>> days = np.arange("2015-11-02", "2015-11-05", dtype="datetime64[D]").astype("datetime64[us]").astype(np.int64)
>>> holiday_flags(days, "AU-VIC")  # the Melbourne Cup
array([False,  True, False])
>>> check_region("AU-VCI")
Traceback (most recent call last):
braided.errors.InputError: no holidays for 'AU-VCI': did you mean 'AU-VIC'?
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

import numpy as np

from braided.errors import InputError
from braided.forecasting.clock import DAY
from braided.types import Flags, Ints

FIRST_YEAR, LAST_YEAR = 1, 9999  # that Python's dates have
WHAT_TO_GIVE = "give the ISO 3166 code of a country, such as 'AU', or of a part of one, such as 'AU-VIC'"


def holiday_flags(local_stamps: Ints, region: str) -> Flags:
    """Return whether times of the wall clock, in microseconds since 1970-01-01 00:00, fall on a public holiday.

    A region is a country, "AU", or a part of one, "AU-VIC". Years for which the package knows no holidays have none.
    """
    check_region(region)
    days = local_stamps // DAY
    years = 1970 + np.unique(days).view("datetime64[D]").astype("datetime64[Y]").astype(np.int64)
    holidays = [_days(region, year) for year in np.unique(years).tolist() if FIRST_YEAR <= year <= LAST_YEAR]
    return np.isin(days, np.concatenate([np.empty(0, np.int64), *holidays]))


def check_region(region: str) -> None:
    """Refuse a region that the package does not know, or any region if it is not installed."""
    if not isinstance(region, str):
        raise InputError(f"the region for holidays is {region!r}: {WHAT_TO_GIVE}")
    if not _is_known(region):
        raise InputError(f"no holidays for {region!r:.80}: {_remedy(region)}")


def _package() -> Any:
    try:
        import holidays  # optional: only needed where holidays are asked for
    except ImportError as error:
        raise InputError("public holidays need the package holidays: pip install 'braided[holidays]'") from error
    return holidays


def _made(country: str, subdivision: str, **years: int) -> Any:
    """The package's calendar of a region."""
    return _package().country_holidays(country, subdiv=subdivision or None, **years)


@lru_cache(maxsize=256)
def _is_known(region: str) -> bool:
    country, dash, subdivision = region.partition("-")
    _package()
    if not re.fullmatch("[A-Z]{2}", country):
        return False
    try:
        known = _made(country, "")
    except (NotImplementedError, AttributeError):
        return False
    is_code = known.country == country  # and not an alias, such as "UK" for GB
    return is_code and (not dash or subdivision in known.subdivisions)


def _remedy(region: str) -> str:
    package = _package()
    for name in (region, region.title().replace(" ", "")):  # the package also has "AUS", "UK" and "NewZealand"
        if isinstance(code := getattr(getattr(package, name, None), "country", None), str):
            return f"did you mean {code!r}?"
    countries = package.list_supported_countries(include_aliases=False)
    country, _, part = region.upper().replace("_", "-").partition("-")
    if part and countries.get(country):  # parts of other countries would be no help
        parts = {one.upper(): f"{country}-{one}" for one in countries[country]}
        near = get_close_matches(part, parts, n=1)
        return (
            f"did you mean {parts[near[0]]!r}?"
            if near
            else f"parts of {country} are {', '.join(sorted(parts.values()))}"
        )
    codes = [*countries, *(f"{country}-{part}" for country, parts in countries.items() for part in parts)]
    names = {code.lower(): code for code in codes}
    near = get_close_matches(region.lower().replace("_", "-"), names, n=1)
    return f"did you mean {names[near[0]]!r}?" if near else WHAT_TO_GIVE


@lru_cache(maxsize=1024)
def _days(region: str, year: int) -> Ints:
    """The holidays of a year, in days since 1970-01-01."""
    country, _, subdivision = region.partition("-")
    found = [day for day in _made(country, subdivision, years=year) if day.year == year]
    return np.array(sorted(found), "datetime64[D]").astype(np.int64)
