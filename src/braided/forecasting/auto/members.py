"""Members: what Auto mixes, and the contract that all keep.

To add one, subclass `Member` as a frozen dataclass with a `start`, which returns a `Runner`: the member at work, which
forecasts a round of all streams and learns it afterwards. All read the same features; each says which, and how it
learns. `linear` has the filters that Auto chooses itself, `refit` regressors of other packages.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, final

import numpy as np

from braided.errors import InputError
from braided.forecasting.record import MODEL
from braided.forecasting.units import LARGEST_LEVEL
from braided.graph import TaskGraph, TaskKey
from braided.types import Flags, Floats, Ints

Scale: TypeAlias = Literal["plain", "asinh"]

OWN = ("recent", "older", "level")
NEAR = ("near", "near, older", "near, gap")
MEAN = ("mean", "mean, older", "mean, gap")
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
    is_planned: Flags  # (n, T) whether all that should be known ahead is known
    first: int  # number of the first round
    forecasts: Mapping[str, Floats]  # (n, T) of the members before this one
    moments: Floats  # (n, H, K) what the clock says of each round and of those after it
    far: Floats  # (H − 1, n, T, K) features as of later rounds, as `_compiled.targets` lists them
    plan: Floats  # (H − 1, n, T, K) what is known ahead of later rounds (`Planned.later_features`), NaN where unknown
    are_needed: bool = True  # whether the forecasts are used; if not, they may be NaN

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

        `rounds` is one round, before its values are known.
        """
        raise NotImplementedError(f"{type(self).__name__} looks ahead: it needs forecast_ahead")

    def learn_ahead(self, rounds: Rounds, changes: Floats) -> None:
        """Learn changes (H − 1, 1, T) over the last h = 2 … H rounds, of which the round given is the last.

        They are NaN where a level is missing, or a gap lies between. They are what was to be forecast h − 1 rounds ago.
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
    def after(self) -> str:
        """The member before it that it needs the forecasts of, on the same scale; none by default."""
        return ""

    @property
    def prior(self) -> float:
        """Its weight at the start; with 0, the default, an equal part of what is left for learners."""
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
    """A place holder in a list of members: stands for all that Auto would choose itself."""

    name: str = "defaults"

    def start(self, start: Start) -> Runner:
        """Refuse, as other members take its place before anything starts."""
        raise InputError("Defaults stands for other members, and does not start itself")


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
        if member.after and member.after not in before:
            raise InputError(f"{member.name} follows {member.after!r}: put that before it, on the same scale")


def with_defaults(members: tuple[Member, ...] | None, defaults: tuple[Member, ...]) -> tuple[Member, ...]:
    """Return members with the default ones in the place of `Defaults`; the default ones if there are no others."""
    if members is None:
        return defaults
    expanded = tuple(one for member in members for one in (defaults if isinstance(member, Defaults) else (member,)))
    insist_members(expanded)
    return expanded
