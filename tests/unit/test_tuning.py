"""The one search: all of a grid, or by halving."""

import pytest

from braided.forecasting import Trial
from braided.methods import Method
from braided.tuning import Tuner

GRID = {"penalty": tuple(float(k) for k in range(1, 61))}
METHOD = Method("made here", "", "", print, (GRID, {"width": (1.0, 2.0)}))


def attempted(ran, best=37.0):
    """Trials whose score grows with the distance from the best penalty; the wider the worse."""

    def attempt(pool, rounds):
        ran.append((len(pool), rounds))
        scores = (abs(one["penalty"] - best) + one.get("width", 0.0) for one in pool)
        return [Trial("made here", one, rounds, score) for one, score in zip(pool, scores, strict=True)]

    return attempt


def test_a_grid_is_searched_in_full_stage_by_stage():
    ran, tuner = [], Tuner((1.0,), 900)
    best = tuner.tune(METHOD, attempted(ran))
    assert best.parameters == {"penalty": 37.0}  # no width is better than none
    assert ran == [(60, 900), (2, 900)]
    assert tuner.n_trials(METHOD) == 62


def test_halving_gives_a_third_of_the_candidates_three_times_as_many_rounds():
    ran, tuner = [], Tuner((1.0,), 900, "halving")
    best = tuner.tune(METHOD, attempted(ran), {"level": 1.0})
    assert best.parameters == {"penalty": 37.0, "level": 1.0}
    assert ran == [(60, 100), (20, 300), (7, 900), (2, 900)]
    assert sum(candidates for candidates, _ in ran) == tuner.n_trials(METHOD)
    assert Tuner((1.0,), 299, "halving").pieces(60) == [(60, 299)]  # a third would be too short


@pytest.mark.parametrize("how", ["grid", "halving"])
def test_where_every_candidate_breaks_down_none_is_chosen(how):
    best = Tuner((1.0,), 900, how).tune(METHOD, lambda pool, rounds: [Trial("x", one, rounds) for one in pool])
    assert (best.parameters, best.score) == ({}, None)


def test_the_first_of_equals_wins():
    best = Tuner((1.0,), 900).tune(METHOD, lambda pool, rounds: [Trial("x", one, rounds, 0.5) for one in pool])
    assert best.parameters == {"penalty": 1.0}


def test_five_finalists_are_enough_for_another_piece():
    tuner = Tuner((1.0,), 900, "halving")
    assert tuner.pieces(15) == [(15, 300), (5, 900)]
    assert tuner.pieces(14) == [(14, 900)]
