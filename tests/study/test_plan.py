"""Plans: which windows, how they are drawn, which methods, and what can't be planned."""

import numpy as np
import pytest

import braided as bd
from braided.datasets import embedded, open_panel, wind_field
from braided.study import METHODS, find_method, plan_for
from braided.tables import Panel


@pytest.mark.parametrize("data", ["la-haute-borne", "synthetic"])
def test_windows_are_complete_apart_and_drawn_by_the_seed(data):
    panel = open_panel(data)
    starts = plan_for(panel).starts
    assert len(starts) == 30
    assert min(np.diff(np.sort(starts))) >= 400
    for start in starts:
        window = panel.values[start : start + 400]
        assert np.isfinite(window).all()
        assert len(set(np.diff(panel.times[start : start + 400]))) == 1
    assert starts == plan_for(panel).starts
    assert starts[:7] == plan_for(panel, windows=7).starts  # more windows keep the first ones
    assert starts != plan_for(panel, seed=1).starts


def test_windows_never_overlap_and_fewer_are_drawn_where_there_is_no_room():
    panel = wind_field(seed=0, steps=1700, sites=2)
    starts = plan_for(panel, windows=5).starts
    assert len(starts) == 4
    assert min(np.diff(np.sort(starts))) >= 400


def test_a_window_in_which_a_task_stands_still_is_not_drawn():
    panel = wind_field(seed=0, steps=1200, sites=2)
    values = panel.values.copy()
    values[450:800, 1] = 3.0
    still = Panel("still", panel.tasks, panel.times, values, "made up")
    for start in plan_for(still, windows=20).starts:
        for first, end in ((start + 10, start + 110), (start + 110, start + 180), (start + 180, start + 400)):
            assert (np.ptp(values[first - 1 : end], axis=0) > 0).all()


def test_short_data_get_windows_as_long_as_they_are():
    panel = wind_field(seed=0, steps=100, sites=3)
    plan = plan_for(panel, windows=1)
    assert (plan.length, plan.splits) == (100, {"I": 28, "II": 45})


def test_the_plan_of_the_incomes_tunes_on_25_and_40_rounds():
    plan = plan_for(embedded("us-incomes"))
    samples = bd.Lags(plan.lags).samples(np.log(embedded("us-incomes").values))
    assert [len(set(samples.between(0, train).steps.tolist())) for train in plan.splits.values()] == [25, 40]
    assert plan.starts == (0,)


def test_the_grids_are_those_of_the_paper():
    plan = plan_for(wind_field(seed=0, steps=500))
    sizes = {
        name: sum(1 for _ in METHODS[name].candidates(METHODS[name].stages[0], {}, plan.forgetting))
        for name in ("mt-wrls", "wrls", "mt-oslssvr", "oslssvr-linear")
    }
    assert sizes == {"mt-wrls": 6 * 11 * 3, "wrls": 6 * 11, "mt-oslssvr": 3 * 11 * 3, "oslssvr-linear": 3 * 11}
    assert sorted(plan.forgetting) == [0.01, 0.2, 0.4, 0.6, 0.8, 1.0]
    hidden = {
        c["hidden"]
        for stage in METHODS["mt-wrls-elm"].stages
        for c in METHODS["mt-wrls-elm"].candidates(stage, {}, plan.forgetting)
    }
    assert hidden == {10, 20, 50, 100}
    assert sum(method.paper for method in METHODS.values()) == 9


@pytest.mark.parametrize(
    ("wrong", "near"), [("mtwrls", "mt-wrls"), ("MT-WRLS", "mt-wrls"), ("wlrs", "wrls"), ("trac", "trace")]
)
def test_an_unknown_method_is_told_the_nearest(wrong, near):
    with pytest.raises(bd.InputError, match=f"unknown method '{wrong}': did you mean '{near}'"):
        find_method(wrong)


def test_what_cannot_be_planned_is_told():
    short = wind_field(seed=0, steps=39, sites=2)
    with pytest.raises(bd.InputError, match="evenly spaced stretch in which no task lacks a value has 39 steps"):
        plan_for(short)
    values = wind_field(seed=0, steps=300, sites=2).values.copy()
    values[::10, 0] = np.nan
    gaps = Panel("gaps", ("a", "b"), np.arange(300), values, "made up")
    with pytest.raises(bd.InputError, match=r"gaps: the longest evenly spaced stretch .* has 9 steps"):
        plan_for(gaps)
    still = Panel("still", ("a", "b"), np.arange(100), np.r_[values[:40, [1, 1]], np.ones((60, 2))], "made up")
    with pytest.raises(bd.InputError, match="still has no window of 100 complete steps"):
        plan_for(still)
    for wrong, message in (
        ({"windows": 0}, "windows is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"methods": ()}, "no methods"),
    ):
        with pytest.raises(bd.InputError, match=message):
            plan_for(wind_field(seed=0, steps=500, sites=2), **wrong)
