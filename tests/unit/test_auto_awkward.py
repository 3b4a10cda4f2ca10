"""Auto in awkward cases: no season, zeros, business days, streams that join late, calls that stop midway."""

import numpy as np
import pytest
import scipy.sparse as sparse

from braided._compiled.panel import Calendar
from braided._compiled.targets import Far, Targets
from braided.errors import InputError
from braided.forecasting.auto import Auto, AutoEngine
from braided.forecasting.auto.seasons import Seasons
from braided.forecasting.auto.surroundings import Surroundings, holidays_of
from braided.forecasting.auto.view import View, most_alike
from braided.forecasting.clock import DAY, Clock, as_stamps
from braided.forecasting.units import Units
from braided.graph import TaskGraph
from braided.state import dumps
from tests.auto import FEW, same, walks
from tests.reference.auto import centred, obvious_features, obvious_scales


def view_of(values, **given):
    return View.measure(values[:20], Seasons((), 1), (0, 0), sharing=True, **given)


def calendar_of(n):
    none = np.zeros((n, 0), np.int64)
    return Calendar(none, none, none.astype(float), np.zeros(n, bool))


def test_without_a_season_enough_rounds_are_remembered_for_all_lags(monkeypatch):
    monkeypatch.setattr("braided.forecasting.clipping.clip_features_inplace", lambda *_: None)
    _, values, _ = walks(60, 3)
    view, given, none = view_of(values), np.empty((60, 3, 0)), np.empty((60, 0), np.int64)
    made = view.describe(calendar_of(60), values, given, Targets.none(60, 0), Far.fresh(0, 60, 3, 0))
    Z, S = view.units.inward(values), view.graph.similarity
    for r in range(60):
        for t in range(3):
            expected = obvious_features(Z, S, view.alike, calendar_of(60), given, none, none, r, t)
            np.testing.assert_allclose(made.X[r, t], expected, atol=1e-9)


def test_running_means_of_levels_and_small_scales_after_many_rounds():
    rng = np.random.default_rng(0)
    values = np.column_stack([rng.normal(size=1500).cumsum(), rng.normal(size=1500).cumsum()])
    values[700:1100, 1] = values[700, 1]
    view, calendar = view_of(values), calendar_of(1500)
    none = Targets.none(1500, 0), Far.fresh(0, 1500, 2, 0)
    made = view.describe(calendar, values, np.empty((1500, 2, 0)), *none)
    Z = view.units.inward(values)
    assert view.panel.tallies[8, 0] == pytest.approx(Z[-1, 0] - centred(Z, 1499, 0), rel=1e-9)
    assert made.scale[1100, 1] == 0.05
    assert made.scale[1400, 1] == pytest.approx(obvious_scales(Z, calendar, 1400, 1))


def test_the_most_alike_come_first():
    rng = np.random.default_rng(0)
    for n, k in ((4, None), (25, None), (40, 20)):
        S = np.abs(rng.normal(size=(n, n)))
        S = (S + S.T) / (2 * np.abs(S).max())
        np.fill_diagonal(S, 0.0)
        S = np.where(S > 0.3, S, 0.0) if k else S
        alike = most_alike(TaskGraph(sparse.csr_array(S) if k else S, range(n), ridge=0.1))
        assert alike.shape[1] <= 19
        for t in range(n):
            own = np.delete(S[t], t)
            best = np.sort(own)[::-1][: alike.shape[1]]
            found = [S[t, o] if o >= 0 else 0.0 for o in alike[t]]
            np.testing.assert_array_equal(found, best)
            assert t not in alike[t]
        assert n - 1 < 19 or alike.shape[1] == 19


def test_zeros_have_an_asinh_scale_and_negative_values_none():
    times, values, tasks = walks(30, 3)
    values = np.maximum(np.abs(values) - 3.0, 0.0)
    assert (values == 0.0).any()
    for low, has in ((0.0, True), (-1e-9, False)):
        values[7, 1] = low
        engine = AutoEngine(Auto())
        engine.advance(times, values, tasks)
        assert ("tied (asinh)" in engine.ensemble.names) == has


def test_holidays_as_flags_and_as_differences():
    days = as_stamps(np.arange("2015-11-01", "2015-11-13", dtype="datetime64[D]"))  # Tuesday 3 is the Cup
    expected = [[0, 0, 0], [1, 1, 1], [0, -1, 0]] + [[0, 0, 0]] * 5 + [[0, 0, -1], [0, 0, 0], [0, 0, 0]]
    np.testing.assert_array_equal(holidays_of(days, "AU-VIC"), expected)


def test_a_weekend_is_no_gap_for_business_days():
    days = np.arange("2024-01-01", "2024-03-01", dtype="datetime64[D]")
    days = days[np.is_busday(days)]
    stamps = as_stamps(days)
    n = len(stamps)
    times = np.append(stamps[0] - DAY, stamps)
    times[-1] += 6 * DAY
    stretch = Surroundings(None, 0, 0).stretch(
        times,
        times,
        times[1:, None],
        np.zeros((n, 1)),
        np.zeros((n, 1, 0)),
        (np.zeros((1, 1, 0)), np.zeros((n, 1), np.int64)),
        Clock.measure(days.astype("datetime64[us]")),
        True,
    )
    assert np.flatnonzero(stretch.is_after_gap).tolist() == [n - 1]


