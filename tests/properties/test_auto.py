"""Auto looks at nothing that comes later, and the cuts between rounds leave no trace."""

from dataclasses import replace

import numpy as np
import pytest

from braided.forecasting.auto import Auto, AutoEngine
from braided.forecasting.auto.ensemble import Ensemble
from tests.auto import AHEAD, FULL, HEADS, OWN, STARTS, alone, in_pieces, late, same, utc, walks

ROUNDS = 260
LOOKED_AT = (3, 5, 19, 20, 21, 60, 100, 150, 200, 230)


@pytest.fixture
def seen(monkeypatch):
    """What every round of an engine is forecast with: weights, changes by all members, units, seasons, similarities."""
    known, advance = [], Ensemble.advance

    def watched(self, rounds, **given):
        made = advance(self, rounds, **given)
        if not given:  # else it learns the first rounds anew
            units, similarity = self.views[0].units, self.graph.similarity
            similarity = similarity.toarray() if self.graph.is_sparse else similarity
            measured = (units.centre, units.scale, similarity, np.array(self.seasons.lengths), self.views[0].alike)
            known.extend((*row, *measured) for row in zip(made.weights, made.members, made.forecast, strict=True))
        return made

    monkeypatch.setattr(Ensemble, "advance", watched)
    return known


def until(made, times, r):
    """The forecasts made before round r, by round, horizon and task, and the values before it."""
    rows = np.searchsorted(times, made.times).tolist(), made.horizons.tolist(), made.tasks
    each = zip(*rows, made.forecast, made.low, made.high, *made.quantiles.T, made.actual, strict=True)
    return {(i, h, task): (*ends, actual if i < r else None) for i, h, task, *ends, actual in each if i - h < r}


def insist_blind(auto, kind, rounds, seen):
    """Change all from some round on, append rows, and add a stream: nothing up to that round may move by a bit."""
    times, values, tasks = walks(ROUNDS, 4, missing=0.05, kind=kind)
    values, extras = late(values) + 50.0, np.cos(values)[:, :, None]  # so that all values are positive
    times = times.copy()
    times[40:] += 3
    times[130:] += 7
    whole, expected = AutoEngine(auto, n_extras=1).advance(times, values, tasks, extras), seen.copy()
    assert len(expected) == ROUNDS - HEADS[0]
    rng = np.random.default_rng(1)
    for r in rounds:
        end = min(next((head for head in HEADS if head > r), ROUNDS) + 8, ROUNDS)
        other, more = (np.insert(one[:end], 4, np.nan, axis=1) for one in (values, extras))
        other[r:], more[r:] = rng.normal(scale=1e3, size=other[r:].shape), rng.normal(size=more[r:].shape)
        seen.clear()
        made = until(AutoEngine(auto, n_extras=1).advance(times[:end], other, (*tasks, "new"), more), times, r)
        assert len(seen) == end - HEADS[0]
        for place, row in until(whole, times, r).items():
            assert place[0] >= end or place in made
            np.testing.assert_equal(made.get(place, row), row, f"{kind}, after {r} rounds, {place}")
        for a, b in zip(expected[: max(r + 1 - HEADS[0], 0)], seen, strict=False):
            for part, its_part in zip(a, b, strict=True):
                np.testing.assert_array_equal(part, its_part, f"{kind}, after {r} rounds")


@pytest.mark.parametrize("kind", STARTS)
def test_what_comes_later_moves_nothing(kind, seen):
    insist_blind(Auto(horizon=4, quantiles=(0.1, 0.9)), kind, LOOKED_AT, seen)


@pytest.mark.parametrize("member", FULL, ids=lambda member: member.name)
def test_no_member_looks_ahead(member, seen):
    insist_blind(alone(member, horizon=3), "hourly", LOOKED_AT, seen)


def test_the_first_rounds_alone_give_the_same():
    """Rows that are removed, rather than changed."""
    times, values, tasks = walks(ROUNDS, 4, missing=0.05)
    auto = Auto(horizon=3)
    whole = AutoEngine(auto).advance(times, late(values), tasks)
    for r in LOOKED_AT:
        made = until(AutoEngine(auto).advance(times[: r + 1], late(values)[: r + 1], tasks), times, r)
        expected = {place: row for place, row in until(whole, times, r).items() if place[0] <= r}
        np.testing.assert_equal(made, expected, str(r))


def by_days(rounds, **given):
    """Streams that come late, with missing values, on days."""
    times, values, tasks = walks(rounds, 5, missing=0.05, **given)
    return times, late(values), tasks


