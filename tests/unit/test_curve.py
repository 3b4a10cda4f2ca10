"""Curve: sums over time in few bins, however rounds are cut."""

import numpy as np
import pytest

import braided as bd
from braided.forecasting import Curve, Record
from braided.forecasting.curve import BINS
from braided.state import dumps, loads
from tests.model_files import parts_of, signed
from tests.unit.test_any_engine import learned


@pytest.mark.parametrize("cuts", [(1,), (7, 511, 512, 513), tuple(range(0, 3000, 37))])
def test_cutting_rounds_changes_no_sum(cuts):
    rng = np.random.default_rng(0)
    rounds, rows = np.sort(rng.integers(0, 3000, 5000)), rng.uniform(size=(5000, 3))
    whole, cut = Curve.blank(3), Curve.blank(3)
    whole.add(rows, rounds, 3000)
    for first, end in zip((0, *cuts), (*cuts, 3000), strict=True):
        there = (rounds >= first) & (rounds < end)
        cut.add(rows[there], rounds[there] - first, end - first)
    assert (whole.width, whole.rounds) == (cut.width, cut.rounds) == (8, 3000)
    np.testing.assert_allclose(whole.sums, cut.sums, rtol=1e-12)
    np.testing.assert_allclose(whole.sums.sum(axis=0), rows.sum(axis=0))


@pytest.mark.parametrize("rounds", [0, 1, 511, 512, 513, 1025, 10_000])
def test_bins_in_use_end_with_the_last_round(rounds):
    curve = Curve.blank(1)
    curve.add(np.ones((rounds, 1)), np.arange(rounds), rounds)
    assert len(curve.ends) <= BINS
    np.testing.assert_array_equal(np.diff(curve.ends, prepend=0), curve.sums[: len(curve.ends), 0])
    assert not curve.sums[len(curve.ends) :].any()
    assert rounds == (curve.ends[-1] if rounds else 0)


@pytest.mark.parametrize(("width", "rounds"), [(0, 0), (1, BINS + 1), (2, -1), (2.0, 1)])
def test_a_curve_that_can_not_be_is_refused(width, rounds):
    with pytest.raises(bd.InputError):
        Curve(np.zeros((BINS, 1)), width, rounds)
    with pytest.raises(bd.InputError, match="curve is"):
        Curve(np.zeros(BINS))


def test_a_record_that_was_saved_without_a_curve_of_its_own_loads():
    engine, _, _ = learned()
    header, arrays = parts_of(dumps(engine))
    held = header["model"]["forecaster"]["dict"]["state"]["dict"]["record"]["value"]["dict"]
    curve = held.pop("over_time")["value"]["dict"]
    fields = [*held.items()]
    fields[4:4] = [("curve", curve["sums"]), ("width", curve["width"]), ("rounds", curve["rounds"])]  # in this order
    held.clear()
    held.update(fields)
    assert dumps(loads(signed(header, arrays))) == dumps(engine)


def test_a_record_with_the_curve_of_other_contenders_is_refused():
    with pytest.raises(bd.InputError, match="curve is"):
        Record(np.zeros(1), np.zeros((1, 4)), np.zeros(1), np.zeros(1), Curve.blank(3))
    with pytest.raises(bd.InputError, match="over_time"):
        Record(np.zeros(1), np.zeros((1, 4)), np.zeros(1), np.zeros(1), np.zeros((BINS, 5)))
