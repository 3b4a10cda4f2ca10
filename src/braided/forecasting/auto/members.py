"""Members: what Auto mixes. All read the same features; each says which, and how it learns.

To add one, subclass `Member` as a frozen dataclass with a `start`, which returns a `Runner`: the member at work, which
forecasts a round of all streams and learns it afterwards. Those here are linear filters that differ in what is shared:

| sharing    | streams share                                    |
|------------|--------------------------------------------------|
| "tied"     | what similar streams have learned (MT-WRLS)      |
| "separate" | nothing: a filter for each (WRLS)                |
| "pooled"   | everything: one filter for all                   |

Filters that are not tied can be split: one for each phase of the shortest season, and others for days off.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, final, get_args

import numpy as np

from braided._compiled.delayed import fresh_followers
from braided._compiled.panel import feature_groups
from braided.errors import InputError, NumericalError
from braided.forecasting.auto.following import Following
from braided.forecasting.record import MODEL
from braided.forecasting.rescue import add_or_reset, progressive_or_reset
from braided.forecasting.units import LARGEST_LEVEL
from braided.forgetting import Exponential
from braided.graph import TaskGraph, TaskKey
from braided.learners import MTWRLS, WRLS, Learner
from braided.types import Flags, Floats, Ints
from braided.validate import choice, fraction, insist_kinds, insist_numbers, positive

Sharing: TypeAlias = Literal["tied", "separate", "pooled"]
Split: TypeAlias = Literal["", "phase", "phase, day off"]
Scale: TypeAlias = Literal["plain", "asinh"]

TOLERANCE = 0.01  # of the local solver, in typical innovations; a finer one takes longer and gains nothing
ROBUST = 5.0  # deviations beyond which an error counts for less
CLIP_SCALED_AT = 10.0  # typical changes, of scaled targets
RESIDUAL_LAGS = 2
CLIP_RESIDUALS_AT = 10.0  # units
OWN = ("recent", "older", "level")
NEAR = ("near", "near, older", "near, gap")
MEAN = ("mean", "mean, older", "mean, gap")
SEASONAL = ("seasons", "phases", "known")
SMOOTH = ("bias", *OWN, *NEAR, *MEAN, *SEASONAL)
ALL = (*SMOOTH, "waves")
FEW = ("bias", "recent", "level", "near", "mean", *SEASONAL)  # for filters that see few samples each
OF_OTHERS = {*NEAR, *MEAN, "others"}
RULE_NAMES = (  # in the order of `_compiled.panel`; no member may have one of these names
    "no change",
    "mean so far",
    "recent mean",
    "mean change so far",
    "recent mean change",
    "last change",
    "mean change of all streams",
    "recent mean change of all streams",
)
ON_ASINH = ("tied", "phases", "own phases")  # members that also run on the asinh scale
SEE_PLAN = ("own past", "tied", "separate", "pooled", "phases", "tied (asinh)")  # members that also run with the plan
LOOK_AHEAD = ("tied", "others")
LOOK_AHEAD_OF_MANY = ("own past", "separate", "pooled", "others")  # where tied filters have no gains
OF_FEW_STREAMS = ("tied, long memory", "tied, scaled", "phases, days off", "own phases", "others", "others, residuals")


@final
@dataclass(frozen=True)
class Start:
    """What is known when a member starts."""

    graph: TaskGraph  # of the streams, whose keys are 0, 1, …
    groups: Mapping[str, int]  # where each group of features ends, as `_compiled.panel` lists them
    alike: Ints  # (T, m) the most similar streams, −1 where there are fewer
    n_phases: int  # of the shortest season
    horizon: int = 1  # how many rounds ahead forecasts are made

    def columns(self, *names: str) -> Ints:
        """Return the columns of these groups of features."""
        starts = dict(zip(self.groups, [0, *self.groups.values()], strict=False))
        return np.concatenate([np.arange(starts[name], self.groups[name]) for name in names])


@final
@dataclass(frozen=True)
class Rounds:
    """Rounds of all streams: what was known before each, and what came."""

    X: Floats  # (n, T, F) features
    y: Floats  # (n, T) changes in units, NaN where there is none
    scale: Floats  # (n, T) recent typical change of the stream
    phases: Ints  # (n,) of the shortest season
    days_off: Ints  # (n,) 1 on weekends and holidays
    is_planned: Flags  # (n, T) whether all that is planned is known
    first: int  # number of the first round
    forecasts: Mapping[str, Floats]  # (n, T) of the members before this one
    moments: Floats  # (n, H, K) what the clock says of each round and of those after it
    far: Floats  # (H − 1, n, T, K) features as of later rounds, as `_compiled.targets` lists them
    plan: Floats  # (H − 1, n, T, K) what is known ahead of these (`Planned.later_features`), NaN where not all is
    are_needed: bool = True  # whether forecasts are used; if not, those of a member may be NaN

    def part(self, first: int, end: int) -> Rounds:
        """Return some of the rounds, in order."""
        here = np.s_[first:end]
        arrays = {
            name: getattr(self, name)[here]
            for name in ("X", "y", "scale", "phases", "days_off", "is_planned", "moments")
        }
        forecasts = {name: made[here] for name, made in self.forecasts.items()}
        far, plan = self.far[:, here], self.plan[:, here]
        return replace(self, **arrays, first=self.first + first, forecasts=forecasts, far=far, plan=plan)

    def one(self, i: int) -> Rounds:
        """Return one of the rounds."""
        return self.part(i, i + 1)


class Runner(ABC):
    """A member at work.

    One that `looks_ahead` also forecasts the rounds after the next, by `forecast_ahead`, and learns them by
    `learn_ahead`, or does both in `progressive_ahead`.
    """

    breakdowns: int = 0
    is_robust: bool = True  # whether wild values have little weight
    numbers_ahead: int = 0  # kept of each sample while rounds are forecast together

    @property
    def looks_ahead(self) -> bool:
        """Whether it also forecasts the rounds after the next."""
        return False

    @abstractmethod
    def forecast(self, rounds: Rounds) -> Floats:
        """Return forecasts (1, T) of the changes of one round, from its features; NaN where there is none."""

    @abstractmethod
    def learn(self, rounds: Rounds) -> None:
        """Learn the changes `y` of one round; NaN where one is missing."""

    @abstractmethod
    def join(self, graph: TaskGraph, links: Mapping[TaskKey, float]) -> None:
        """Make room for one more stream, the last of the graph; `links` are its similarities to others."""

    @abstractmethod
    def dump(self) -> dict[str, Any]:
        """Return the state: arrays, learners, numbers and names."""

    @abstractmethod
    def restore(self, dumped: Mapping[str, Any]) -> None:
        """Take over the state that `dump` returned; raise InputError if it does not fit."""

    def progressive(self, rounds: Rounds) -> Floats:
        """Return forecasts (n, T) of the changes, each made before its round is learned."""
        made = np.empty_like(rounds.y)
        for i in range(len(made)):
            made[i] = as_forecasts(self.forecast(rounds.one(i)), (1, made.shape[1]), type(self).__name__)[0]
            self.learn(rounds.one(i))
        return made

    def forecast_ahead(self, rounds: Rounds) -> Floats:
        """Return forecasts (H − 1, 1, T) for h = 2 … H, as changes from the last known level; NaN where there is none.

        Known is what is known of one round before it comes.
        """
        raise NotImplementedError(f"{type(self).__name__} looks ahead: it needs forecast_ahead")

    def learn_ahead(self, rounds: Rounds, changes: Floats) -> None:
        """Learn changes (H − 1, 1, T) over the last h = 2 … H rounds, of which the round given is the last.

        They are NaN where a level is missing, or a gap lies between. They belong to forecasts made h − 1 rounds ago.
        """
        raise NotImplementedError(f"{type(self).__name__} looks ahead: it needs learn_ahead")

    def progressive_ahead(self, rounds: Rounds, changes: Floats) -> tuple[Floats, Floats]:
        """Return forecasts of each round (n, T) and of later ones (H − 1, n, T), each made before its round is learned.

        `changes` (H − 1, n, T) are those that `learn_ahead` learns.
        """
        made, later = np.empty_like(rounds.y), np.empty_like(changes)
        name = type(self).__name__
        for i in range(len(made)):
            one, here = rounds.one(i), np.s_[:, i : i + 1]
            made[i] = as_forecasts(self.forecast(one), (1, made.shape[1]), name)[0]
            later[here] = as_forecasts(self.forecast_ahead(one), changes[here].shape, name)
            self.learn(one)
            self.learn_ahead(one, changes[here])
        return made, later


def as_forecasts(made: Any, shape: tuple[int, ...], name: str) -> Floats:
    """Return a member's forecasts as numbers of this shape, NaN where absurdly large; refuse anything else."""
    try:
        forecasts = np.asarray(made, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} forecast {made!r:.80}: return numbers of shape {shape}") from error
    if forecasts.shape != shape:
        raise InputError(f"{name} made forecasts of shape {forecasts.shape}: return {shape}, rounds and streams")
    return np.where(np.abs(forecasts) <= LARGEST_LEVEL, forecasts, np.nan)


