"""Streams, members and checks that tests of Auto share."""

from dataclasses import replace

import numpy as np

from braided.forecasting import Origin, joined
from braided.forecasting.auto import Auto, AutoEngine, Linear, default_members
from braided.state import dumps, loads

OWN = Linear("own past", "separate", ("bias", "recent", "level", "known"), 10.0)
TIED = Linear("tied", "tied", ("bias", "recent", "level", "near", "mean", "seasons", "phases", "known"))
FEW = Auto((OWN, TIED))  # of the members, so that tests are quick
AHEAD = Auto(tuple(replace(member, looks_ahead=True) for member in FEW.members), horizon=6)
HEADS = (5, 20, 100, 200)
FULL = default_members(n_seasons=2, is_short=True, n_alike=3, are_few=True, are_many=False)
STARTS = {  # the first time, and the step
    "hourly": ("2024-03-28T00", "h"),
    "daily": ("2024-01-01", "D"),
    "monthly": ("1990-01", "M"),
    "integers": (1, None),
}


def times_of(kind, rounds):
    """Times of a kind, as an array."""
    first, step = STARTS[kind]
    return first + np.arange(rounds) if step is None else np.datetime64(first, step) + np.arange(rounds)


def walks(rounds=260, streams=3, seed=0, missing=0.0, kind="daily"):
    """Related streams with a season of seven rounds: times, values and names."""
    rng = np.random.default_rng(seed)
    season = np.sin(2.0 * np.pi * np.arange(rounds) / 7.0)[:, None] * rng.uniform(0.0, 2.0, streams)
    values = 5.0 + season + (rng.normal(size=(rounds, 1)) + rng.normal(size=(rounds, streams))).cumsum(axis=0)
    values[rng.random(values.shape) < missing] = np.nan
    return times_of(kind, rounds), values, tuple(f"s{k}" for k in range(streams))


def late(values):
    """The values, of which a third stream comes late, and those after it later."""
    values = values.copy()
    values[:30, 2] = np.nan
    values[:210, 3:] = np.nan
    return values


def alone(member, horizon=1):
    """Auto with one of the default members, which looks ahead if it can, and with what it follows."""
    named = {one.name: one for one in FULL}
    can_look = not (member.by or member.after or member.is_scaled or member.on != "plain")
    members = (replace(member, looks_ahead=can_look),)
    while members[0].after:
        members = (named[members[0].after], *members)
    return Auto(members, horizon=horizon)


def same(one, other):
    """Insist that forecasts are the same to the bit."""
    assert one.tasks == other.tasks
    for name in ("times", "horizons", "actual", "forecast", "low", "high", "quantiles"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)


def in_pieces(engine, times, values, tasks, cuts, extras=None, saves=False):
    """Advance an engine in pieces, saved and loaded in between if it `saves`; return it and its forecasts."""
    made = []
    for part in np.split(np.arange(len(times)), cuts):
        more = None if extras is None else extras[part]
        made.append(engine.advance(times[part], values[part], tasks, more))
        engine = loads(dumps(engine)) if saves else engine
    return engine, joined(made)


def utc(auto, **given):
    """An engine whose times are in UTC."""
    return AutoEngine(auto, origin=Origin(is_utc=True), **given)


def insist_sound(engine, made):
    """Insist that forecasts are finite, and ahead for every stream with a value; intervals are around them, or NaN."""
    assert np.isfinite(made.forecast).all()
    ahead = engine.ahead()
    assert {*ahead.tasks} == {task for task, last in zip(engine.tasks, engine._last, strict=True) if last == last}
    for one in (made, ahead):
        assert np.isfinite(one.forecast).all()
        known = ~np.isnan(one.low)
        np.testing.assert_array_equal(known, ~np.isnan(one.high))
        assert (one.low[known] <= one.forecast[known]).all()
        assert (one.forecast[known] <= one.high[known]).all()
        assert np.isfinite(one.low[known]).all()
        assert np.isfinite(one.high[known]).all()
        assert np.isfinite(one.quantiles[known]).all()
        assert (np.diff(one.quantiles[known], axis=1) >= 0.0).all()
    assert np.isfinite(engine.record.squares).all()
    assert np.isfinite(engine.record.curve).all()
    repr(engine)
