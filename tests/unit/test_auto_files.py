"""Saved engines of Auto: whatever a file holds that does not fit together is refused."""

import random
from dataclasses import replace

import numpy as np
import pytest

import braided as bd
from braided.forecasting import Clipping, Clock, Record
from braided.forecasting.auto import Auto, AutoEngine, Seasons
from braided.state import dumps, loads
from tests.auto import AHEAD, FEW, OWN, TIED, insist_sound, same, walks
from tests.model_files import parts_of, signed
from tests.soak.forged_files import change_array, change_leaf, change_number, move_subtree

TIMES, VALUES, TASKS = walks(240, 4, missing=0.05)
VALUES[:205, 3] = np.nan


def engine_after(rounds, compares=False):
    engine = AutoEngine(Auto(FEW.members, compares=compares))
    engine.advance(TIMES[:rounds], VALUES[:rounds], TASKS)
    return engine


def insist_refused(engine):
    with pytest.raises(bd.FileError, match="does not hold a valid model"):
        loads(dumps(engine))


@pytest.mark.parametrize("rounds", [0, 1, 3, 5, 19, 20, 60, 199, 200, 210, 240])
def test_what_is_saved_after_any_number_of_rounds_comes_back(rounds):
    engine = engine_after(rounds)
    again = loads(dumps(engine))
    assert dumps(again) == dumps(engine)
    assert repr(again) == repr(engine)
    rest = TIMES[rounds:], VALUES[rounds:], TASKS
    np.testing.assert_array_equal(again.advance(*rest).forecast, engine.advance(*rest).forecast)


@pytest.mark.parametrize("rounds", [0, 1, 5, 60, 240])
def test_further_columns_come_back(rounds):
    extras = np.stack([VALUES**2, np.roll(VALUES, 1, axis=0)], axis=2)
    engine = AutoEngine(FEW, n_extras=2)
    engine.advance(TIMES[:rounds], VALUES[:rounds], TASKS, extras[:rounds])
    again = loads(dumps(engine))
    assert dumps(again) == dumps(engine)
    rest = TIMES[rounds:], VALUES[rounds:], TASKS, extras[rounds:]
    np.testing.assert_array_equal(again.advance(*rest).forecast, engine.advance(*rest).forecast)


SPOILT = {  # what does not fit the rest
    "rounds of the head": lambda engine: setattr(engine, "rounds", 3),
    "more rounds than the head": lambda engine: setattr(engine, "rounds", 100),
    "a record of others": lambda engine: setattr(engine, "record", Record.blank(engine.record.scale)),
    "a record of fewer": lambda engine: setattr(engine, "record", Record.blank(np.ones(2), engine.record.contenders)),
    "no head": lambda engine: engine._head.parts.clear(),
    "a head that ends early": lambda engine: engine._head.parts.pop(),
    "no ensemble": lambda engine: setattr(engine, "ensemble", None),
    "no places": lambda engine: setattr(engine, "places", engine.places[:0]),
    "a place twice": lambda engine: engine.places.__setitem__(0, 1),
    "a place beyond": lambda engine: engine.places.__setitem__(0, 7),
    "nobody waits": lambda engine: engine._newcomers.values.clear(),
    "somebody waits who is in": lambda engine: engine._newcomers.values.update({0: np.empty(0)}),
    "no clock": lambda engine: setattr(engine, "_clock", None),
    "no time": lambda engine: setattr(engine, "last_stamp", -(2**63)),
    "last values": lambda engine: setattr(engine, "_last", engine._last[:1]),
    "an endless value": lambda engine: engine._last.__setitem__(0, np.inf),
    "silence": lambda engine: setattr(engine, "_quiet", engine._quiet - 10**6),
    "units of extras": lambda engine: setattr(engine._surroundings, "units", np.ones((2, 1))),
    "samples": lambda engine: setattr(engine, "_samples", -1),
    "a column twice": lambda engine: engine.columns.__setitem__(1, engine.columns[0]),
    "seasons": lambda engine: setattr(engine.ensemble, "seasons", Seasons((7.0,), 1)),
    "members": lambda engine: setattr(engine.ensemble, "members", (OWN,)),
    "members in another order": lambda engine: setattr(engine.ensemble, "members", (TIED, OWN)),
    "no members": lambda engine: setattr(engine.ensemble, "members", ()),
    "other features": lambda engine: setattr(
        engine.ensemble, "members", (replace(OWN, features=("level",)), engine.ensemble.members[1])
    ),
    "views": lambda engine: setattr(engine.ensemble, "views", 3 * engine.ensemble.views),
    "weights": lambda engine: setattr(
        engine.ensemble, "mixture", engine.ensemble.mixture._replace(regrets=np.zeros((3, 2, 2)))
    ),
    "no weight": lambda engine: engine.ensemble.mixture.prior.__setitem__(0, 0.0),
    "no error": lambda engine: engine.ensemble.mixture.errors.__setitem__((0, 0), -1.0),
    "positions": lambda engine: setattr(engine.ensemble, "positions", engine.ensemble.positions[:3]),
    "times of the head": lambda engine: engine._head.parts[0].stamps.__setitem__(0, 2**60),
    "no prior": lambda engine: engine.ensemble.mixture.prior.__setitem__(0, np.nan),
    "used": lambda engine: setattr(engine.ensemble, "used", engine.ensemble.used[:, :1]),
    "rounds of the ensemble": lambda engine: setattr(engine.ensemble, "rounds", -5),
    "panel": lambda engine: setattr(
        engine.ensemble.views[0], "panel", engine.ensemble.views[0].panel._replace(levels=np.zeros((3, 3)))
    ),
    "rounds of the panel": lambda engine: engine.ensemble.views[0].panel.totals.__setitem__(0, -1e9),
    "others of a stream": lambda engine: engine.ensemble.views[0].alike.__setitem__((0, 0), 9),
    "given": lambda engine: setattr(engine.ensemble.views[0], "n_given", (3, 0)),
    "sizes": lambda engine: setattr(engine.ensemble.views[0], "clipping", Clipping.blank(1, 1)),
}


