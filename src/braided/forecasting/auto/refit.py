"""Refit: any regressor as a member, fitted again now and then on the last rounds; one model of all streams per horizon.

It is fitted before the rounds 20, 25, 31, 39, … (each a quarter later), and from `every` on before its multiples. So
a forecast depends on the number of its round, and not on how rounds are cut into calls. A fit is made once a forecast
needs it, on rounds that had come by the number it is due at.

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

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self, final

import numpy as np

from braided._compiled.targets import FAR_FEATURES, FAR_SEASON_FEATURES
from braided.errors import InputError
from braided.forecasting.auto.estimators import Recipe
from braided.forecasting.auto.members import MEAN, NEAR, OWN, Member, Rounds, Runner, Start
from braided.graph import TaskGraph, TaskKey
from braided.types import Floats
from braided.validate import LARGEST_COUNT, count, insist_kinds, insist_numbers

SCALED = (*OWN, *NEAR, *MEAN, "seasons", "phases")  # features in units
UNSCALED = ("known", "waves")
FIRST_FIT, STEP = 20, 1.25  # the round of the first fit, and how much later each is than the one before
LEAST_SAMPLES = 20
CLIP_CHANGES_AT = 20.0  # times their root mean square, where wild values have little weight
LARGEST_INPUT = 1e6  # in units, so that regressors in single precision can take it
SAMPLES_AT_ONCE = 512


@final
@dataclass(frozen=True, init=False)
class Refit(Member):
    """A regressor of scikit-learn's kind, such as LGBMRegressor(random_state=0).

    Parameters
    ----------
    estimator
        What to fit; never changed itself. Its parameters must be plain, and each random_state a number.
    every
        After how many rounds to fit again; more often in the first rounds.
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

    def plain(self) -> Self:
        """Return the same, fitted to changes that are not clipped."""
        return replace(self, is_robust=False)

    def start(self, start: Start) -> RefitRunner:
        """Return it before the first round."""
        return RefitRunner(self, start)

    def last_fit(self, number: int) -> int:
        """Return the round before which the model was fitted that forecasts a round; 0 before the first fit.

        >>> one = Refit(Recipe(object, {}), every=100)
        >>> [one.last_fit(number) for number in (19, 20, 24, 25, 99, 100, 199, 260)]
        [0, 20, 20, 25, 95, 100, 100, 200]
        """
        if number < FIRST_FIT:
            return 0
        if number >= self.every:
            return max(number - number % self.every, FIRST_FIT)
        due = FIRST_FIT
        while (later := int(due * STEP)) <= number:
            due = later
        return due


class Samples(NamedTuple):
    """What n rounds were forecast from, and what came in them."""

    X: Floats  # (n, T, d) features
    far: Floats  # (H − 1, n, T, f) those as of later rounds
    moments: Floats  # (n, H, K) what the clock says of each round and of those after it
    scale: Floats  # (n, T) typical change lately
    came: Floats  # (H, n, T) changes over the last 1, 2, … H rounds, NaN where there is none

    def part(self, first: int, end: int | None = None) -> Samples:
        """Return some of the rounds."""
        here = np.s_[first:end]
        return Samples(self.X[here], self.far[:, here], self.moments[here], self.scale[here], self.came[:, here])

    def inputs(self, k: int) -> Floats:
        """Return what is forecast from for one horizon (n, T, …), 0 the next round; the last is the stream's number."""
        n, T = self.scale.shape
        moments = np.broadcast_to(self.moments[:, None, k], (n, T, self.moments.shape[2]))
        streams = np.broadcast_to(np.arange(T, dtype=np.float64)[:, None], (n, T, 1))
        return np.concatenate([self.X, *self.far[k - 1 : k], moments, streams], axis=2, dtype=np.float64)

    @classmethod
    def join(cls, parts: list[Samples]) -> Samples:
        """Return parts one after the other."""
        axes = {"far": 1, "came": 1}
        return cls(*(np.concatenate(arrays, axes.get(name, 0)) for name, *arrays in zip(cls._fields, *parts, strict=True)))


