"""Linear: recursive least squares filters as members, which differ in what is shared.

| sharing    | streams share                                    |
|------------|--------------------------------------------------|
| "tied"     | what similar streams have learned (MT-WRLS)      |
| "separate" | nothing: a filter for each (WRLS)                |
| "pooled"   | everything: one filter for all                   |

Filters that are not tied can be split: one for each phase of the shortest season, and others for days off.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, final, get_args

import numpy as np

from braided._compiled.delayed import fresh_followers
from braided._compiled.panel import feature_groups
from braided.errors import InputError, NumericalError
from braided.forecasting.auto.following import Following
from braided.forecasting.auto.members import MEAN, NEAR, Member, Rounds, Runner, Scale, Start
from braided.forecasting.rescue import add_or_reset, progressive_or_reset
from braided.forgetting import Exponential
from braided.graph import TaskGraph, TaskKey
from braided.learners import MTWRLS, WRLS, Learner
from braided.types import Floats, Ints
from braided.validate import choice, fraction, insist_kinds, insist_numbers, positive

Sharing: TypeAlias = Literal["tied", "separate", "pooled"]
Split: TypeAlias = Literal["", "phase", "phase, day off"]

TOLERANCE = 0.01  # of the local solver, in typical innovations; a finer one takes longer and gains nothing
ROBUST = 5.0  # deviations beyond which an error counts for less
CLIP_SCALED_AT = 10.0  # typical changes, of scaled targets
RESIDUAL_LAGS = 2
CLIP_RESIDUALS_AT = 10.0  # units
OF_OTHERS = {*NEAR, *MEAN, "others"}


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