@dataclass(frozen=True)
class Member(ABC):
    """A part of Auto: its name, and the scale on which it sees the values.

    Members on the scale "asinh" see growth rather than amounts. Where values are negative, they are left out.
    """

    name: str

    @property
    def on(self) -> Scale:
        """The scale on which it sees the values."""
        return "plain"

    @property
    def prior(self) -> float:
        """Its weight at the start; with 0, the default, it has an equal part of the weight of all learners."""
        return 0.0

    @abstractmethod
    def start(self, start: Start) -> Runner:
        """Return the member at work, before the first round."""

    def alone(self) -> Member | None:
        """Return this member with nothing shared between streams; None, the default, if that makes no sense.

        A member that sees one stream only returns itself.
        """
        return None

    def plain(self) -> Member:
        """Return this member with full weight for wild values; itself if it always gives them that."""
        return self


@final
@dataclass(frozen=True)
class Defaults(Member):
    """All members that Auto would choose itself, in their place among others."""

    name: str = "defaults"

    def start(self, start: Start) -> Runner:
        """Refuse: others take its place before anything starts."""
        raise InputError("Defaults stands for other members, and does not start itself")


@final
@dataclass(frozen=True)
class Linear(Member):
    """Linear filters on some of the features."""

    sharing: Sharing
    features: tuple[str, ...]
    penalty: float = 100.0
    forgetting: float = 0.998  # per round
    by: Split = ""  # a filter for each of these
    after: str = ""  # the member whose residuals it learns
    is_scaled: bool = False  # in units of the stream's recent typical change
    sees_residuals: bool = False  # of the stream and of the most similar ones, in the last two rounds
    looks_ahead: bool = False  # also forecasts later rounds, where the filters have gains
    is_robust: bool = True
    on: Scale = "plain"

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", tuple(self.features))
        groups = feature_groups(0, 0, 0)
        for name in self.features:
            if name not in groups:
                raise InputError(f"no features {name!r}: there are {', '.join(groups)}")
        for name, choices in (("sharing", Sharing), ("by", Split), ("on", Scale)):
            choice(getattr(self, name), name, get_args(choices))
        positive(self.penalty, "penalty")
        fraction(self.forgetting, "forgetting")
        insist_kinds(self, after=str, is_scaled=bool, sees_residuals=bool, is_robust=bool, looks_ahead=bool)
        if self.looks_ahead and (self.by or self.after or self.is_scaled or self.on != "plain"):
            raise InputError(f"{self.name} looks ahead: only plain filters, not split and after no other, can do that")
        if self.sharing == "tied" and self.by:
            raise InputError(f"{self.name} is tied and split by {self.by}: only filters that are not tied can be split")

    def alone(self) -> Linear | None:
        """Return a filter for each stream, without features of other streams; None if no feature is left."""
        features = tuple(name for name in self.features if name not in OF_OTHERS)
        return replace(self, sharing="separate", features=features) if features else None

    def plain(self) -> Linear:
        """Return the filters that take every error in full."""
        return replace(self, is_robust=False)

    def start(self, start: Start) -> LinearRunner:
        """Return the filters before the first round."""
        return LinearRunner(self, start)


