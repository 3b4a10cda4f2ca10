"""Horizons: forecasts of the rounds after the next, each with members, rules and weights of its own.

A forecast of round r + h − 1 is made before round r, like that of round r itself, and learned when its target comes:

| members                 | inputs                        | filters                                                    |
|-------------------------|-------------------------------|------------------------------------------------------------|
| those that look ahead   | those of the next round       | follow the member's own, whose gains they share            |
| target                  | as of the target              | one for each stream                                        |
| target, own phases      | as of the target              | one for each stream and phase of the target                |
| target, phases          | as of the target              | one for each phase of the target                           |
| target, planned         | the same, what is known ahead | one for each stream                                        |
| target, planned, pooled | as above                      | one for all streams                                        |
| effects                 | what is known ahead alone     | one for each stream, of the residuals of a member above    |
| effects, pooled         | as above                      | one for all streams                                        |

`_compiled.targets` lists the inputs as of the target, and the rules. All horizons are at work together, so that arrays
begin with an axis of H − 1 horizons, the first of them 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, final

import numpy as np

from braided._compiled.delayed import DelayedFilters, delayed_inplace, fresh_delayed, with_stream
from braided._compiled.mixture import COMMON_SHARE, RATE, SEEN, Mixture, fresh_mixture, take_over_inplace
from braided._compiled.mixture import delayed_inplace as mix_inplace
from braided._compiled.targets import FAR_OF_OTHERS, FAR_RULES, Far, Targets
from braided.errors import InputError
from braided.forecasting.auto.linear import ROBUST
from braided.forecasting.auto.seasons import Seasons
from braided.forecasting.clipping import Clipping
from braided.forecasting.plan import PLAN_FEATURES, is_any_missing
from braided.forecasting.units import LARGEST_LEVEL
from braided.types import Flags, Floats, Ints
from braided.validate import LARGEST_COUNT, insist_integers, insist_numbers

FAR_RULE_NAMES = (  # in the order of `_compiled.targets`
    "no change",
    "mean so far",
    "recent mean",
    "mean change so far",
    "recent mean change",
    "recent mean change of all streams",
)
FAR_OF_ALL_STREAMS = FAR_RULE_NAMES[-1:]
KEPT = ("X", "plan", "phases", "forecasts", "means", "last", "levels", "are_after_gap")  # arrays of the last rounds


@final
@dataclass(frozen=True)
class TargetMember:
    """Filters on inputs as of the target, with gains of their own."""

    name: str
    penalty: float
    forgetting: float  # per round
    by_stream: bool
    by_phase: bool = False
    inputs: Literal["target", "target, planned", "planned"] = "target"  # the last: of residuals of a member it follows

    def n_inputs(self, n_target: int, n_planned: int) -> int:
        """Return how many inputs it has."""
        return n_target * (self.inputs != "planned") + n_planned * (self.inputs != "target")


TARGET = TargetMember("target", 30.0, 0.998, by_stream=True)
OWN_PHASES = TargetMember("target, own phases", 100.0, 0.99, by_stream=True, by_phase=True)
PHASES = TargetMember("target, phases", 100.0, 0.99, by_stream=False, by_phase=True)
WITH_PLAN = (
    TargetMember("target, planned", 10.0, 0.9995, by_stream=True, inputs="target, planned"),
    TargetMember("target, planned, pooled", 10.0, 0.9995, by_stream=False, inputs="target, planned"),
    TargetMember("effects", 1.0, 0.9995, by_stream=True, inputs="planned"),
    TargetMember("effects, pooled", 1.0, 0.9995, by_stream=False, inputs="planned"),
)
EFFECTS_ON = ("tied", "separate")  # the first of these that looks ahead; or any that does


class Later(NamedTuple):
    """Forecasts of n rounds for h = 2 … H, as changes from the last known level."""

    mean: Floats  # (H − 1, n, T)
    naive: (
        Floats  # (H − 1, n, T) by the value one or more of the shortest season before; by the last one without a season
    )


class Came(NamedTuple):
    """What came in n rounds, and how far from what was known when it was forecast; NaN where that teaches nothing."""

    levels: Floats  # (n, T)
    last: Floats  # (n, T) known before each round
    is_after_gap: Flags  # (n,)
    changes: Floats  # (H − 1, n, T) from the level in the last round known then, if no gap lies between
    moves: Floats  # (H − 1, n, T) from the level known last then


@final
class Horizons:
    """Forecasts for h = 2 … H of T streams."""

    def __init__(
        self,
        horizon: int,
        n_streams: int,
        seasons: Seasons,
        followed: Mapping[str, bool],  # the members that look ahead, and whether they are robust
        sharing: bool,
        are_few: bool,
        n_planned: int,  # columns that are known ahead
    ) -> None:
        self.n, self.seasons, self.followed, self.n_streams = horizon - 1, seasons, tuple(followed), n_streams
        self.is_robust, self.sharing = any(followed.values()), sharing
        by_phase = OWN_PHASES if are_few else PHASES
        members = [TARGET, *([by_phase] if seasons.lengths else []), *(WITH_PLAN if n_planned else [])]
        self.members = [one for one in members if followed and (sharing or one.by_stream)]
        names = self._rule_names
        self._rules = [k for k, name in enumerate(names) if sharing or name not in FAR_OF_ALL_STREAMS]
        self.names = [*followed, *(one.name for one in self.members), *(names[k] for k in self._rules)]
        far = Far.fresh(self.n, self.n, n_streams, len(seasons.lengths))
        d, n_plan = far.X.shape[3], PLAN_FEATURES * n_planned
        sizes = {one: (self._n_filters(one, n_streams), one.n_inputs(d, n_plan)) for one in self.members}
        self.filters = {one.name: fresh_delayed(self.n, *size, one.penalty, n_streams) for one, size in sizes.items()}
        common = COMMON_SHARE if sharing else 0.0
        self.mixtures = [fresh_mixture(np.ones(len(self.names)), n_streams, common) for _ in range(self.n)]
        self.clippings = [Clipping.blank(n_streams, d) for _ in range(self.n)]
        self.X = far.X  # of the last H − 1 rounds, like all that follows
        self.plan: Floats = np.full((self.n, self.n, n_streams, n_plan), np.nan)
        self.phases: Ints = np.zeros((self.n, self.n), np.int64)
        self.forecasts: Floats = np.full((self.n, self.n, n_streams, len(self.names)), np.nan)
        self.means: Floats = np.zeros((self.n, self.n, 2, n_streams))
        self.last: Floats = np.full((self.n, n_streams), np.nan)
        self.levels: Floats = np.full((horizon, n_streams), np.nan)
        self.are_after_gap: Flags = np.zeros(horizon, np.bool_)

    @property
    def _rule_names(self) -> list[str]:
        found = self.seasons.in_words
        seasonal = [(f"value {one} before", f"change {one} before", f"mean changes of {one}") for one in found]
        return [*FAR_RULE_NAMES, *(name for names in seasonal for name in names)]

    def _n_filters(self, member: TargetMember, n_streams: int) -> int:
        return (n_streams if member.by_stream else 1) * (self.seasons.n_phases if member.by_phase else 1)

    def room(self, n: int) -> Far:
        """Return room for what n rounds are forecast from, after what the last ones were forecast from."""
        blank = Far.fresh(self.n, 0, self.n_streams, len(self.seasons.lengths))
        rules = np.empty((self.n, self.n + n, *blank.rules.shape[2:]))  # those of earlier rounds are not read
        return Far(continued(self.X, n), rules)

    def came(self, levels: Floats, last: Floats, is_after_gap: Flags) -> Came:
        """Return what came in rounds of levels (n, T), before which `last` (n, T) were known."""
        n = len(levels)
        known, gaps = np.concatenate([self.levels, levels]), np.append(self.are_after_gap, is_after_gap).cumsum()
        before = np.concatenate([self.last, last])
        changes, moves = np.empty((2, self.n, n, self.n_streams))
        now = len(self.levels) + np.arange(n)
        for k in range(self.n):
            then = now - (k + 2)
            changes[k] = np.where((gaps[now] > gaps[then])[:, None], np.nan, known[now] - known[then])
            moves[k] = levels - before[now - 1 - (k + 1)]
        return Came(levels, last, is_after_gap, changes, moves)

    def advance(
        self,
        targets: Targets,
        far: Far,
        plan: Floats,  # (H − 1, n, T, F) what is known ahead, NaN where unknown
        followed: dict[str, Floats],
        came: Came,
        learns_weights: bool,
    ) -> Later:
        """Forecast n rounds, and learn those whose target came."""
        self._clip(far, len(came.levels), learns=True)
        plan = self._with_plan(plan)
        phases = np.concatenate([self.phases, self.seasons.phases(targets.phase[:, 1:])])
        later, forecasts, means = self._mix(far, plan, phases, followed, came, learns_weights)
        self.X, self.plan, self.phases = far.X[:, -self.n :].copy(), plan[:, -self.n :].copy(), phases[-self.n :]
        self.forecasts, self.means = forecasts[:, -self.n :].copy(), means[:, -self.n :].copy()
        self.last = np.concatenate([self.last, came.last])[-self.n :]
        self.levels = np.concatenate([self.levels, came.levels])[-self.n - 1 :]
        self.are_after_gap = np.append(self.are_after_gap, came.is_after_gap)[-self.n - 1 :]
        return later

    def forecast(self, targets: Targets, far: Far, plan: Floats, followed: dict[str, Floats]) -> Later:
        """Forecast from one round on, and learn nothing."""
        self._clip(far, 1, learns=False)
        phases = np.concatenate([self.phases, self.seasons.phases(targets.phase[:, 1:])])
        unknown = np.full((self.n, 1, self.n_streams), np.nan)
        nothing = Came(unknown[0], unknown[0], np.zeros(1, np.bool_), unknown, unknown)
        return self._mix(far, self._with_plan(plan), phases, followed, nothing, learns_weights=False)[0]

    def _with_plan(self, plan: Floats) -> Floats:
        """Return what was known ahead when the last rounds were forecast, and when these were (H − 1, m + n, T, F)."""
        return np.concatenate([self.plan, plan], axis=1)

    def _clip(self, far: Far, n: int, learns: bool) -> None:
        streams = np.tile(np.arange(self.n_streams), n)
        if not self.sharing:
            far.X[:, -n:, :, FAR_OF_OTHERS] = 0.0
        for k in range(self.n):
            self.clippings[k].clip_inplace(far.X[k, -n:].reshape(n * self.n_streams, -1), streams, learns)

    def _mix(
        self, far: Far, plan: Floats, phases: Ints, followed: dict[str, Floats], came: Came, learns_weights: bool
    ) -> tuple[Later, Floats, Floats]:
        n = came.changes.shape[1]
        forecasts, means = continued(self.forecasts, n), continued(self.means, n)
        for place, name in enumerate(self.followed):
            forecasts[:, self.n :, :, place] = sane(followed[name])
        streams = np.arange(self.n_streams)
        unknown = is_any_missing(plan)
        inputs = {"target": far.X}
        if plan.shape[3]:
            inputs["planned"] = np.nan_to_num(plan)
            inputs["target, planned"] = np.concatenate([far.X, inputs["planned"]], axis=3)
        base = forecasts[:, :, :, self.followed.index(self.base) if self.base else 0]
        for place, member in enumerate(self.members, len(self.followed)):
            by_phase = phases.T[:, :, None] * member.by_phase
            stride = self.seasons.n_phases if member.by_phase else 1
            which = np.ascontiguousarray(
                np.broadcast_to(by_phase + stride * streams * member.by_stream, far.X.shape[:3]), np.int64
            )
            samples = 1.0 if member.by_stream else self.n_streams  # of a filter in a round
            setting = np.array([member.penalty, member.forgetting ** (1.0 / samples), ROBUST * self.is_robust])
            made, changes = np.empty(came.changes.shape), came.changes
            if member.inputs != "target":
                changes = np.where(self._when_forecast(unknown, n), np.nan, changes)
            if member.inputs == "planned":
                changes = changes - self._when_forecast(base, n)
            delayed_inplace(self.filters[member.name], inputs[member.inputs], which, changes, setting, made)
            if member.inputs == "planned":
                made += base[:, self.n :]
            if member.inputs != "target":
                made[unknown[:, self.n :]] = np.nan
            forecasts[:, self.n :, :, place] = sane(made)
        for place, rule in enumerate(self._rules, len(self.names) - len(self._rules)):
            forecasts[:, self.n :, :, place] = far.rules[:, -n:, :, rule]
        mean = np.empty(came.moves.shape)
        for k, mixture in enumerate(self.mixtures):
            y = np.ascontiguousarray(came.moves[k])
            mix_inplace(mixture, k + 1, forecasts[k], means[k], y, learns_weights, mean[k])
        naive = np.nan_to_num(far.rules[:, -n:, :, FAR_RULES]) if self.seasons.lengths else np.zeros(mean.shape)
        return Later(mean, naive), forecasts, means

    @property
    def base(self) -> str:
        """The member on whose residuals the effects of what is planned are learned; "" if none are."""
        if not any(member.inputs == "planned" for member in self.members):
            return ""
        return next((name for name in EFFECTS_ON if name in self.followed), self.followed[0])

    def _when_forecast(self, known: Any, n: int) -> Any:
        """Return what was known (H − 1, n, T) when n rounds were forecast, from what was in all (H − 1, m + n, T)."""
        return np.stack([known[k, self.n - k - 1 : self.n - k - 1 + n] for k in range(self.n)])

    @property
    def resets(self) -> int:
        """How often a filter broke down and began again."""
        return sum(int(filters.resets.sum()) for filters in self.filters.values())

    def take_weights(self, before: Horizons, ratio: Floats) -> None:
        """Go on with the weights of horizons with the same members."""
        for mixture, old in zip(self.mixtures, before.mixtures, strict=True):
            take_over_inplace(mixture, old, ratio)

    def join(self) -> None:
        """Make room for one more stream."""
        for member in self.members:
            n_filters = self._n_filters(member, 1) * member.by_stream
            self.filters[member.name] = with_stream(self.filters[member.name], n_filters, member.penalty)
        self.mixtures = [mixture.with_stream() for mixture in self.mixtures]
        self.X = np.pad(self.X, ((0, 0), (0, 0), (0, 1), (0, 0)))
        self.plan = np.pad(self.plan, ((0, 0), (0, 0), (0, 1), (0, 0)), constant_values=np.nan)
        for clipping in self.clippings:
            clipping.join()
        self.forecasts = np.pad(self.forecasts, ((0, 0), (0, 0), (0, 1), (0, 0)), constant_values=np.nan)
        self.means = np.pad(self.means, ((0, 0), (0, 0), (0, 0), (0, 1)))
        self.last = np.pad(self.last, ((0, 0), (0, 1)), constant_values=np.nan)
        self.levels = np.pad(self.levels, ((0, 0), (0, 1)), constant_values=np.nan)
        self.n_streams += 1

    def dump(self) -> dict[str, Any]:
        """Return all that is learned and remembered."""
        return {
            **{name: getattr(self, name) for name in KEPT},
            "filters": {name: filters._asdict() for name, filters in self.filters.items()},
            "clippings": self.clippings,
            "mixtures": [mixture._asdict() for mixture in self.mixtures],
        }

    def restore(self, dumped: Mapping[str, Any]) -> None:
        """Take over what was dumped; raise InputError if it does not fit."""
        for name in KEPT:
            array = getattr(self, name)
            if name == "phases":
                insist_integers(dumped[name], name, array.shape, 0, self.seasons.n_phases - 1)
            elif name == "are_after_gap":
                if np.shape(dumped[name]) != array.shape or dumped[name].dtype != np.bool_:
                    raise InputError("it is not known which of the last rounds came after a gap")
            else:
                insist_numbers(dumped[name], name, array.shape, missing=name not in ("X", "means"))
            setattr(self, name, dumped[name])
        if dumped["filters"].keys() != self.filters.keys() or len(dumped["mixtures"]) != self.n:
            raise InputError("the filters or mixtures of later rounds are not those of the horizons")
        shapes = [clipping.squares.shape for clipping in self.clippings]
        if [isinstance(one, Clipping) and one.squares.shape for one in dumped["clippings"]] != shapes:
            raise InputError("the typical sizes of later rounds are of other streams or features")
        self.clippings = list(dumped["clippings"])
        for name, fresh in self.filters.items():
            held = DelayedFilters(**dumped["filters"][name])
            for field in ("weights", "covariance", "sizes", "squares"):
                insist_numbers(getattr(held, field), field, getattr(fresh, field).shape)
            insist_integers(held.resets, "resets", fresh.resets.shape, 0, LARGEST_COUNT)
            self.filters[name] = held
        self.mixtures = [
            restored_mixture(one, mixture) for one, mixture in zip(dumped["mixtures"], self.mixtures, strict=True)
        ]


def continued(known: Floats, n: int) -> Floats:
    """Return an array (K, m, …) with room for n more rows, which hold anything yet."""
    longer = np.empty((known.shape[0], known.shape[1] + n, *known.shape[2:]))
    longer[:, : known.shape[1]] = known
    return longer


def sane(forecasts: Floats) -> Floats:
    """Return forecasts in units, NaN where absurdly large."""
    return np.where(np.abs(forecasts) <= LARGEST_LEVEL, forecasts, np.nan)


def restored_mixture(dumped: Mapping[str, Any], fresh: Mixture) -> Mixture:
    """Return a mixture that was dumped; raise InputError if it is not like a fresh one."""
    for name, array in fresh._asdict().items():
        insist_numbers(dumped[name], name, array.shape)
    mixture = Mixture(**dumped)
    prior, errors, rates = mixture.prior, mixture.errors, mixture.regrets[RATE]
    if not (
        (prior > 0.0).all() and (rates > 0.0).all() and (errors[:SEEN] > 0.0).all() and (errors[SEEN] >= 0.0).all()
    ):
        raise InputError("the mixture has errors or weights that are not above 0")
    return mixture