def engine_ahead(rounds=60, horizon=3, auto=AHEAD):
    engine = AutoEngine(replace(auto, horizon=horizon))
    engine.advance(TIMES[:rounds], VALUES[:rounds], TASKS)
    return engine


def other(name):
    """A part of an engine that forecasts two rounds ahead."""
    return getattr(engine_ahead(horizon=2), name)


def with_horizons(change):
    """Spoil what forecasts later rounds."""
    return lambda engine: change(engine.ensemble.horizons)


SPOILT_AHEAD = {  # of an engine that forecasts three rounds ahead
    "the ensemble of a shorter horizon": lambda engine: setattr(engine, "ensemble", other("ensemble")),
    "the ensemble of the next round": lambda engine: setattr(engine, "ensemble", engine_after(60).ensemble),
    "pending forecasts of a shorter horizon": lambda engine: setattr(engine, "_pending", other("_pending")),
    "pending forecasts of more streams": lambda engine: engine._pending.meet(1),
    "endless pending forecasts": lambda engine: engine._pending.given.forecast.__setitem__((0, 0, 0), np.inf),
    "fewer intervals": lambda engine: engine._pending.spreads.pop(),
    "errors below 0": lambda engine: engine._pending.spreads[1].own.__setitem__((0, 0), -1.0),
    "volatility below 0": lambda engine: engine._pending.spreads[1].common.__setitem__(1, -1.0),
    "a multiple that is none": lambda engine: engine._pending.spreads[1].common.__setitem__(2, np.nan),
    "other quantiles": lambda engine: setattr(engine, "auto", replace(engine.auto, quantiles=(0.5,))),
    "a record of other levels": lambda engine: engine.record.expect((0.1,)),
    "records of other levels": lambda engine: engine.later_records[0].expect((0.1,)),
    "losses of fewer streams": lambda engine: setattr(engine.record, "losses", np.zeros((1, 2))),
    "records of fewer horizons": lambda engine: engine.later_records.pop(),
    "no records of horizons": lambda engine: setattr(engine, "later_records", None),
    "a longer horizon": lambda engine: setattr(engine, "auto", replace(engine.auto, horizon=4)),
    "no horizon": lambda engine: setattr(engine, "auto", replace(engine.auto, horizon=1)),
    "no followers": lambda engine: setattr(engine.ensemble.runners[0]["tied"], "followers", None),
    "fewer inputs of followers": lambda engine: setattr(
        engine.ensemble.runners[0]["tied"].followers, "inputs", np.zeros((1, 3, 8))
    ),
    "endless gains": lambda engine: engine.ensemble.runners[0]["tied"].followers.gains.__setitem__(0, np.inf),
    "no filters": with_horizons(lambda horizons: horizons.filters.pop("target")),
    "filters of other streams": with_horizons(
        lambda horizons: horizons.filters.update(
            target=horizons.filters["target"]._replace(weights=horizons.filters["target"].weights[:, :1])
        )
    ),
    "resets below 0": with_horizons(lambda horizons: horizons.filters["target"].resets.__setitem__(0, -1)),
    "fewer last inputs": with_horizons(lambda horizons: setattr(horizons, "X", horizons.X[:1])),
    "a phase beyond": with_horizons(lambda horizons: horizons.phases.__setitem__((0, 0), 99)),
    "no phases": with_horizons(lambda horizons: setattr(horizons, "phases", None)),
    "gaps as numbers": with_horizons(lambda horizons: setattr(horizons, "are_after_gap", np.zeros(3))),
    "no gaps": with_horizons(lambda horizons: setattr(horizons, "are_after_gap", None)),
    "fewer mixtures": with_horizons(lambda horizons: horizons.mixtures.pop()),
    "other weights": with_horizons(
        lambda horizons: horizons.mixtures.__setitem__(0, horizons.mixtures[0]._replace(prior=np.ones(2)))
    ),
    "fewer sizes": with_horizons(lambda horizons: horizons.clippings.pop()),
    "sizes of other features": with_horizons(lambda horizons: horizons.clippings.__setitem__(0, Clipping.blank(3, 1))),
    "means that are none": with_horizons(lambda horizons: horizons.means.__setitem__((0, 0, 0, 0), np.nan)),
}


