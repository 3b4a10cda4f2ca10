"""Model files of earlier versions load, and go on with the numbers that they gave then."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

import braided as bd
from braided.forecasting import Engine, LiveRounds, Trial
from braided.runs import Live, load_forecaster, load_live
from braided.state import dumps, loads
from tests.runs.tables import QUICK

FOLDER = Path(__file__).parents[1] / "files" / "version-2"
KEPT = json.loads((FOLDER / "numbers.json").read_text())
FILES = {path.name.split(".")[0]: path for path in sorted(FOLDER.glob("*.braided.gz"))}


def numbers_of(model):
    """What a learner or a forecaster gives: before and after some more samples."""
    rng = np.random.default_rng(7)
    if isinstance(model, bd.Learner):
        tasks = [model.tasks[place % len(model.tasks)] for place in range(8)]
        X, y, rounds = rng.normal(size=(8, model.n_features)), rng.normal(size=8), 1000 + np.arange(8) // 4
        before = model.predict_many(X, tasks)
        model.learn_many(X, y, tasks, rounds=rounds)
        return [*before, *model.predict_many(X, tasks)]
    before = model.ahead()
    stamps = model.last_stamp + model.preparation.clock.step * np.arange(1, 31)
    times = stamps.astype("datetime64[us]") if model.is_dated else stamps
    keys = [*model.tasks, "another"]
    extras = rng.normal(size=(30, len(keys), model.preparation.n_extras))
    made = model.advance(times, 1.0 + rng.uniform(size=(30, len(keys))), keys, extras)
    after = model.ahead()
    said = [*before.forecast, *before.low, *made.forecast[-5:], *after.forecast, *after.high]
    return [*said, *model.record.rmse.ravel()]


def unpacked(name):
    return gzip.decompress(FILES[name].read_bytes())


@pytest.mark.parametrize("name", KEPT)
def test_a_model_of_version_2_gives_the_numbers_of_then_also_when_it_is_saved_again(name):
    model = loads(unpacked(name))
    again = loads(dumps(model))
    made, kept = numbers_of(model), np.array(KEPT[name], np.float64)  # made on another machine, perhaps
    if not isinstance(model, bd.Learner) and model.needs_positive:  # its record, at the end, was of logarithms
        made, kept = made[: -model.record.rmse.size], kept[: -model.record.rmse.size]
    np.testing.assert_allclose(made, kept, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(numbers_of(again), numbers_of(loads(unpacked(name))))


def test_every_kind_of_learner_is_among_the_files():
    kinds = {type(loads(unpacked(name))).__name__ for name in FILES}
    assert kinds >= {name for name in bd.learners.__all__ if name not in ("Learner",)} | {"LearnerEngine", "LiveRounds"}


def test_what_version_2_remembered_of_a_run_is_its_origin(tmp_path):
    (tmp_path / "model").write_bytes(unpacked("forecaster-of-a-run"))
    forecaster = load_forecaster(tmp_path / "model")
    origin = forecaster.origin
    assert isinstance(forecaster, Engine)
    assert origin.source == "table.csv"
    assert (origin.columns.time, origin.columns.task, origin.columns.value) == ("timestamp", "site", "value")
    assert (origin.is_utc, origin.without, origin.live) == (False, ("site 4",), None)
    assert isinstance(origin.choice.best, Trial)
    assert origin.choice.best.method == "mt-wrls"
    assert origin.choice.tried > 0
    assert [trial.score is not None for trial in origin.choice.trials] == [True] * 2
    position = origin.position
    assert (position.tuning_rounds, position.tuning_streams, position.parts, position.is_finished) == (40, 3, 1, True)


def test_the_record_of_a_model_of_logarithms_begins_anew_in_the_units_of_the_values():
    model = loads(unpacked("forecaster-by-hand"))
    assert model.needs_positive
    assert not model.record.counts.any()
    assert not model.record.curve.any()
    np.testing.assert_allclose(model.record.scale, np.exp(model.units.centre) * model.units.scale)
    other = loads(unpacked("forecaster-of-a-run"))
    assert other.record.counts.all()
    np.testing.assert_array_equal(other.record.scale, other.units.scale)


def test_a_live_run_of_version_2_goes_on(tmp_path):
    held = loads(unpacked("live-warm-up"))
    assert isinstance(held, LiveRounds)
    assert held.columns.value == "value"
    live = Live(QUICK, held, warm_up=20)
    assert live.rounds == held.n_complete == 10
    (tmp_path / "model").write_bytes(unpacked("forecaster-live"))
    forecaster = load_live(tmp_path / "model")
    assert forecaster.origin.live.is_open
    live = Live(QUICK, forecaster)
    assert live.rounds == forecaster.rounds > 0
    assert forecaster.origin.live is None  # it is the run that holds it now


def test_the_end_of_the_tuning_period_of_version_2_is_kept():
    forecaster = loads(unpacked("forecaster-of-a-run"))
    position = forecaster.origin.position
    step = forecaster.preparation.clock.step
    assert position.tuning_end == forecaster.first_stamp + (position.tuning_rounds - 1) * step
