"""Estimators of other packages as recipes: a class and its parameters, from which fresh ones are built.

A recipe is plain data, so it can be compared, and saved without pickle. An estimator that it was taken from is never
fitted or changed.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from numbers import Integral, Real
from typing import Any, Self, final

from braided.errors import FileError, InputError

IMPORTED_PACKAGES = ("catboost", "lightgbm", "sklearn", "xgboost")  # for a saved model; others must be there
DEEPEST = 20  # estimators in estimators
METHODS = ("fit", "predict", "get_params")


@final
@dataclass(frozen=True)
class Recipe:
    """How to build an estimator."""

    kind: type
    parameters: Mapping[str, Any]  # None, bool, int, float, str, lists and tuples of these, other recipes

    def __post_init__(self) -> None:
        if self.parameters.get("memory") is not None:
            raise InputError(
                f"memory of {self.kind.__name__} is {self.parameters['memory']!r:.80}: leave it out, as a cache on "
                "disk is read with pickle"
            )

    @classmethod
    def of(cls, estimator: Any, name: str) -> Self:
        """Return the recipe of a regressor; refuse one whose forecasts could not be repeated. `name` is for messages.

        >>> class Mean:
        ...     def get_params(self, deep=True): return {"shrink": 0.5}
        ...     def fit(self, X, y): ...
        ...     def predict(self, X): ...
        >>> Recipe.of(Mean(), "estimator").parameters
        {'shrink': 0.5}
        """
        missing = [method for method in METHODS if not callable(getattr(estimator, method, None))]
        if missing or isinstance(estimator, type):
            given = f"the class {estimator.__name__}" if isinstance(estimator, type) else f"{estimator!r:.80}"
            raise InputError(f"{name} is {given}: give an estimator, such as LGBMRegressor(random_state=0)")
        for place, value in estimator.get_params(deep=True).items():
            if place.split("__")[-1] == "random_state" and value is None:
                raise InputError(
                    f"{place} of {name} is None: give random_state=0, so that a saved model forecasts the same after "
                    "loading"
                )
        return cls._of(estimator, name, 0)

    @classmethod
    def _of(cls, estimator: Any, name: str, depth: int) -> Self:
        if depth > DEEPEST:
            raise InputError(f"{name} is nested more than {DEEPEST} deep")
        given = estimator.get_params(deep=False)
        return cls(type(estimator), {key: cls._plain(one, f"{key} of {name}", depth) for key, one in given.items()})

    @classmethod
    def _plain(cls, value: Any, name: str, depth: int) -> Any:
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, Integral):  # those of NumPy, too
            return int(value)
        if isinstance(value, Real):
            return float(value)
        if type(value) in (list, tuple):
            return type(value)(cls._plain(one, f"an item of {name}", depth) for one in value)
        if callable(getattr(value, "get_params", None)) and not isinstance(value, type):
            return cls._of(value, name, depth + 1)
        raise InputError(
            f"{name} is a {type(value).__name__}, which can't be saved: give None, a number, a string, a list of "
            "these or an estimator"
        )

    def build(self) -> Any:
        """Return a fresh estimator."""
        return self.kind(**{name: _built(value) for name, value in self.parameters.items()})

    # Saving --------------------------------------------------------------------------------------------------------

    def dump(self) -> dict[str, Any]:
        """Return the recipe as JSON; raise FileError if the class can't be found again by its name."""
        module, name = self.kind.__module__, self.kind.__qualname__
        if not name.isidentifier() or getattr(sys.modules.get(module), name, None) is not self.kind:
            raise FileError(f"{module}.{name} can't be found again by its name: define the class in a module")
        return {"module": module, "class": name, "parameters": {k: _dumped(one) for k, one in self.parameters.items()}}

    @classmethod
    def restore(cls, dumped: Mapping[str, Any]) -> Self:
        """Return the recipe that was dumped; refuse classes that are not regressors of scikit-learn's kind."""
        recipe = cls._restored(dumped)
        from sklearn.base import is_regressor

        if not is_regressor(recipe.build()):
            raise FileError(f"holds a {recipe.kind.__name__}, which is not a regressor")
        return recipe

    @classmethod
    def _restored(cls, dumped: Mapping[str, Any]) -> Self:
        kind = _estimator_class(dumped["module"], dumped["class"])
        return cls(kind, {name: _restored(value) for name, value in dumped["parameters"].items()})


def _built(value: Any) -> Any:
    if isinstance(value, Recipe):
        return value.build()
    return type(value)(map(_built, value)) if type(value) in (list, tuple) else value


def _dumped(value: Any) -> Any:
    if isinstance(value, Recipe):
        return {"estimator": value.dump()}
    if type(value) in (list, tuple):
        return {type(value).__name__: [_dumped(one) for one in value]}
    return {"float": str(value)} if isinstance(value, float) and not math.isfinite(value) else value


def _restored(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, held),) = value.items()
    if kind == "estimator":
        return Recipe._restored(held)
    if kind == "float":
        return float(held)
    items = {"list": list, "tuple": tuple}[kind]
    return items(_restored(one) for one in held)


def _estimator_class(module: str, name: str) -> type:
    """Return a class of a module by its name; refuse anything but estimators.

    A module that is not loaded is imported only if it belongs to one of `IMPORTED_PACKAGES`: a file must not choose
    what code runs.
    """
    package = str(module).split(".")[0]
    try:
        from sklearn.base import BaseEstimator

        found = import_module(module) if package in IMPORTED_PACKAGES else sys.modules.get(module)
    except ImportError as error:
        missing = str(error.name).split(".")[0].replace("sklearn", "scikit-learn")
        raise FileError(f"needs {module}.{name}; {error.name} is not installed: pip install {missing}") from error
    kind = getattr(found, name, None)
    if kind is None:
        raise FileError(f"holds {module}.{name}, which is not known here: import the module that defines it first")
    if not isinstance(kind, type) or not issubclass(kind, BaseEstimator):
        raise FileError(f"holds {module}.{name}, which is not an estimator: its class must be a BaseEstimator")
    return kind