@pytest.mark.parametrize("name", SPOILT_AHEAD)
def test_parts_of_later_rounds_that_do_not_fit_together_are_refused(name):
    engine = engine_ahead()
    SPOILT_AHEAD[name](engine)
    insist_refused(engine)


def test_the_ensemble_to_compare_with_forecasts_the_next_round_only():
    engine = engine_ahead(auto=replace(AHEAD, compares=True))
    assert loads(dumps(engine)).alone.horizons is None
    engine.alone = engine_ahead(auto=replace(AHEAD, sharing=False)).ensemble
    insist_refused(engine)


@pytest.mark.parametrize("rounds", [0, 1, 2, 5, 19, 20, 60, 200, 210])
def test_forecasts_of_later_rounds_come_back_after_any_number_of_rounds(rounds):
    engine = engine_ahead(rounds)
    again = loads(dumps(engine))
    assert dumps(again) == dumps(engine)
    rest = TIMES[rounds:], VALUES[rounds:], TASKS
    same(again.advance(*rest), engine.advance(*rest))


@pytest.mark.parametrize("name", SPOILT)
def test_parts_that_do_not_fit_together_are_refused(name):
    engine = engine_after(60)
    SPOILT[name](engine)
    insist_refused(engine)


@pytest.mark.parametrize("rounds", [60, 210])
def test_an_engine_that_compares_has_two_ensembles_of_the_same_streams(rounds):
    engine = engine_after(rounds, compares=True)
    assert engine.alone is not None
    engine.alone = None
    insist_refused(engine)
    engine.alone = engine_after(30).ensemble
    insist_refused(engine)
    engine = engine_after(rounds)
    engine.alone = engine.ensemble
    insist_refused(engine)


def test_after_the_first_rounds_none_are_kept_and_those_who_wait_have_few_values():
    engine = engine_after(210)
    engine._newcomers.values[3] = np.arange(30.0)
    insist_refused(engine)
    engine = engine_after(210)
    engine._newcomers.values[3] = np.full(9999, np.nan)
    insist_refused(engine)
    engine = engine_after(210)
    engine._clock = Clock(7, 7)
    assert loads(dumps(engine)).clock.step == 7  # a clock may be any


@pytest.mark.parametrize("rounds", [3, 60, 215])
@pytest.mark.parametrize("horizon", [1, 3])
def test_a_forged_file_is_refused_or_gives_an_engine_that_works(rounds, horizon):
    """The soak tests do the same with all kinds of models, for longer."""
    engine = AutoEngine(Auto((replace(OWN, looks_ahead=True),), horizon=horizon))
    engine.advance(TIMES[:rounds], VALUES[:rounds], TASKS)
    data, used = dumps(engine), 0
    for number in range(150):
        rng = random.Random(number)
        header, arrays = parts_of(data)
        rng.choice((change_number, change_leaf, change_array, move_subtree))(header, arrays, rng)
        with np.errstate(all="ignore"):
            try:
                again = loads(signed(header, arrays))
            except bd.FileError:
                continue
            if isinstance(again, AutoEngine):
                used += 1
                try:
                    again.ahead()
                    again.advance(TIMES[rounds:], VALUES[rounds:], TASKS)
                except bd.InputError:  # of times that are past, or columns that are gone
                    continue
    assert used > 5
    insist_sound(engine, engine.advance(TIMES[rounds:], VALUES[rounds:], TASKS))