@final
class RefitRunner(Runner):
    """The models, and the rounds that they were and will be fitted on."""

    def __init__(self, member: Refit, start: Start) -> None:
        self.member, self.horizon, self.is_robust = member, start.horizon, member.is_robust
        self.columns = start.columns(*SCALED, *UNSCALED)
        self.n_scaled = len(start.columns(*SCALED))
        self.parts: list[Samples] = []
        self.first = self.rounds = 0  # the number of the first round kept, and of the next one
        self.fitted = 0  # the round before which the models were fitted
        self.models: list[Any] = [None] * start.horizon
        self.is_tried, self.is_broken = np.zeros((2, start.horizon), np.bool_)  # until they are fitted again

    @property
    def looks_ahead(self) -> bool:
        """Whether later rounds are asked for."""
        return self.horizon > 1

    # Rounds --------------------------------------------------------------------------------------------------------

    def forecast(self, rounds: Rounds) -> Floats:
        """Forecast one round."""
        return self._forecasts(rounds, self._samples(rounds, None), range(1), learns=False)[0]

    def forecast_ahead(self, rounds: Rounds) -> Floats:
        """Forecast the rounds after the next."""
        return self._forecasts(rounds, self._samples(rounds, None), range(1, self.horizon), learns=False)

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
        for end in self._ends(rounds):
            part = samples.part(first, end)
            if rounds.are_needed:
                made[:, first:end] = self._forecasts(rounds.part(first, end), part, range(len(made)), learns=True)
            self.parts.append(part)
            self.rounds += end - first
            first = end
            self._forget()
        return made

    def _ends(self, rounds: Rounds) -> list[int]:
        """Return where to cut rounds so that each part is forecast by models of one fit."""
        fits = [self.member.last_fit(rounds.first + i) for i in range(len(rounds.y))]
        return [*(np.flatnonzero(np.diff(fits)) + 1).tolist(), len(fits)]

    def _samples(self, rounds: Rounds, changes: Floats | None) -> Samples:
        """Return rounds as they are kept: in units of the typical change lately, single precision."""
        X, scale = rounds.X[:, :, self.columns], rounds.scale
        X[:, :, : self.n_scaled] /= scale[:, :, None]
        far = rounds.far[:, :, :, FAR_FEATURES:] / scale[:, :, None]
        came = np.empty((0, *scale.shape)) if changes is None else np.concatenate([rounds.y[None], changes])
        X, far = (np.clip(one, -LARGEST_INPUT, LARGEST_INPUT).astype(np.float32) for one in (X, far))
        return Samples(X, far, rounds.moments, scale, came)

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

    def _forecasts(self, rounds: Rounds, samples: Samples, horizons: range, learns: bool) -> Floats:
        made = np.full((len(horizons), *rounds.y.shape), np.nan)
        self._fit(self.member.last_fit(rounds.first), horizons)
        for place, k in enumerate(horizons):
            if self.models[k] is not None and not self.is_broken[k]:
                made[place], broke = self._predicted(k, samples.inputs(k), rounds.first)
                made[place] *= samples.scale
                if learns and broke:
                    self._break(k)
        return made

    def _fit(self, due: int, horizons: range) -> None:
        """Fit the models that are due, on the rounds before that number."""
        if due != self.fitted:
            self.fitted, self.models = due, [None] * self.horizon
            self.is_tried[:], self.is_broken[:] = False, False
        wanted = [k for k in horizons if due and not self.is_tried[k] and not self.is_broken[k]]
        if not wanted:
            return
        self.is_tried[wanted] = True
        self.parts = [Samples.join(self.parts)]
        known = self.parts[0].part(max(due - self.member.window - self.first, 0), due - self.first)
        for k in wanted:
            y = known.came[k, k:] / known.scale[: max(len(known.scale) - k, 0)]
            X, there = known.part(0, len(y)).inputs(k), ~np.isnan(y)
            X, y = X[there], y[there]
            if len(y) < LEAST_SAMPLES:
                continue
            if self.member.is_robust:
                limit = CLIP_CHANGES_AT * np.sqrt(np.mean(y**2))
                y = y.clip(-limit, limit)
            model = self.member.estimator.build()
            try:
                model.fit(X, y)
            except Exception:  # of any kind: it forecasts nothing until it is fitted again
                self._break(k)
            else:
                self.models[k] = model

    def _break(self, k: int) -> None:
        self.breakdowns += 1
        self.is_broken[k] = True

    def _predicted(self, k: int, X: Floats, first: int) -> tuple[Floats, bool]:
        """Return forecasts of rounds (n, T) from their inputs, NaN from where the model breaks down, and whether it does.

        Every call of the model has the same shape, and a round the same place in it: with other shapes, a product of
        matrices may differ in its last bit.
        """
        n, T, d = X.shape
        at_once = max(SAMPLES_AT_ONCE // T, 1)
        made = np.full((n, T), np.nan)
        start = 0
        while start < n:
            place = (first + start) % at_once
            end = min(n, start + at_once - place)
            ends = [end]
            while ends:
                end = ends.pop(0)
                room = np.zeros((at_once, T, d))
                room[place : place + end - start] = X[start:end]
                try:
                    forecasts = self.models[k].predict(room.reshape(at_once * T, d))
                except Exception:  # of any kind: what was forecast before stays
                    if end - start == 1:
                        return made, True
                    ends = [start + 1 + i for i in range(end - start)]
                    continue
                made[start:end] = self._checked(forecasts, at_once, T)[place : place + end - start]
                missing = np.flatnonzero(np.isnan(made[start:end]).any(axis=1))
                if len(missing):
                    made[start + missing[0] :] = np.nan
                    return made, True
                place, start = place + end - start, end
        return made, False

    def _checked(self, forecasts: Any, n: int, n_streams: int) -> Floats:
        try:
            made = np.asarray(forecasts, np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"{self.member.name} predicts {forecasts!r:.80}: it must return numbers") from error
        if made.shape != (n * n_streams,):
            raise InputError(f"{self.member.name} predicts numbers of shape {made.shape}: it must be {(n * n_streams,)}")
        return made.reshape(n, n_streams)

    # Streams that join, saving -------------------------------------------------------------------------------------

    def join(self, graph: TaskGraph, links: Mapping[TaskKey, float]) -> None:
        """Make room for one more stream, of which nothing is known yet."""
        if self.parts:
            X, far, moments, scale, came = Samples.join(self.parts)
            X, far = np.pad(X, ((0, 0), (0, 1), (0, 0))), np.pad(far, ((0, 0), (0, 0), (0, 1), (0, 0)))
            scale = np.pad(scale, ((0, 0), (0, 1)), constant_values=1.0)
            came = np.pad(came, ((0, 0), (0, 0), (0, 1)), constant_values=np.nan)
            self.parts = [Samples(X, far, moments, scale, came)]

    def dump(self) -> dict[str, Any]:
        """Return the rounds that are kept; models are fitted on them again after loading."""
        names = ("first", "rounds", "fitted", "is_broken", "breakdowns")
        samples = [Samples.join(self.parts)._asdict()] if self.parts else []
        return {name: getattr(self, name) for name in names} | {"samples": samples}

    def restore(self, dumped: Mapping[str, Any]) -> None:
        """Take over rounds of the same streams and features."""
        for name in ("first", "rounds", "fitted", "breakdowns"):
            setattr(self, name, count(dumped[name], name, least=0, most=LARGEST_COUNT))
        if np.shape(dumped["is_broken"]) != (self.horizon,) or dumped["is_broken"].dtype != np.bool_:
            raise InputError(f"it is not known which models of {self.member.name!r} broke down")
        self.is_broken = dumped["is_broken"]
        self.parts = [Samples(**one) for one in dumped["samples"]]