@final
class LinearRunner(Runner):
    """The filters of a `Linear` member, and the last residuals if it sees them."""

    def __init__(self, member: Linear, start: Start) -> None:
        self.member, self.alike, n = member, start.alike, start.n_phases
        bins = {"": (1, 0, 0), "phase": (n, 1, 0), "phase, day off": (2 * n, 1, n)}[member.by]
        self.n_bins, self.by_phase, self.by_day_off = bins  # filters of a stream, and the steps between them
        self.by_stream = 0 if member.sharing == "pooled" else self.n_bins
        self.columns = start.columns(*member.features)
        n_streams, m = start.alike.shape
        more = RESIDUAL_LAGS * (1 + m) if member.sees_residuals else 0
        self.residuals = np.zeros((RESIDUAL_LAGS, n_streams))
        self.learner = self._learner(start.graph, len(self.columns) + more)
        self.followers = self._followers(start.horizon - 1, n_streams) if member.looks_ahead else None
        self.is_robust, self.numbers_ahead = member.is_robust, self.learner.gain_size

    @property
    def looks_ahead(self) -> bool:
        """Whether its filters have gains, which those of later rounds share."""
        return self.followers is not None

    def _learner(self, graph: TaskGraph, d: int) -> Learner:
        member, n_streams = self.member, graph.n_tasks
        robust = {"robust": ROBUST, "noise": 1.0} if member.is_robust else {}
        if member.sharing == "tied":
            forgetting = Exponential(member.forgetting, per="round")
            solver: Literal["local", "auto"] = "local" if graph.is_sparse else "auto"
            return MTWRLS(graph, d, member.penalty, forgetting, solver=solver, tolerance=TOLERANCE, **robust)
        n_filters = self._n_filters(n_streams)
        samples = n_streams * self.n_bins // n_filters  # of a filter in each of its rounds
        forgetting = Exponential(member.forgetting ** (1.0 / samples), per="task")
        return WRLS(range(n_filters), d, member.penalty, forgetting, **robust)

    def _followers(self, n: int, n_streams: int) -> Following | None:
        size, n_weights = self.learner.gain_size, len(self.learner.tasks) * self.learner.n_features
        if not n or not size:
            return None
        shape = n, n_streams
        filters = fresh_followers(n, n_weights // size, size, n_streams)
        return Following(filters, np.zeros((*shape, self.learner.n_features)), np.zeros((*shape, size)))

    def forecast(self, rounds: Rounds) -> Floats:
        """Forecast every stream of one round."""
        X, _, base, scale = self._samples(rounds)
        try:
            made = self.learner.predict_many(X.reshape(-1, X.shape[2]), self._filters(rounds))
        except NumericalError:
            return np.full_like(rounds.y, np.nan)
        return self._where_planned(np.asarray(made).reshape(rounds.y.shape) * scale + base, rounds)

    def learn(self, rounds: Rounds) -> None:
        """Learn one round."""
        self.progressive(rounds)

    def progressive(self, rounds: Rounds) -> Floats:
        """Forecast every stream of each round, then learn the values that are there."""
        return self._progressive(rounds, None)[0]

    def progressive_ahead(self, rounds: Rounds, changes: Floats) -> tuple[Floats, Floats]:
        """Forecast later rounds (H − 1, n, T), too, and learn `changes` (H − 1, n, T), which came from earlier ones."""
        assert self.followers is not None
        gains = self.followers.room(len(rounds.y))
        made, X = self._progressive(rounds, gains[-len(rounds.y) :])
        return made, self.followers.advance(X, gains, changes, ROBUST * self.member.is_robust)

    def forecast_ahead(self, rounds: Rounds) -> Floats:
        """Forecast later rounds (H − 1, 1, T) from the features of one."""
        assert self.followers is not None
        return self.followers.forecast(self._samples(rounds)[0])

    def _progressive(self, rounds: Rounds, gains: Floats | None) -> tuple[Floats, Floats]:
        n, T = rounds.y.shape
        X, y, base, scale = self._samples(rounds)
        if self.member.sees_residuals:
            self.residuals = np.concatenate([self.residuals, _clipped(y)])[-RESIDUAL_LAGS:]
        there = ~np.isnan(self._where_planned(y, rounds))
        target = np.clip(y / scale, -CLIP_SCALED_AT, CLIP_SCALED_AT) if self.member.is_scaled else y
        numbers = np.repeat(np.arange(rounds.first, rounds.first + n), T)
        samples = X.reshape(n * T, -1), np.where(there, target, 0.0).ravel(), self._filters(rounds), numbers
        room = None if gains is None else gains.reshape(n * T, -1)
        made, _, breakdowns = progressive_or_reset(self.learner, *samples, there.astype(np.float64).ravel(), gains=room)
        self.breakdowns += breakdowns
        return self._where_planned(made.reshape(n, T) * scale + base, rounds), X

    def _where_planned(self, changes: Floats, rounds: Rounds) -> Floats:
        """Return changes (n, T), NaN where the member's features are not all known."""
        return np.where(rounds.is_planned, changes, np.nan) if "planned" in self.member.features else changes

    def _samples(self, rounds: Rounds) -> tuple[Floats, Floats, Floats, Floats]:
        """The inputs, the changes less the forecasts of the member before, those forecasts, and the unit of both."""
        X = rounds.X[:, :, self.columns]
        base, scale = np.zeros(()), np.ones(())
        if self.member.after:
            base = np.nan_to_num(rounds.forecasts[self.member.after])
        y = rounds.y - base
        if self.member.sees_residuals:
            X = np.concatenate([X, self._last_residuals(y)], axis=2)
        if self.member.is_scaled:
            scale = rounds.scale
            X = X / scale[:, :, None]
        return X, y, base, scale

    def _n_filters(self, n_streams: int) -> int:
        return self.n_bins + self.by_stream * (n_streams - 1)

    def _filters(self, rounds: Rounds) -> Ints:
        """Which filter each sample belongs to: bin by bin, and stream by stream unless all share."""
        bins = self.by_phase * rounds.phases + self.by_day_off * rounds.days_off
        return (bins[:, None] + self.by_stream * np.arange(rounds.y.shape[1])).ravel()

    def _last_residuals(self, residuals: Floats) -> Floats:
        """Return the residuals (n, T, 2 + 2 m) of the last two rounds, of each stream and of those most similar."""
        known = np.concatenate([self.residuals, _clipped(residuals)])
        lags = np.stack([known[1:-1], known[:-2]], axis=2)  # (n, T, 2)
        others = np.where(self.alike[:, :, None] >= 0, lags[:, self.alike], 0.0)  # (n, T, m, 2)
        return np.concatenate([lags, others.reshape(*lags.shape[:2], -1)], axis=2)

    def join(self, graph: TaskGraph, links: Mapping[TaskKey, float]) -> None:
        """Add filters for the stream, if streams have filters of their own."""
        self.residuals = np.hstack([self.residuals, np.zeros((RESIDUAL_LAGS, 1))])
        self.alike = with_blank_row(self.alike)
        for key in range(len(self.learner.tasks), self._n_filters(graph.n_tasks)):
            self.breakdowns += add_or_reset(self.learner, key, links)
        if self.followers is not None:
            self.followers.join(self.learner)

    def dump(self) -> dict[str, Any]:
        """Return the filters and the last residuals."""
        following = [] if self.followers is None else [self.followers.dump()]
        return {"learner": self.learner, "residuals": self.residuals, "followers": following}

    def restore(self, dumped: Mapping[str, Any]) -> None:
        """Take over filters of the same kind and size."""
        learner, fresh = dumped["learner"], self.learner
        insist_numbers(dumped["residuals"], "residuals", self.residuals.shape)
        if type(learner) is not type(fresh) or learner.parameters != fresh.parameters:
            raise InputError(f"the filters of {self.member.name!r} are of a different kind")
        if learner.tasks != fresh.tasks or learner.n_features != fresh.n_features:
            raise InputError(f"the filters of {self.member.name!r} belong to different streams or features")
        if len(dumped["followers"]) != (self.followers is not None):
            raise InputError(f"{self.member.name!r} looks ahead, or not, but what was saved does otherwise")
        if self.followers is not None:
            self.followers.restore(dumped["followers"][0])
        self.learner, self.residuals = learner, dumped["residuals"]


def with_blank_row(alike: Ints) -> Ints:
    """Return the most similar streams with a row for one more stream, which has none."""
    return np.vstack([alike, np.full((1, alike.shape[1]), -1)])


def _clipped(residuals: Floats) -> Floats:
    """Residuals as features, clipped so that one stream's wild value stays its own; 0 where one is missing."""
    return np.clip(np.nan_to_num(residuals), -CLIP_RESIDUALS_AT, CLIP_RESIDUALS_AT)


def insist_members(members: tuple[Any, ...]) -> None:
    """Refuse members that can't be mixed: names are unique, and a member follows one before it on the same scale."""
    names: list[str] = [MODEL, *RULE_NAMES]
    for place, member in enumerate(members):
        if not isinstance(member, Member) or not isinstance(member.name, str):
            raise InputError(f"{member!r:.80} is a {type(member).__name__}: give members of Auto")
        if member.name in names:
            raise InputError(f"the name {member.name!r} is taken by another member or a rule: give each member its own")
        names.append(member.name)
        before = {other.name for other in members[:place] if other.on == member.on}
        if isinstance(member, Linear) and member.after and member.after not in before:
            raise InputError(f"{member.name} follows {member.after!r}: put that before it, on the same scale")


def with_defaults(members: tuple[Member, ...] | None, defaults: tuple[Member, ...]) -> tuple[Member, ...]:
    """Return members with the default ones in the place of `Defaults`; the default ones if there are no others."""
    if members is None:
        return defaults
    expanded = tuple(one for member in members for one in (defaults if isinstance(member, Defaults) else (member,)))
    insist_members(expanded)
    return expanded


def default_members(
    n_seasons: int,
    is_short: bool,
    n_alike: int,
    are_few: bool,
    are_many: bool,
    sharing: bool = True,
    has_plan: bool = False,
) -> tuple[Linear, ...]:
    """Return Auto's members: fewer where there is no season, steps are longer than an hour, or streams are many.

    Those left out without sharing would be copies of others once they see no other stream (`alone`).
    """
    own = Linear("own past", "separate", ("bias", *OWN, "known"), 10.0)
    tied = Linear("tied", "tied", ALL)
    phases = Linear("phases", "pooled", FEW, forgetting=0.99, by="phase", after="tied")
    others = Linear("others", "separate", ("others",), forgetting=0.999, is_robust=False)
    members = [
        own,
        Linear("neighbours", "tied", ("bias", *OWN, *NEAR, *MEAN, "known"), forgetting=1.0),
        tied,
        replace(tied, name="tied, long memory", features=SMOOTH, penalty=1000.0, forgetting=1.0),
        Linear("separate", "separate", SMOOTH, 30.0),
        Linear("pooled", "pooled", SMOOTH, 10.0),
        Linear("tied, scaled", "tied", SMOOTH, is_scaled=True),
        phases,
        replace(phases, name="phases, days off", by="phase, day off", penalty=300.0),
        replace(phases, name="own phases", sharing="separate"),
        others,
        replace(others, name="others, residuals", after="tied", sees_residuals=True),
    ]
    if not are_many:
        members += [
            replace(one, name=f"{one.name} (asinh)", on="asinh", after=one.after and f"{one.after} (asinh)")
            for one in members
            if one.name in ON_ASINH
        ]
    left_out = {name for name in OF_FEW_STREAMS if are_many}
    if not n_alike:
        left_out |= {"others", "others, residuals"}
    if not sharing:
        left_out |= {"neighbours", "separate", "pooled", "others", "others, residuals", "own phases"}
    kept = [one for one in members if one.name not in left_out and (n_seasons or not one.by)]
    kept = [one for one in kept if is_short or one.by != "phase, day off"]
    looking = LOOK_AHEAD if are_few else LOOK_AHEAD_OF_MANY
    kept += [with_plan(one) for one in kept if has_plan and one.name in SEE_PLAN]
    return tuple(replace(one, looks_ahead=one.name in looking) for one in kept)


def with_plan(member: Linear) -> Linear:
    """Return a member that also sees what is planned."""
    after = member.after and f"{member.after}, planned"
    return replace(member, name=f"{member.name}, planned", features=(*member.features, "planned"), after=after)