def test_the_wildest_changes_are_clipped_at_a_hundred_times_the_mean_square_of_the_rest():
    rng = np.random.default_rng(0)
    changes = rng.normal(size=60)
    changes[[5, 6, 40]] = 1e4, -1e5, 1e3
    squares = changes**2
    rest = np.sort(squares)[:57].sum() / 57  # a twentieth of sixty is three
    expected = np.sqrt(np.minimum(squares, 100.0 * rest).mean())
    assert Units.measure(np.append(0.0, changes.cumsum())[:, None]).scale[0] == pytest.approx(expected, rel=1e-6)


def test_a_stream_that_joins_on_the_asinh_scale_has_its_own_median_and_units():
    _, values, _ = walks(60, 3)
    values = np.abs(values) + 1.0
    own = 50.0 * values[:25, 0] + 7.0
    view = view_of(values, is_asinh=True)
    view.join(view.graph.join(3, {}), own)
    assert view.medians[-1] == np.median(own)
    bent = np.arcsinh(3.0 * own / np.median(own))
    expected = Units.measure(bent[:, None])
    assert view.units.scale[-1] == pytest.approx(expected.scale[0])
    assert view.units.centre[-1] == pytest.approx(expected.centre[0])
    assert view.panel.last[-1] == pytest.approx((bent[-1] - expected.centre[0]) / expected.scale[0])


def test_a_stream_is_silent_however_the_rounds_are_cut():
    times, values, tasks = walks(60, 3)
    values[40:55, 1] = np.nan
    engine = AutoEngine(FEW)
    engine.advance(times[:40], values[:40], tasks)
    engine.advance(times[40:50], values[40:50], tasks)
    assert engine.silent == []
    engine.advance(times[50:52], values[50:52], tasks)
    assert engine.silent == ["s1"]


def test_waves_of_each_season():
    for length, waves in {4.0: 1, 7.0: 3, 12.0: 5, 24.0: 4, 48.0: 4, 52.0: 2, 288.0: 4, 365.25: 3}.items():
        assert Seasons((length,), 1).waves.tolist() == [waves]


def test_until_a_stream_changes_for_the_first_time_no_change_is_forecast_to_the_bit():
    times, values, tasks = walks(80, 3)
    values[:60, 1] = 0.1 + 0.2
    made = AutoEngine(Auto()).advance(times, values, tasks)
    first = made.forecast[(made.places == 1) & (made.times <= times[60])]
    assert len(first) == 60
    assert (first == 0.1 + 0.2).all()
    after = made.forecast[(made.places == 1) & (made.times > times[60])]
    assert (after != values[60:79, 1]).any()


def test_the_callers_array_may_be_used_again():
    times, values, tasks = walks(30, 3)
    engine, room = AutoEngine(FEW), np.empty((1, 3))
    for i in range(30):
        room[:] = values[i]
        engine.advance(times[i : i + 1], room, tasks)
    whole = AutoEngine(FEW)
    whole.advance(times, values, tasks)
    same(engine.ahead(), whole.ahead())


def test_the_order_in_which_streams_come_moves_no_bit():
    times, values, tasks = walks(60, 4)
    values[:10, 0] = np.nan
    made = []
    for first in (10, 0):  # of the streams that are named in the first call, one may come later
        engine = AutoEngine(FEW)
        engine.advance(times[:first], values[:first, 1:], tasks[1:])
        made.append(engine.advance(times[first:], values[first:], tasks))
        ahead = engine.ahead()
        made[-1] = dict(zip(ahead.tasks, ahead.forecast, strict=True))
    assert made[0] == made[1]


class Stop(BaseException):
    """Stands for a keyboard interrupt."""


def test_a_model_that_was_stopped_midway_is_not_used_again(monkeypatch):
    times, values, tasks = walks(60, 3)
    engine = AutoEngine(FEW)
    engine.advance(times[:40], values[:40], tasks)

    def stop(*_):
        raise Stop

    with monkeypatch.context() as patched:
        patched.setattr("braided.forecasting.auto.ensemble.Ensemble.advance", stop)
        with pytest.raises(Stop):
            engine.advance(times[40:], values[40:], tasks)
    for call in (lambda: engine.advance(times[40:], values[40:], tasks), engine.ahead, engine.dump):
        with pytest.raises(InputError, match="stopped midway"):
            call()


def test_a_step_that_is_too_long_changes_nothing():
    engine = AutoEngine(FEW)
    engine.advance([-(2**62 - 1)], [[1.0]], ["a"])
    before = dumps(engine)
    with pytest.raises(InputError, match=r"times\[0\] is 4611686018427387903, .* after"):
        engine.advance([2**62 - 1], [[2.0]], ["a"])
    assert dumps(engine) == before
