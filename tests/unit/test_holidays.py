"""Public holidays: known days, of the whole local day, and what is said of a wrong region."""

import sys
from datetime import date, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import braided as bd
from braided.forecasting import holidays
from braided.forecasting.clock import DAY
from braided.forecasting.holidays import check_region, holiday_flags


def stamps(*times):
    return np.array(times, "datetime64[us]").astype(np.int64)


@pytest.mark.parametrize(
    ("region", "holiday", "not_one"),
    [
        ("AU", "2015-01-26", "2015-11-03"),
        ("AU-VIC", "2015-11-03", "2015-11-10"),
        ("AU-VIC", "2016-04-25", "2016-04-26"),
        ("PT", "2015-04-25", "2015-07-04"),
        ("US", "2015-07-03", "2015-04-25"),  # the Friday, as the 4th is a Saturday
        ("US", "2010-12-31", "2015-12-31"),  # new year's day of 2011, a Saturday
        ("US-HI", "2015-06-11", "2015-06-12"),
    ],
)
def test_known_days_from_midnight_to_midnight(region, holiday, not_one):
    first = stamps(holiday)
    assert holiday_flags(first + np.array([0, 1, DAY // 2, DAY - 1]), region).all()
    assert not holiday_flags(stamps(not_one), region).any()


@given(st.lists(st.integers(-30_000, 60_000), max_size=30))
def test_days_are_those_of_the_package_one_by_one_and_in_any_order(days):
    known = pytest.importorskip("holidays").country_holidays("US", subdiv="HI")
    expected = [date(1970, 1, 1) + timedelta(day) in known for day in days]
    flags = holiday_flags(np.array(days, np.int64) * DAY + DAY // 3, "US-HI")
    assert flags.dtype == bool
    assert flags.tolist() == expected


def test_years_without_known_holidays_have_none():
    assert not holiday_flags(stamps("-0100-12-25", "0001-01-01", "9999-12-25", "20000-12-25"), "AU").any()


@pytest.mark.parametrize(
    ("region", "message"),
    [
        ("AU-VCI", "no holidays for 'AU-VCI': did you mean 'AU-VIC'?"),
        ("au-vic", "no holidays for 'au-vic': did you mean 'AU-VIC'?"),
        ("AU_VIC", "no holidays for 'AU_VIC': did you mean 'AU-VIC'?"),
        ("au", "no holidays for 'au': did you mean 'AU'?"),
        ("AUS", "no holidays for 'AUS': did you mean 'AU'?"),
        ("AU-", "no holidays for 'AU-': did you mean 'AU'?"),
        ("AU-ZZ", "no holidays for 'AU-ZZ': parts of AU are AU-ACT, AU-NSW, "),
        ("au_vic", "no holidays for 'au_vic': did you mean 'AU-VIC'?"),
        ("XX", "no holidays for 'XX': give the ISO 3166 code of a country, such as 'AU'"),
        ("Australia", "no holidays for 'Australia': did you mean 'AU'?"),
        ("new zealand", "no holidays for 'new zealand': did you mean 'NZ'?"),
        ("UK", "no holidays for 'UK': did you mean 'GB'?"),
        ("utils", "no holidays for 'utils': "),
        ("", "no holidays for '': give"),
        (61, "the region for holidays is 61: give"),
    ],
)
def test_an_unknown_region_is_named_with_the_nearest(region, message):
    with pytest.raises(bd.InputError, match=message.replace("?", r"\?")):
        check_region(region)
    with pytest.raises(bd.InputError, match="holidays"):
        holiday_flags(stamps("2015-01-01"), region)


def test_without_the_package_its_extra_is_named(monkeypatch):
    holidays._is_known.cache_clear()
    monkeypatch.setitem(sys.modules, "holidays", None)
    with pytest.raises(bd.InputError, match=r"need the package holidays: pip install 'braided\[holidays\]'"):
        check_region("AU")
