"""Saved models with a Refit: what they hold is checked, and nothing but estimators is built."""

import sys

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import braided as bd
from braided.forecasting.auto import Auto, AutoEngine, Recipe
from braided.forecasting.auto.samples import Samples
from braided.state import dumps, loads
from tests.auto import OWN, same, walks
from tests.model_files import parts_of, signed

TIMES, VALUES, TASKS = walks(130, 3, missing=0.05)


def engine_after(estimator, rounds=60, **given):
    engine = AutoEngine(Auto((OWN, bd.Refit(estimator, every=50, name="fitted")), horizon=2), **given)
    engine.advance(TIMES[:rounds], VALUES[:rounds], TASKS)
    return engine


def insist_goes_on(estimator):
    """Insist that an engine goes on after loading as it would have without."""
    engine = engine_after(estimator, 110)
    again = loads(dumps(engine))
    assert again.auto == engine.auto
    assert dumps(again) == dumps(engine)
    same(again.ahead(), engine.ahead())
    same(again.advance(TIMES[110:], VALUES[110:], TASKS), engine.advance(TIMES[110:], VALUES[110:], TASKS))
    assert engine.breakdowns == again.breakdowns == 0


def test_randomized_models_go_on_after_loading_with_the_same_bits():
    insist_goes_on(make_pipeline(StandardScaler(), ExtraTreesRegressor(3, random_state=0)))


def test_lightgbm_goes_on_after_loading_with_the_same_bits():
    lightgbm = pytest.importorskip("lightgbm")
    settings = {"subsample": 0.8, "subsample_freq": 1, "deterministic": True, "n_jobs": 1, "verbosity": -1}
    insist_goes_on(lightgbm.LGBMRegressor(n_estimators=20, random_state=0, **settings))


@pytest.mark.parametrize(
    "estimator",
    [
        make_pipeline(SimpleImputer(missing_values=np.nan), Ridge(np.float64(2.0), random_state=np.int64(0))),
        TransformedTargetRegressor(Ridge(random_state=0), check_inverse=False),
        MLPRegressor(hidden_layer_sizes=(3, 4), random_state=0),
        MLPRegressor(hidden_layer_sizes=[3], random_state=0),
    ],
    ids=["pipeline", "nested", "tuple", "list"],
)
def test_a_recipe_comes_back_as_it_was(estimator):
    recipe = Recipe.of(estimator, "estimator")
    again = Recipe.restore(recipe.dump())
    assert repr(again) == repr(recipe)
    assert type(again.build()) is type(estimator)
    given, built = (one.get_params(deep=False) for one in (estimator, again.build()))
    assert [type(one) for one in built.values()] == [type(one) for one in given.values()]


@pytest.mark.parametrize(
    ("module", "name", "said"),
    [
        ("os", "system", "holds os.system, which is not an estimator"),
        ("subprocess", "Popen", "holds subprocess.Popen, which is not an estimator"),
        ("antigravity", "Ridge", "holds antigravity.Ridge, which is not known here: import the module"),
        ("sklearn.linear_model", "nothing", "holds sklearn.linear_model.nothing, which is not known here"),
        ("sklearn.base", "clone", "holds sklearn.base.clone, which is not an estimator"),
        ("sklearn.preprocessing", "Normalizer", "holds a Normalizer, which is not a regressor"),
        ("sklearn.nowhere", "Ridge", "needs sklearn.nowhere.Ridge; sklearn.nowhere is not installed"),
        (
            "catboost",
            "CatBoostRegressor",
            "needs catboost.CatBoostRegressor; catboost is not installed: pip install catb",
        ),
    ],
    ids=str,
)
def test_a_file_cannot_choose_what_is_built(module, name, said):
    header, arrays = parts_of(dumps(engine_after(Ridge(random_state=0))))

    def change(tree):
        if isinstance(tree, dict):
            if "class" in tree:
                tree |= {"module": module, "class": name, "parameters": {}}
            for one in tree.values():
                change(one)
        elif isinstance(tree, list):
            for one in tree:
                change(one)

    change(header)
    with pytest.raises(bd.FileError, match=said):
        loads(signed(header, arrays))
    assert "antigravity" not in sys.modules


def test_a_missing_package_is_named_with_how_to_install_it(monkeypatch):
    data = dumps(engine_after(Ridge(random_state=0)))
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    with pytest.raises(bd.FileError, match="is not installed: pip install scikit-learn"):
        loads(data)


def test_a_class_that_cannot_be_found_again_is_not_saved():
    class Local(RegressorMixin, BaseEstimator):
        def fit(self, X, y):
            return self

        def predict(self, X):
            return np.zeros(len(X))

    with pytest.raises(bd.FileError, match="can't be found again by its name: define the class in a module"):
        dumps(engine_after(Local()))


def _doubled(parts):
    whole = Samples.joined(parts)
    return whole._replace(X=whole.X.astype(np.float64))


SPOILT = {
    "other streams": lambda runner: setattr(runner, "parts", [part.with_stream() for part in runner.parts]),
    "no rounds": lambda runner: runner.parts.clear(),
    "fewer rounds": lambda runner: setattr(runner, "parts", [part.part(1) for part in runner.parts]),
    "rounds left out": lambda runner: setattr(runner, "first", 3),
    "a fit to come": lambda runner: broken_since(runner, 100),
    "a fit that was not due": lambda runner: broken_since(runner, 21),
    "models of other horizons": lambda runner: setattr(runner, "is_broken", np.zeros(3, np.bool_)),
    "double precision": lambda runner: setattr(runner, "parts", [_doubled(runner.parts)]),
}


def broken_since(runner, fitted):
    """Say that models broke down after a fit; only then is it saved which."""
    runner.fitted, runner.is_broken = fitted, np.ones_like(runner.is_broken)


@pytest.mark.parametrize("name", SPOILT)
def test_rounds_that_do_not_fit_the_models_are_refused(name):
    engine = engine_after(Ridge(random_state=0))
    SPOILT[name](engine.ensemble.runners[0]["fitted"])
    with pytest.raises(bd.FileError, match="does not hold a valid model"):
        loads(dumps(engine))


def test_a_forecaster_is_saved_and_loaded(tmp_path):
    forecaster = bd.Forecaster(members=[bd.Defaults(), bd.Refit(Ridge(random_state=0))], horizon=2)
    forecaster.update(TIMES[:60], VALUES[:60], TASKS)
    forecaster.save(tmp_path / "model.braided")
    again = bd.Forecaster.load(tmp_path / "model.braided")
    same(again.forecast(), forecaster.forecast())