def cases():
    """Engines and their streams: of any sign, with further columns, on the clock of a zone, with any steps."""
    rng = np.random.default_rng(2)
    yield "negative values", lambda auto: AutoEngine(auto), by_days(ROUNDS), None
    times, values, tasks = by_days(ROUNDS)
    yield "positive values", lambda auto: AutoEngine(auto), (times, np.exp(0.1 * values), tasks), None
    extras = rng.normal(size=(*values.shape, 2))
    extras[rng.random(extras.shape) < 0.2] = np.nan
    yield "further columns", lambda auto: AutoEngine(auto, n_extras=2), (times, values, tasks), extras
    local = {"timezone": "Australia/Melbourne", "holidays": "AU-VIC"}
    times = np.datetime64("2024-04-05T00", "us") + np.arange(ROUNDS) * np.timedelta64(30, "m")  # an hour comes twice
    yield "an hour twice", lambda auto: utc(replace(auto, **local)), (times, values, tasks), None
    times = np.datetime64("2024-10-04T00", "us") + np.arange(ROUNDS) * np.timedelta64(30, "m")  # an hour is left out
    yield "an hour left out", lambda auto: utc(replace(auto, **local)), (times, values, tasks), None
    often = np.cumsum(np.resize([10, 10, 1, 2, 3, 4, 5], ROUNDS))  # many rounds in a season of four steps
    yield "steps of any length", lambda auto: AutoEngine(replace(auto, seasons=(4,))), (often, values, tasks), None
    times, values, tasks = walks(ROUNDS, 40, missing=0.05)
    values[:205, 37:] = np.nan
    yield "on a sparse graph", lambda auto: AutoEngine(replace(AHEAD, horizon=2)), (times, values, tasks), None
    yield "compared", lambda auto: AutoEngine(replace(auto, compares=True)), by_days(ROUNDS), None


CASES = {name: case for name, *case in cases()}


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_rounds_one_by_one_give_the_same_bits(case):
    make, streams, extras = case
    whole = make(AHEAD)
    expected = whole.advance(*streams, extras)
    cut, made = in_pieces(make(AHEAD), *streams, range(1, ROUNDS), extras)
    same(expected, made)
    same(whole.ahead(), cut.ahead())
    np.testing.assert_array_equal(whole.record.covered, cut.record.covered)
    np.testing.assert_allclose(whole.record.squares, cut.record.squares, rtol=1e-12)
    counters = ("rounds", "gaps", "irregular", "absent", "unforecast", "samples", "breakdowns")
    assert [getattr(whole, name) for name in counters] == [getattr(cut, name) for name in counters]


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_cut_anywhere_saved_and_loaded_it_goes_on_to_the_bit(case):
    make, streams, extras = case
    cuts = np.unique([1, 4, 5, 20, 200, *np.random.default_rng(3).integers(1, ROUNDS, 12)])
    whole = make(Auto(horizon=2))
    expected = whole.advance(*streams, extras)
    again, made = in_pieces(make(Auto(horizon=2)), *streams, cuts, extras, saves=True)
    same(expected, made)
    same(whole.ahead(), again.ahead())
    assert repr(whole) == repr(again)


def test_of_many_streams_less_is_measured_and_nothing_is_kept(monkeypatch):
    for module in ("engine", "ensemble"):
        monkeypatch.setattr(f"braided.forecasting.auto.{module}.MANY_STREAMS", 10)
    times, values, tasks = walks(ROUNDS, 12, missing=0.05)
    values[:150, 10], values[:210, 11] = np.nan, np.nan  # join one by one
    whole = AutoEngine(Auto())
    expected = whole.advance(times, values, tasks)
    assert whole.ensemble.n_learners < 10
    assert len(whole.places) == 12
    assert not whole._head.parts
    cut, made = in_pieces(AutoEngine(Auto()), times, values, tasks, range(1, ROUNDS, 3), saves=True)
    same(expected, made)
    same(whole.ahead(), cut.ahead())


def test_without_sharing_no_stream_moves_another():
    times, values, tasks = walks(ROUNDS, 3, missing=0.05)
    other = values.copy()
    other[:, 1:] = np.random.default_rng(4).normal(size=(ROUNDS, 2))
    auto = Auto(sharing=False)
    made = [AutoEngine(auto).advance(times, table, tasks) for table in (values, other)]
    one, two = (table.forecast[table.places == 0] for table in made)
    np.testing.assert_allclose(one, two, rtol=1e-9)
    assert not AutoEngine(Auto((OWN,), sharing=False)).shares
