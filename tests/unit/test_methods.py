"""Named methods: custom ones are known wherever a name is, also in worker processes."""

from functools import partial

import numpy as np
import pytest

import braided as bd
from braided.methods import METHODS, Inputs, Method, find_method, register
from braided.runs import Settings, choose, run_in_memory
from braided.runs.table import read_tuning_period
from braided.study import plan_for, run_study
from braided.tables import open_rounds
from tests.runs.tables import field

GRID = {"penalty": (1.0, 10.0), "ridge": (0.1, 1.0)}


def averaged(graph, n_features, penalty):
    """A learner for methods made here."""
    return bd.MTWRLS(graph, n_features, penalty)


@pytest.fixture
def mine():
    method = Method("mine", "Mine", "made in a test", averaged, (GRID,), Inputs(neighbours=True))
    register(method)
    yield method
    del METHODS["mine"]


@pytest.mark.slow
def test_a_method_that_is_registered_is_tuned_in_other_processes(mine):
    settings, rounds = Settings(("mine",), lags=3), partial(open_rounds, field(steps=300))
    one, two = (choose(read_tuning_period(rounds(), settings), settings, jobs) for jobs in (1, 2))
    assert one == two
    assert one.best.method == "mine"
    forecaster, made = run_in_memory(field(steps=300), settings)
    assert forecaster.origin.choice == one
    assert np.isfinite(made.forecast).all()


def test_a_method_that_is_registered_is_studied_in_other_processes(mine, tmp_path):
    panel = bd.datasets.wind_field(seed=1, steps=1300, sites=3)
    plan = plan_for(panel, windows=2, methods=("mine", "no-change"))
    found = [run_study(plan, panel, tmp_path / str(jobs), jobs).read("scores")["rmse"] for jobs in (1, 2)]
    np.testing.assert_array_equal(*found)
    assert find_method("mine") is mine


def test_a_function_that_can_not_be_imported_works_as_well(tmp_path):
    register(Method("local", "Local", "made in a test", lambda graph, d, penalty: bd.WRLS(graph, d, penalty), (GRID,)))
    try:
        settings = Settings(("local",), lags=3)
        period = read_tuning_period(open_rounds(field(steps=300)), settings)
        assert choose(period, settings, jobs=2) == choose(period, settings, jobs=1)
    finally:
        del METHODS["local"]


@pytest.mark.parametrize("name", ["mt-oslssvr", "oslssvr"])
def test_the_choice_among_kernel_methods_does_not_depend_on_the_number_of_processes(name):
    settings = Settings((name,), lags=3, how="halving")
    period = read_tuning_period(open_rounds(field(steps=300)), settings)
    assert choose(period, settings, jobs=2) == choose(period, settings, jobs=1)


@pytest.mark.parametrize(
    ("method", "said"),
    [
        ("mine", "is a str: give a braided.methods.Method"),
        (Method("wrls", "", "", averaged), "there is a method 'wrls' already"),
        (Method("a,b", "", "", averaged), "the name of a method is 'a,b'"),
        (Method("", "", "", averaged), "the name of a method is ''"),
        (Method("x", "", ""), "x has not one of make, naive and forecaster"),
        (Method("x", "", "", averaged, naive=averaged), "x has not one of make, naive and forecaster"),
        (Method("x", "", "", averaged, stages={"penalty": (1.0,)}), "x: stages is .*: give a tuple of grids"),
        (Method("x", "", "", averaged, ({"penalty": [1.0]},)), r"the grid of penalty is \[1.0\]"),
        (Method("x", "", "", averaged, ({"penalty": ()},)), r"the grid of penalty is \(\)"),
        (Method("x", "", "", averaged, ({"penalty": (np.nan,)},)), "x: penalty is nan: it must be finite"),
        (Method("x", "", "", averaged, every=0), "every is 0"),
    ],
)
def test_a_method_that_can_not_be_used_is_refused(method, said):
    known = dict(METHODS)
    with pytest.raises(bd.InputError, match=said):
        register(method)
    assert known == METHODS
