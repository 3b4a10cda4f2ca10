"""Refit: any regressor as a member, refitted periodically on the last rounds; one model per horizon, for all streams.

It is fitted before rounds 20, 25, 31, 38, … (each number a quarter larger), and from round `every` on before each
multiple of it. So a forecast depends on the number of its round, and not on how rounds are cut into calls. A fit is
made once a forecast needs it, on the rounds before the one at which it was due.

>>> import braided as bd
>>> class Nearest:
...     "The change after the most similar inputs."
...     def get_params(self, deep=True): return {}
...     def fit(self, X, y): self.X, self.y = X, y
...     def predict(self, X): return self.y[((X[:, None] - self.X) ** 2).sum(axis=2).argmin(axis=1)]
>>> panel = bd.datasets.wind_field(seed=0, steps=100, sites=3)     # synthetic
>>> forecaster = bd.Forecaster(members=[bd.Defaults(), bd.Refit(Nearest())], horizon=2)
>>> made = forecaster.update(panel.times, panel.values, panel.tasks)
>>> "refit Nearest" in forecaster.record.contenders
True
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self, final

import numpy as np

from braided._compiled.targets import FAR_FEATURES
from braided.errors import InputError
from braided.forecasting.auto.estimators import Recipe
from braided.forecasting.auto.fits import fitted, forecasts_of
from braided.forecasting.auto.members import MEAN, NEAR, OWN, Member, Rounds, Runner, Start
from braided.forecasting.auto.samples import Samples, in_single_precision
from braided.graph import TaskGraph, TaskKey
from braided.types import Floats
from braided.validate import LARGEST_COUNT, count, insist_kinds

FEATURES = (*OWN, *NEAR, *MEAN, "seasons", "phases", "known", "waves")  # and "planned"
REFIT_PRIOR = 0.2  # of all weight, as much as "no change" has; with less, a short history ends before it is trusted
FIRST_FIT, FIT_FACTOR = 20, 1.25  # the round of the first fit, and by what the rounds of later ones grow
LEAST_SAMPLES = 20
LARGEST_INPUT = 1e6  # in units, so that regressors in single precision can take it


@final
@dataclass(frozen=True, init=False)
class Refit(Member):
    """A regressor of scikit-learn's kind, such as LGBMRegressor(random_state=0).

    Parameters
    ----------
    estimator
        What to fit; only copies of it are fitted. Its parameters must be plain, and each random_state a number.
    every
        How many rounds to wait between fits; fewer in the first rounds.
    window
        How many rounds to learn from; memory and the size of a saved model grow with it.
    name
        By default "refit" and the name of the class.
    """

    name: str
    estimator: Recipe
    every: int
    window: int
    is_robust: bool

    def __init__(
        self, estimator: Any, every: int = 500, window: int = 5_000, name: str = "", is_robust: bool = True
    ) -> None:
        recipe = estimator if isinstance(estimator, Recipe) else Recipe.of(estimator, "estimator")
        fields = {"name": name or f"refit {recipe.kind.__name__}", "estimator": recipe, "is_robust": is_robust}
        fields |= {"every": count(every, "every"), "window": count(window, "window", least=FIRST_FIT)}
        for field, value in fields.items():
            object.__setattr__(self, field, value)
        insist_kinds(self, name=str, is_robust=bool)

    @property
    def prior(self) -> float:
        """The weight at the start."""
        return REFIT_PRIOR

    def plain(self) -> Self:
        """Return the member that is fitted to changes in full, without clipping."""
        return replace(self, is_robust=False)

    def start(self, start: Start) -> RefitRunner:
        """Return the member at work, before the first round."""
        return RefitRunner(self, start)

    def last_fit(self, number: int) -> int:
        """Return the round before which the model that forecasts this round is fitted; 0 before the first fit.

        >>> one = Refit(Recipe(object, {}), every=100)
        >>> [one.last_fit(number) for number in (19, 20, 24, 25, 99, 100, 199, 260)]
        [0, 20, 20, 25, 90, 100, 100, 200]
        """
        if number < FIRST_FIT:
            return 0
        if number >= self.every:
            return max(number - number % self.every, FIRST_FIT)
        due = FIRST_FIT
        while (later := int(due * FIT_FACTOR)) <= number:
            due = later
        return due


@final
class RefitRunner(Runner):
    """The models, and the rounds that they are fitted on."""

    def __init__(self, member: Refit, start: Start) -> None:
        self.member, self.horizon, self.is_robust = member, start.horizon, member.is_robust
        self.columns, self.planned = start.columns(*FEATURES), start.columns("planned")
        self.n_streams = start.graph.n_tasks
        self.parts: list[Samples] = []
        self.first = self.rounds = 0  # the number of the first round kept, and of the next one
        self.fitted = 0  # the round before which the models were fitted
        self.models: list[Any] = [None] * start.horizon
        self.is_tried, self.is_broken = np.zeros((2, start.horizon), np.bool_)  # since then

    @property
    def n_features(self) -> int:
        """The number of features of the next round that are kept."""
        return len(self.columns) + 1 + len(self.planned)

    @property
    def looks_ahead(self) -> bool:
        """Whether later rounds are forecast at all."""
        return self.horizon > 1

    # Rounds --------------------------------------------------------------------------------------------------------

    def forecast(self, rounds: Rounds) -> Floats:
        """Forecast one round."""
        return self._forecasts(rounds.first, self._samples(rounds, None), range(1), learns=False)[0]

    def forecast_ahead(self, rounds: Rounds) -> Floats:
        """Forecast the rounds after the next."""
        return self._forecasts(rounds.first, self._samples(rounds, None), range(1, self.horizon), learns=False)

    def learn(self, rounds: Rounds) -> None:
        """Keep one round."""
        self.progressive(rounds)

    def progressive(self, rounds: Rounds) -> Floats:
        """Forecast each round, then keep it."""
        return self._progressive(rounds, np.empty((0, *rounds.y.shape)))[0]

    def progressive_ahead(self, rounds: Rounds, changes: Floats) -> tuple[Floats, Floats]:
        """Forecast each round and later ones, then keep it with the changes that came."""
        made = self._progressive(rounds, changes)
        return made[0], made[1:]

    def _progressive(self, rounds: Rounds, changes: Floats) -> Floats:
        made = np.full((1 + len(changes), *rounds.y.shape), np.nan)
        samples, first = self._samples(rounds, changes), 0
        fits = [self.member.last_fit(rounds.first + i) for i in range(len(rounds.y))]
        for end in (*(np.flatnonzero(np.diff(fits)) + 1).tolist(), len(fits)):  # parts that one fit forecasts
            part = samples.part(first, end)
            if rounds.are_needed:
                made[:, first:end] = self._forecasts(rounds.first + first, part, range(len(made)), learns=True)
            self.parts.append(part)
            self.rounds, first = rounds.first + end, end
            self._forget()
        return made

    def _samples(self, rounds: Rounds, changes: Floats | None) -> Samples:
        """Return rounds as they are kept.

        Features as of later rounds leave out those that equal features of the next round. What is known ahead is NaN
        where any of it is unknown.
        """
        planned = np.where(rounds.is_planned[:, :, None], rounds.X[:, :, self.planned], np.nan)
        X = np.concatenate([rounds.X[:, :, self.columns], rounds.scale[:, :, None], planned], axis=2)
        far = np.concatenate([rounds.far[:, :, :, FAR_FEATURES:], rounds.plan], axis=3)
        came = np.empty((0, *rounds.y.shape)) if changes is None else np.concatenate([rounds.y[None], changes])
        X, far = (in_single_precision(numbers, LARGEST_INPUT) for numbers in (X, far))
        return Samples(X, far, rounds.moments, came)

    def _forget(self) -> None:
        """Forget the rounds that no fit needs any more."""
        surplus = self.member.last_fit(self.rounds) - self.member.window - self.first
        while self.parts and surplus >= (n := len(self.parts[0].X)):
            self.parts.pop(0)
            self.first += n
            surplus -= n
        if surplus > 0:
            self.parts[0] = self.parts[0].part(surplus)
            self.first += surplus

    # Models --------------------------------------------------------------------------------------------------------

    def _forecasts(self, number: int, samples: Samples, horizons: range, learns: bool) -> Floats:
        """Forecast rounds from this number on, all by the same fit; NaN where a model is missing."""
        made = np.full((len(horizons), *samples.X.shape[:2]), np.nan)
        self._fit(self.member.last_fit(number), horizons)
        for place, k in enumerate(horizons):
            if self.models[k] is not None and not self.is_broken[k]:
                inputs = samples.inputs(k)
                sees_all = ~np.isnan(inputs).any(axis=2)
                predicted, reason = forecasts_of(self.models[k], np.nan_to_num(inputs), number, self.member.name)
                made[place] = np.where(sees_all, predicted, np.nan)
                if learns and reason:
                    self._break(k, reason)
        return made

    def _fit(self, due: int, horizons: range) -> None:
        """Fit the models of these horizons on the rounds before number `due`, unless that was tried before."""
        if due != self.fitted:
            self.fitted, self.models = due, [None] * self.horizon
            self.is_tried[:], self.is_broken[:] = False, False
        wanted = [k for k in horizons if due and not self.is_tried[k] and not self.is_broken[k]]
        if not wanted:
            return
        self.is_tried[wanted] = True
        self.parts = [Samples.joined(self.parts)]
        last = self.parts[0].part(max(due - self.member.window - self.first, 0), due - self.first)
        for k in wanted:
            X, y = last.complete(k)
            if len(y) >= LEAST_SAMPLES:
                self.models[k], reason = fitted(self.member.estimator, X, y, self.is_robust)
                if reason:
                    self._break(k, reason)

    def _break(self, k: int, reason: str) -> None:
        """Forecast nothing for a horizon until the next fit."""
        self.breakdowns += 1
        self.is_broken[k] = True
        said = f"{self.member.name} broke down and forecasts nothing until its next fit ({reason:.200})"
        warnings.warn(said, RuntimeWarning, stacklevel=2)

    # Streams that join, saving -------------------------------------------------------------------------------------

    def join(self, graph: TaskGraph, links: Mapping[TaskKey, float]) -> None:
        """Make room for one more stream, of which nothing is known yet."""
        self.n_streams = graph.n_tasks
        self.parts = [part.with_stream() for part in self.parts]

    def dump(self) -> dict[str, Any]:
        """Return the rounds that are kept; models are refitted on them after loading."""
        names = ("first", "rounds", "is_broken", "breakdowns")
        samples = [Samples.joined(self.parts)._asdict()] if self.parts else []
        fitted = self.fitted if self.is_broken.any() else 0  # fitting again is the same, and a forecast may have fitted
        return {name: getattr(self, name) for name in names} | {"fitted": fitted, "samples": samples}

    def restore(self, dumped: Mapping[str, Any]) -> None:
        """Take over rounds of the same streams and features."""
        for name in ("first", "rounds", "fitted", "breakdowns"):
            setattr(self, name, count(dumped[name], name, least=0, most=LARGEST_COUNT))
        broken, self.parts = dumped["is_broken"], [Samples(**one) for one in dumped["samples"]]
        if np.shape(broken) != (self.horizon,) or broken.dtype != np.bool_:
            raise InputError(f"{self.member.name!r} does not say which of its models broke down")
        kept = max(self.member.last_fit(self.rounds) - self.member.window, 0) if self.rounds else 0
        if self.first != kept or self.fitted not in (0, *map(self.member.last_fit, (self.rounds, self.rounds - 1))):
            raise InputError(f"{self.member.name!r} keeps the wrong rounds for its models")
        if len(self.parts) != (self.rounds > 0):
            raise InputError(f"{self.member.name!r} keeps no rounds, or rounds that it has not learned")
        for part in self.parts:
            part.insist_like(self.rounds - self.first, self.n_streams, self.horizon, self.n_features)
        self.is_broken = broken
