"""Local clocks: those of Python's own datetime, one by one, and the same however the times are cut."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import braided as bd
from braided.forecasting import zones
from braided.forecasting.zones import check_timezone, local_stamps, utc_stamps

ZONES = ["Australia/Melbourne", "Europe/Lisbon", "America/New_York", "Asia/Kathmandu", "UTC"]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
FIRST, LAST = ((datetime(year, 1, day, tzinfo=UTC) - EPOCH) // MICROSECOND for year, day in ((1, 3), (9999, 30)))


def stamp(text):
    return int(np.datetime64(text, "us").astype(np.int64))


def slow(stamps, timezone):
    """What Python's own dates say, one by one."""
    local = [(EPOCH + one * MICROSECOND).astimezone(ZoneInfo(timezone)) for one in np.asarray(stamps).tolist()]
    return [(one.replace(tzinfo=UTC) - EPOCH) // MICROSECOND for one in local]


@pytest.mark.parametrize("timezone", ZONES)
@pytest.mark.parametrize("year", ["1900", "1916", "1986", "2015", "2037", "2100", "9998"])
def test_hours_of_a_year_are_those_of_the_clock(timezone, year):
    hours = stamp(f"{year}-01-01") + np.arange(-24, 367 * 24) * 3_600_000_000
    assert local_stamps(hours, timezone).tolist() == slow(hours, timezone)


@pytest.mark.parametrize(
    ("timezone", "moments"),
    [
        ("Australia/Melbourne", ("2015-04-04T16:00", "2015-10-03T16:00")),
        ("Europe/Lisbon", ("2015-03-29T01:00", "2015-10-25T01:00")),
        ("America/New_York", ("2015-03-08T07:00", "2015-11-01T06:00")),
        ("Asia/Kathmandu", ("1985-12-31T18:30",)),
    ],
)
def test_the_clock_is_moved_at_the_microsecond(timezone, moments):
    for moment in map(stamp, moments):
        around = moment + np.array([-1_000_000, -1, 0, 1, 1_000_000])
        assert local_stamps(around, timezone).tolist() == slow(around, timezone)
        offsets = local_stamps(around, timezone) - around
        assert offsets[1] != offsets[2]


@given(st.sampled_from(ZONES), st.lists(st.integers(FIRST, LAST), max_size=20))
def test_any_times_in_any_order(timezone, times):
    stamps = np.array(times, np.int64)
    assert local_stamps(stamps, timezone).tolist() == slow(stamps, timezone)


@given(st.lists(st.integers(stamp("1850-01-01"), stamp("2200-01-01")), min_size=1, max_size=30), st.integers(0, 30))
def test_it_does_not_matter_how_times_are_cut(times, place):
    """Even where nothing has been looked up before."""
    stamps = np.array(times, np.int64)
    whole = local_stamps(stamps, "Europe/Lisbon")
    zones._offsets_in.cache_clear()
    parts = [local_stamps(part, "Europe/Lisbon") for part in np.split(stamps, [min(place, len(stamps))])]
    assert (np.concatenate(parts) == whole).all()


def test_times_that_no_date_of_python_can_hold_have_the_clock_of_400_years_before():
    stamps = np.array([stamp("2012-07-01T12:00"), stamp("2012-01-01T12:00")])
    late = stamps + 25 * zones.CYCLE  # 10,000 years
    assert (local_stamps(late, "Europe/Lisbon") - late).tolist() == [3_600_000_000, 0]
    early = np.array([stamp("-5000-01-01"), stamp("1600-01-01")])
    assert np.ptp(local_stamps(early, "Europe/Lisbon") - early) == 0
    assert local_stamps(stamps[:0], "Europe/Lisbon").tolist() == []


@pytest.mark.parametrize(
    ("timezone", "message"),
    [
        ("Australia/Melborne", "no timezone 'Australia/Melborne': did you mean 'Australia/Melbourne'?"),
        ("europe/lisbon ", "no timezone 'europe/lisbon ': did you mean 'Europe/Lisbon'?"),
        ("Lisboa", "no timezone 'Lisboa': did you mean 'Europe/Lisbon'?"),
        ("new york", "no timezone 'new york': did you mean 'America/New_York'?"),
        ("?", "no timezone '?': give a name such as 'Europe/Lisbon' or 'UTC'"),
        ("/etc/localtime", "no timezone '/etc/localtime': "),
        ("../UTC", "no timezone '../UTC': "),
        ("a\0b", "no timezone 'a.x00b': "),
        ("", "no timezone '': "),
        ("America", "no timezone 'America': "),
        (10, "timezone is 10: give a name, such as 'Europe/Lisbon'"),
        (None, "timezone is None: give a name"),
    ],
)
def test_an_unknown_zone_is_named_with_the_nearest(timezone, message):
    with pytest.raises(bd.InputError, match=message.replace("?", r"\?")):
        check_timezone(timezone)
    with pytest.raises(bd.InputError, match="timezone"):
        local_stamps(np.arange(3), timezone)


def test_a_computer_without_zones_is_told_apart(monkeypatch):
    monkeypatch.setattr(zones, "_names", dict)
    with pytest.raises(bd.InputError, match="no time zone data on this computer: pip install tzdata"):
        check_timezone("Nowhere/Else")


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Australia/Melbourne", "America/St_Johns", "UTC"])
def test_back_to_utc(zone):
    moments = np.arange("2021-01-01T00:30", "2023-01-01", np.timedelta64(7, "h"), dtype="datetime64[us]").astype(
        np.int64
    )
    shown = local_stamps(moments, zone)
    back = utc_stamps(shown, zone)
    np.testing.assert_array_equal(local_stamps(back, zone), shown)
    assert np.mean(back == moments) > 0.998  # all but hours that come twice


@pytest.mark.parametrize(("last", "following"), [("2022-10-30", "2022-10-31"), ("2022-03-26", "2022-03-27")])
def test_days_follow_each_other_though_clocks_change(last, following):
    days = np.arange(np.datetime64(last) - 60, np.datetime64(last) + 1).astype("datetime64[us]").astype(np.int64)
    times = utc_stamps(days, "Europe/Berlin")
    forecaster = bd.Forecaster(timezone="Europe/Berlin")
    moments = [datetime.fromtimestamp(time / 1e6, UTC) for time in times]
    values = 5.0 + (days // 86_400_000_000 % 7)[:, None] * [1.0, 2.0]
    forecaster.update(moments, values, ["a", "b"])
    expected = utc_stamps(np.array([following], "datetime64[us]").astype(np.int64), "Europe/Berlin")
    ahead = forecaster.forecast()
    assert (ahead.times.astype(np.int64) == expected).all()
    plain = bd.Forecaster()
    plain.update(days.view("datetime64[us]"), values, ["a", "b"])
    np.testing.assert_array_equal(ahead.forecast, plain.forecast().forecast)
