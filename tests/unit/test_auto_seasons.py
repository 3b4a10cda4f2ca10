"""Seasons and views of Auto, compared with what one finds by hand."""

from itertools import pairwise

import numpy as np
import pytest

from braided.forecasting import joined
from braided.forecasting.auto import Auto
from braided.forecasting.auto.seasons import Seasons, is_weekend
from braided.forecasting.auto.view import View
from braided.forecasting.clock import Clock, as_stamps
from braided.forecasting.zones import local_stamps
from tests.auto import same, utc

# Views ---------------------------------------------------------------------------------------------------------------


def test_levels_on_the_asinh_scale_become_the_same_values_again():
    head = np.array([[0.0, 0.0, 8.0], [0.0, 0.0, 9.0], [1.0, 0.0, 10.0], [4.0, 0.0, 20.0], [2.0, 0.0, 30.0]])
    view = View.measure(head, Seasons((), 1), (0, 0), sharing=True, is_asinh=True)
    np.testing.assert_array_equal(view.medians, [2.0, 8.5, 10.0])  # of 1, 2, 4; of all eight; of its own five
    bent = np.arcsinh(3.0 * head / [2.0, 8.5, 10.0])
    np.testing.assert_allclose(view.inward(head), (bent - view.units.centre) / view.units.scale, rtol=1e-12)
    for values in (head, 1e6 * head, head / 1e6):
        np.testing.assert_allclose(view.outward(view.inward(values)), values, rtol=1e-6, atol=1e-12)


# Seasons -------------------------------------------------------------------------------------------------------------


def calendar_of(times, seasons=None):
    """Seasons by the clock of some times, their positions, and their calendar, made in one piece and one by one."""
    stamps = as_stamps(np.asarray(times))
    seasons = seasons or Seasons.of_clock(Clock.measure(stamps.view("datetime64[us]")), is_dated=True)
    positions = seasons.positions(stamps)
    whole = seasons.calendar(positions, np.empty(0), np.zeros(len(stamps), bool))
    for i in range(len(stamps)):
        one = seasons.calendar(positions[i : i + 1], positions[:i], np.zeros(1, bool))
        for name in ("back", "phase", "angle"):
            np.testing.assert_array_equal(getattr(one, name)[0], getattr(whole, name)[i])
    return seasons, positions, whole


def test_weekends_are_saturdays_and_sundays():
    days = np.array(["1969-12-26", "1969-12-27", "1969-12-28", "1969-12-29", "2024-05-31", "2024-06-01", "2024-06-03"])
    days = days.astype("datetime64[D]")
    assert is_weekend(as_stamps(days)).tolist() == [False, True, True, False, False, True, False]
    assert is_weekend(as_stamps(days) + 86_399_999_999).tolist() == [False, True, True, False, False, True, False]


def test_quarters_and_weeks_have_a_year():
    quarters = np.arange("2000-01", "2006-01", 3, dtype="datetime64[M]")
    seasons, positions, calendar = calendar_of(quarters)
    assert (seasons.lengths, seasons.months, seasons.in_words) == ((4.0,), 3, ["a year"])
    np.testing.assert_array_equal(positions, 120 + np.arange(24))  # 30 years after 1970
    assert calendar.back[:, 0].tolist() == [0] * 4 + [4] * 20
    assert calendar.phase[:, 0].tolist() == [0, 1, 2, 3] * 6
    np.testing.assert_allclose(seasons.positions(as_stamps(quarters + np.timedelta64(14, "D"))) % 1.0, 14 / 93)
    weeks = np.arange("2000-01-03", "2002-06-01", 7, dtype="datetime64[D]")
    seasons, _, calendar = calendar_of(weeks)
    assert (seasons.lengths, seasons.in_words) == ((52.0,), ["a year"])
    assert calendar.back[:, 0].tolist() == [0] * 52 + [52] * (len(weeks) - 52)


def test_months_of_any_length_find_the_month_a_year_ago():
    firsts = np.arange("2019-01", "2024-01", dtype="datetime64[M]")
    lasts = (firsts + 1).astype("datetime64[D]") - 1
    for months in (firsts, lasts):
        seasons, positions, calendar = calendar_of(months)
        assert (seasons.lengths, seasons.months) == ((12.0,), 1)
        assert calendar.back[:, 0].tolist() == [0] * 12 + [12] * 48
        assert calendar.phase[:, 0].tolist() == list(range(12)) * 5
        assert np.floor(positions).tolist() == list(range(588, 648))


def test_business_days_find_the_same_day_of_the_week_before():
    days = np.arange("2024-07-01", "2024-07-27", dtype="datetime64[D]")
    days = days[np.is_busday(days) & (days != np.datetime64("2024-07-10"))]  # a Wednesday is missing
    seasons, _, calendar = calendar_of(days)
    assert seasons.lengths == (7.0, 365.25)
    assert calendar.back[:, 0].tolist() == [0] * 5 + [5, 5, 4, 4] + [4, 4, 0, 5, 5] + [5] * 5
    assert (calendar.back[:, 1] == 0).all()


CHANGES = {  # of the clocks of Melbourne at 16:00 UTC: how many rounds back, from then on
    "autumn": ("2024-04-06T16", [150] * 150 + [144] * 100),  # 02:00 to 02:50 come twice
    "spring": ("2024-10-05T16", [138] * 138 + [0] * 6 + [144] * 100),  # 02:00 to 02:50 are left out
}


@pytest.mark.parametrize("change", CHANGES)
def test_where_clocks_change_yesterday_is_found_by_the_clock(change):
    moment, after = CHANGES[change]
    moment, step = np.datetime64(moment, "m"), np.timedelta64(10, "m")
    times = moment + step * np.arange(-300, len(after))
    local = local_stamps(as_stamps(times), "Australia/Melbourne")
    seasons, _, calendar = calendar_of(local, Seasons((144.0, 1008.0), 600_000_000, is_dated=True))
    assert calendar.back[:, 0].tolist() == [0] * 144 + [144] * 156 + after
    hours = local.view("datetime64[us]").astype("datetime64[h]").astype(int) % 24
    assert (seasons.n_phases, seasons.phases(calendar.phase).tolist()) == (24, hours.tolist())
    rng = np.random.default_rng(0)
    values, cuts = rng.normal(size=(len(times), 2)).cumsum(axis=0), [*range(290, 320), *range(440, 460)]
    engines = [utc(Auto((), timezone="Australia/Melbourne", seasons=(144,))) for _ in range(2)]
    pieces = [engines[1].advance(times[a:b], values[a:b], ("a", "b")) for a, b in pairwise([0, *cuts, len(times)])]
    same(engines[0].advance(times, values, ("a", "b")), joined(pieces))


def test_seasons_have_waves_and_wait_until_they_are_known():
    hourly = Seasons((24.0, 168.0), 3_600_000_000, is_dated=True)
    assert (hourly.waves.tolist(), hourly.known_from.tolist()) == ([4, 3], [29, 202])
    assert (hourly.bins.tolist(), hourly.in_words) == ([0, 24, 192], ["a day", "a week"])
