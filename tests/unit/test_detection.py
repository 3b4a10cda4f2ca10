"""Seasons of tables without dates: found where there is one, and not where there is none."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.signal import lfilter

from braided.datasets import embedded
from braided.forecasting.detection import detect_seasons


def seasonal(length, rounds=240, streams=4, seed=0, missing=0.2, noise="white"):
    """Streams with one pattern, noise half as large, trends of their own, and values left out at random."""
    rng = np.random.default_rng(seed)
    times = np.arange(rounds)[:, None]
    pattern = np.sin(2 * np.pi * np.arange(length) / length) + 0.5 * rng.standard_normal(length)
    made = (pattern / pattern.std())[times % length] * rng.uniform(0.5, 2.0, streams)
    shocks = 0.5 * rng.standard_normal((rounds, streams))
    levels = made + (shocks if noise == "white" else shocks.cumsum(axis=0)) + times * rng.uniform(-0.1, 0.1, streams)
    levels[rng.random(levels.shape) < missing] = np.nan
    return levels


def without_season(response, rounds, streams, seed):
    """Streams that follow their last value by a response: 0 for noise, 1 for a random walk."""
    shocks = np.random.default_rng(seed).standard_normal((rounds + 100 * (response < 1), streams))
    return lfilter([1.0], [1.0, -response], shocks, axis=0)[-rounds:]


@pytest.mark.parametrize("noise", ["white", "walk"])
@pytest.mark.parametrize("length", [3, 7, 12, 24])
def test_a_season_is_found_beside_noise_a_trend_and_missing_values(length, noise):
    found = [detect_seasons(seasonal(length, seed=seed, noise=noise)) for seed in range(20)]
    assert found.count((length,)) >= 19


@pytest.mark.parametrize("length", [7, 12])
def test_one_stream_will_do_if_it_is_long_enough(length):
    found = [detect_seasons(seasonal(length, streams=1, seed=seed, missing=0.0)) for seed in range(20)]
    assert found.count((length,)) >= 19


def test_a_day_and_a_week_are_two_seasons_and_a_week_twice_is_one():
    rng = np.random.default_rng(0)
    hours = np.arange(700)[:, None]
    day = 2.0 * np.sin(2 * np.pi * hours / 24)
    workday = np.where(hours // 24 % 7 < 5, 1.0, 0.3)
    noise = 0.3 * rng.standard_normal((700, 3))
    assert detect_seasons(day * workday + noise) == (24, 168)
    assert detect_seasons(day + noise) == (24,)
    assert detect_seasons(np.sin(2 * np.pi * hours / 14) ** 2 + 0.3 * noise) == (7,)


def false_alarms(response, rounds, streams):
    return sum(detect_seasons(without_season(response, rounds, streams, seed)) != () for seed in range(100))


RESPONSES = [0.0, 1.0, 0.5, 0.95, -0.5, -0.95]


@pytest.mark.parametrize("response", RESPONSES)
def test_noise_walks_and_swings_have_no_season(response):
    assert false_alarms(response, 50, 4) <= 2


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [20, 50, 100, 200])
@pytest.mark.parametrize("response", RESPONSES)
def test_noise_walks_and_swings_have_no_season_in_any_shape(response, rounds):
    for streams in (1, 4, 30):
        assert false_alarms(response, rounds, streams) <= 2


def test_streams_that_move_together_do_not_make_a_season():
    walks = np.random.default_rng(0).standard_normal((100, 100)).cumsum(axis=0)
    assert sum(detect_seasons(np.repeat(walk[:, None], 30, axis=1)) != () for walk in walks.T) <= 2


@given(
    st.integers(0, 20),
    st.floats(1e-3, 1e3) | st.floats(-1e3, -1e-3),
    st.floats(-100, 100),
    st.sampled_from([0, 5, 7, 12]),
)
def test_scale_and_shift_of_a_stream_change_nothing(seed, scale, shift, length):
    levels = seasonal(length, 80, seed=seed) if length else without_season(1.0, 80, 4, seed)
    moved = levels.copy()
    moved[:, 1] = scale * (levels[:, 1] + shift)
    assert detect_seasons(moved) == detect_seasons(levels)


@given(st.integers(0, 30), st.integers(0, 3), st.integers(0, 5))
def test_what_is_found_is_possible(rounds, streams, seed):
    levels = np.random.default_rng(seed).integers(0, 3, (rounds, streams)).astype(float)
    found = detect_seasons(levels)
    assert len(found) <= 2
    assert list(found) == sorted(set(found))
    assert all(2 <= length <= rounds // 3 for length in found)


@given(st.floats(-1e150, 1e150, allow_nan=False))
def test_streams_that_say_nothing_are_left_out(value):
    assume(abs(value) > 1e-150 or value == 0)
    levels = seasonal(7, 100)
    nothing = np.full((100, 2), value)
    nothing[:, 1] = np.nan
    assert detect_seasons(nothing) == ()
    assert detect_seasons(np.hstack([nothing, levels])) == (7,)
    assert detect_seasons(np.arange(100.0)[:, None] * value) == ()


def test_empty_tables_have_no_season():
    for shape in ((0, 0), (0, 3), (100, 0), (1, 1), (6, 2)):
        assert detect_seasons(np.zeros(shape)) == ()
        assert detect_seasons(np.full(shape, np.nan)) == ()


def test_a_season_is_found_without_noise_and_in_huge_or_tiny_values():
    for length in (2, 3, 7, 30):
        pattern = np.random.default_rng(0).standard_normal(length)
        levels = np.tile(pattern, 10)[:, None]
        assert detect_seasons(levels) == (length,)
        assert detect_seasons(1e150 * levels) == (length,)
        assert detect_seasons(1e-150 * levels) == (length,)


def test_real_seasons_are_those_of_the_calendar():
    walkers = embedded("melbourne-pedestrians").values
    assert detect_seasons(walkers[:200]) == (24,)
    assert detect_seasons(walkers[:504]) == detect_seasons(walkers[:3000]) == (24, 168)
    assert detect_seasons(embedded("us-employment").values[:100]) == (12,)
    assert detect_seasons(embedded("us-incomes").values) == ()
    assert detect_seasons(embedded("la-haute-borne").values[:400]) == ()
