"""Batches cut in two: nothing is lost, and the clock goes on."""

import numpy as np
import pytest

from braided._compiled.batch import NO_ROUND, Batch, Clock

LABELS = np.array([3, 3, 4, 4, 4, 7])


def batch():
    rng = np.random.default_rng(0)
    opens = np.array([True, False, True, False, False, True])
    columns = rng.normal(size=(6, 2)), rng.normal(size=6), np.arange(6) % 3, np.linspace(0.5, 2.0, 6)
    return Batch(*columns, np.array([2, 5, 6]), opens, LABELS, 1)


@pytest.mark.parametrize("done", [0, 2, 5, 6])
def test_two_parts_make_the_whole(done):
    whole = batch()
    before, after = whole.before(done), whole.after(done)
    for name in ("X", "y", "tasks", "weights", "opens", "labels"):
        parts = getattr(before, name), getattr(after, name)
        np.testing.assert_array_equal(np.concatenate(parts), getattr(whole, name))
    np.testing.assert_array_equal(np.append(before.ends, after.ends + done), whole.ends)
    assert before.last == 1
    assert after.last == (LABELS[done - 1] if done else 1)


def test_a_group_that_is_cut_ends_at_the_cut():
    assert batch().before(3).ends.tolist() == [2, 3]


def test_the_clock_has_the_rounds_of_the_samples():
    opens, labels, last = batch().clock
    assert opens.tolist() == [True, False, True, False, False, True]
    assert labels.tolist() == LABELS.tolist()
    assert last == 1
    assert Clock.of_one(True) == (np.array([True]), np.array([NO_ROUND]), NO_ROUND)
