"""Ensemble: all members at work on T streams, and the mixture that weights them by how good they have been.

Values become levels in units (`View`), levels become features, members forecast changes from these, and the mixture
combines the changes. Everything that is measured, units, similar streams and seasons, is measured on the rounds that an
ensemble starts with; it then learns these rounds like all later ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self, final

import numpy as np

from braided._compiled.mixture import COMMON_SHARE, Mixed, Mixture, fresh_mixture, take_over_inplace
from braided._compiled.mixture import progressive_inplace as mix_inplace
from braided._compiled.panel import ROUNDS, Calendar, Described
from braided._compiled.targets import Far, Targets
from braided.errors import InputError
from braided.forecasting.auto.auto import LONGEST_HORIZON, Auto
from braided.forecasting.auto.defaults import default_members
from braided.forecasting.auto.horizons import Came, Horizons, Later, restored_mixture
from braided.forecasting.auto.members import (
    RULE_NAMES,
    Member,
    Rounds,
    Runner,
    as_forecasts,
    insist_members,
    with_defaults,
)
from braided.forecasting.auto.seasons import HOUR, Seasons
from braided.forecasting.auto.surroundings import Stretch
from braided.forecasting.auto.view import View
from braided.forecasting.record import NO_CHANGE
from braided.graph import TaskGraph
from braided.types import Floats
from braided.validate import LARGEST_COUNT, count, insist_numbers

LEARNERS_FROM = 20  # rounds; before, rules alone forecast
LEARNERS_PRIOR = 150.0  # after h rounds, learners together start with (1 − NO_CHANGE_PRIOR) · h / (h + this)
NO_CHANGE_PRIOR = 0.2  # of "no change": on a random walk nothing is better, and little else is as good
MOST_GIVEN = 0.5  # of the weight at the start, to members that ask for some
MANY_STREAMS = 1000  # from which fewer members are worth their time
NUMBERS_AT_ONCE = 10_000_000  # features, gains and forecasts that are in memory together
FEATURES_OF_SAMPLE = 200  # at most, roughly
OF_ALL_STREAMS = RULE_NAMES[-2:]


class Made(NamedTuple):
    """Forecasts of n rounds, in the values' units, and those of all members."""

    forecast: Floats  # (n, T) NaN before a stream's first value
    last: Floats  # (n, T) last known value
    members: Floats  # (n, T, K) changes that members and rules forecast, in units
    weights: Floats  # (n, K) mean over the streams
    later: Later  # of the rounds after the next

    @property
    def forecasts(self) -> Floats:
        """Those of all horizons (H, n, T)."""
        return np.concatenate([self.forecast[None], self.later.mean])


def prior_of(names: list[str], n_learners: int, n_rounds: int, own: Mapping[str, float]) -> Floats:
    """Return the weights at the start, of learners and then of rules; some learners ask for weights of their own.

    >>> prior_of(["a", "b", "no change"], 2, 150, {"b": 0.1}).round(3)
    array([0.36, 0.1 , 0.54])
    """
    prior, rest = np.empty(len(names)), 1.0 - NO_CHANGE_PRIOR
    given = np.array([own.get(name, 0.0) for name in names])
    n_others = n_learners - int(np.count_nonzero(given))
    share = n_rounds / (n_rounds + LEARNERS_PRIOR) if n_others else 0.0
    prior[:n_learners] = rest * share / max(n_others, 1)
    prior[n_learners:] = rest * (1.0 - share) / (len(names) - n_learners)
    prior[names.index(NO_CHANGE)] += NO_CHANGE_PRIOR
    if not given.any():
        return prior
    total = float(given.sum())
    used = min(total, MOST_GIVEN)
    return np.where(given > 0.0, given * (used / total), prior * (1.0 - used))


@final
class Ensemble:
    """Members, their views and their mixture; made by `start`, or by `restore`."""

    def __init__(
        self,
        views: list[View],
        members: Sequence[Member],
        seasons: Seasons,
        sharing: bool,
        horizon: int = 1,
        n_planned: int = 0,  # columns that are known ahead, with holidays
    ) -> None:
        self.views, self.members, self.seasons, self.sharing = views, tuple(members), seasons, sharing
        self.n_planned = n_planned
        self.runners: list[dict[str, Runner]] = [
            {one.name: one.start(view.start) for one in members if (one.on == "asinh") == view.is_asinh}
            for view in views
        ]
        self.positions: Floats = np.empty(0)  # of the last rounds
        self.rounds = 0
        rules = self._rule_names  # without sharing, those that see one stream only
        self._rules = [k for k, name in enumerate(rules) if sharing or name not in OF_ALL_STREAMS]
        self.names = [*(name for runners in self.runners for name in runners), *(rules[k] for k in self._rules)]
        self.mixture = fresh_mixture(np.ones(len(self.names)), self.n_streams, COMMON_SHARE if sharing else 0.0)
        self.used: Floats = np.zeros((self.n_streams, len(self.names)))  # weights, summed over the rounds
        self.horizons = self._horizons(horizon) if horizon > 1 else None

    @classmethod
    def start(
        cls, head: Stretch, seasons: Seasons, auto: Auto, sharing: bool, before: Self | None, horizon: int = 1
    ) -> Self:
        """Return an ensemble that has learned the first rounds; equal members keep their weights so far."""
        values, planned = head.values, head.planned
        n_known, n_flags = planned.table.shape[2], planned.flags.shape[2]
        n_given = head.given.shape[2], 2 * n_known
        n_rounds, n_streams = values.shape
        views = [View.measure(values, seasons, n_given, sharing, horizon=horizon)]
        members: Sequence[Member] = ()
        if n_rounds >= LEARNERS_FROM:
            is_short = seasons.is_dated and seasons.step <= HOUR
            n_alike, sizes = views[0].alike.shape[1], (views[0].are_few, n_streams >= MANY_STREAMS)
            defaults = default_members(len(seasons.lengths), is_short, n_alike, *sizes, sharing, n_known > 0)
            members = with_defaults(auto.members, defaults)
            if not sharing:
                members = [one for one in (member.alone() for member in members) if one is not None]
            if not auto.robust:
                members = [member.plain() for member in members]
        if (values < 0.0).any() or not (values > 0.0).any():
            members = [one for one in members if one.on != "asinh"]
        if any(one.on == "asinh" for one in members):
            views.append(View.measure(values, seasons, n_given, sharing, is_asinh=True))
        ensemble = cls(views, members, seasons, sharing, horizon, n_known + n_flags)
        ensemble._prefer_learners(n_rounds)
        if before is not None and before.names != ensemble.names:
            before = None
        learns = True, True
        if before is not None:
            learns = False, not ensemble._take_weights(before)
        size, first = ensemble.rounds_at_once, 0
        are_used = learns[0] or (learns[1] and ensemble.horizons is not None)
        kept = n_rounds - horizon + 1  # forecasts made from here on are learned later
        while first < n_rounds:
            is_needed = are_used or first >= kept
            end = min(first + size, n_rounds if is_needed else kept)
            ensemble.advance(head.rows(slice(first, end)), learns_weights=learns, are_needed=is_needed)
            first = end
        ensemble.used[:] = 0.0
        return ensemble

    @property
    def n_streams(self) -> int:
        """T."""
        return self.views[0].graph.n_tasks

    @property
    def rounds_at_once(self) -> int:
        """How many rounds to describe together, so that memory does not grow with the rounds."""
        numbers = FEATURES_OF_SAMPLE
        if self.horizons is not None:
            inputs = self.horizons.X.shape[3] + 2 * self.horizons.plan.shape[3]
            numbers += self.horizons.n * 2 * (inputs + len(self.horizons.names))
            numbers += sum(runner.numbers_ahead for runner in self.runners[0].values() if runner.looks_ahead)
        return max(NUMBERS_AT_ONCE // (numbers * max(self.n_streams, 1)), 1)

    @property
    def graph(self) -> TaskGraph:
        """The graph of the streams, whose keys are 0, 1, …"""
        return self.views[0].graph

    @property
    def _rule_names(self) -> list[str]:
        seasonal = [(f"value {words} ago", f"change {words} ago") for words in self.seasons.in_words]
        return [*RULE_NAMES, *(name for pair in seasonal for name in pair)]

    @property
    def n_learners(self) -> int:
        """The number of members that learn; rules follow them."""
        return sum(map(len, self.runners))

    def _horizons(self, horizon: int) -> Horizons:
        followed = {name: runner.is_robust for name, runner in self.runners[0].items() if runner.looks_ahead}
        kind = self.sharing, self.views[0].are_few, self.n_planned
        return Horizons(horizon, self.n_streams, self.seasons, followed, *kind)

    def _prefer_learners(self, n_rounds: int) -> None:
        """Set the weights at the start: the more rounds learners have learned, the more weight they share."""
        own = {member.name: member.prior for member in self.members if member.prior}
        self.mixture.prior[:] = prior_of(self.names, self.n_learners, n_rounds, own)
        if self.horizons is not None:
            n_learners = len(self.horizons.followed) + len(self.horizons.members)
            for mixture in self.horizons.mixtures:
                mixture.prior[:] = prior_of(self.horizons.names, n_learners, n_rounds, own)

    def _take_weights(self, before: Self) -> bool:
        """Go on with the weights of an ensemble with the same members and streams, or fewer streams.

        Return whether that could be done for later rounds, too: with more streams, other members may look ahead.
        """
        ratio = before.views[0].units.scale / self.views[0].units.scale[: before.n_streams]
        take_over_inplace(self.mixture, before.mixture, ratio)
        if self.horizons is None or before.horizons is None or self.horizons.names != before.horizons.names:
            return False
        self.horizons.take_weights(before.horizons, ratio)
        return True

    # Rounds --------------------------------------------------------------------------------------------------------

    def advance(
        self, rounds: Stretch, learns_weights: tuple[bool, bool] = (True, True), are_needed: bool = True
    ) -> Made:
        """Forecast each round before it is learned; weights, too, or not: of the next round, and of those after it.

        Forecasts that are not needed may be missing.
        """
        calendar, targets, self.positions = self._calendar(rounds)
        given = rounds.features()
        described = [view.describe(calendar, rounds.values, given, *targets[view.horizon > 1]) for view in self.views]
        plain, levels = described[0], self.views[0].inward(rounds.values)
        came, far = None, None
        if self.horizons is not None:
            came = self.horizons.came(levels, plain.last, rounds.is_after_gap)
            far = targets[True][1].X, rounds.planned.later_features()
        changes, followed = self._forecasts(described, rounds, calendar, far, came, are_needed)
        self.rounds += len(rounds.stamps)
        mixed = self._mixed(*changes.shape)
        if learns_weights[0]:  # from every value, after a missing one too
            mix_inplace(self.mixture, changes, levels - plain.last, mixed)
        later = None
        if self.horizons is not None and came is not None and far is not None:
            later = self.horizons.advance(*targets[True], far[1], followed, came, learns_weights[1])
        return self._made(plain.last, changes, mixed, later)

    def ahead(self, rounds: Stretch) -> Made:
        """Forecast one round, whose values are not known yet, and those after it, and learn nothing."""
        calendar, targets, _ = self._calendar(rounds)
        given = rounds.features()
        described = [view.describe_next(calendar, given, *targets[view.horizon > 1]) for view in self.views]
        far = None if self.horizons is None else (targets[True][1].X, rounds.planned.later_features())
        changes, followed = self._forecasts(described, rounds, calendar, far, None, is_next=True)
        mixed = self._mixed(*changes.shape)._replace(by_stream=self.used.copy())
        unchanged = Mixture(*(array.copy() for array in self.mixture))
        mix_inplace(unchanged, changes, described[0].y, mixed)
        later = None
        if self.horizons is not None and far is not None:
            later = self.horizons.forecast(*targets[True], far[1], followed)
        return self._made(described[0].last, changes, mixed, later)

    def _calendar(self, rounds: Stretch) -> tuple[Calendar, dict[bool, tuple[Targets, Far]], Floats]:
        """Return where rounds lie in seasons, those after with room for features, and the positions to remember."""
        positions = self.seasons.positions(rounds.stamps)
        calendar = self.seasons.calendar(positions, self.positions, rounds.is_after_gap)
        n, n_seasons = len(positions), len(self.seasons.lengths)
        ahead = {False: (Targets.none(n, n_seasons), Far.fresh(0, n, self.n_streams, n_seasons))}
        if self.horizons is not None:
            targets = self.seasons.targets(self.seasons.positions(rounds.targets), self.positions)
            ahead[True] = targets, self.horizons.room(n)
        known = np.maximum.accumulate(np.append(self.positions, positions))  # as in the calendar, however they are cut
        return calendar, ahead, known[-len(self.views[0].panel.levels) :]

    def _mixed(self, n: int, n_streams: int, n_members: int) -> Mixed:
        return Mixed(np.zeros((n, n_streams)), np.zeros((n, n_members)), self.used)

    def _made(self, last: Floats, changes: Floats, mixed: Mixed, later: Later | None) -> Made:
        view = self.views[0]
        forecast = view.outward(last + mixed.mean)
        if later is None:
            later = Later(*np.empty((2, 0, *last.shape)))
        mean, naive = (view.outward(last + change) for change in (later.mean, later.naive))
        return Made(forecast, view.outward(last), changes, mixed.weights, Later(mean, naive))

    def _forecasts(
        self,
        described: list[Described],
        rounds: Stretch,
        calendar: Calendar,
        far: tuple[Floats, Floats] | None,  # features as of later rounds, and what is known ahead of these
        came: Came | None,
        are_needed: bool = True,
        is_next: bool = False,
    ) -> tuple[Floats, dict[str, Floats]]:
        """Return what all members and rules forecast (n, T, K), as changes of the plain levels.

        And what those that look ahead forecast for later rounds (H − 1, n, T); `came` is what they learn.
        """
        plain = described[0]
        made: list[Floats] = []
        followed: dict[str, Floats] = {}
        place = self.seasons.phases(calendar.phase), rounds.is_day_off.astype(np.int64), rounds.planned.is_known
        n = len(rounds.stamps)
        looking = () if self.horizons is None else self.horizons.followed
        before = {one.after for one in self.members} | ({self.horizons.base} if self.horizons else set())  # for others
        for view, known, runners in zip(self.views, described, self.runners, strict=True):
            forecasts: dict[str, Floats] = {}
            moments = self.seasons.moments(rounds.targets[:, : view.horizon])
            nothing = np.empty((0, *known.y.shape, 0))
            later = (nothing, nothing) if far is None or view.horizon == 1 else (far[0][:, -n:], far[1])
            for name, runner in runners.items():
                given = Rounds(known.X, known.y, known.scale, *place, self.rounds, forecasts, moments, *later)
                if not are_needed and name not in before:
                    given = replace(given, are_needed=False)
                if is_next:
                    changes = runner.forecast(given)
                    if name in looking:
                        followed[name] = runner.forecast_ahead(given)
                elif came is not None and name in looking:
                    changes, followed[name] = runner.progressive_ahead(given, came.changes)
                else:
                    changes = runner.progressive(given)
                forecasts[name] = as_forecasts(changes, known.y.shape, f"member {name!r}")
                if name in followed:
                    shape = (view.horizon - 1, *known.y.shape)
                    followed[name] = as_forecasts(followed[name], shape, f"member {name!r}")
            if view.is_asinh:
                inward = self.views[0].inward
                forecasts = {
                    name: inward(view.outward(known.last + change)) - plain.last for name, change in forecasts.items()
                }
            made += forecasts.values()
        rules = plain.rules[:, :, self._rules]
        together = np.concatenate([np.stack(made, axis=2), rules], axis=2) if made else rules
        return np.ascontiguousarray(together), followed

    # Streams that join ---------------------------------------------------------------------------------------------

    def join(self, values: Floats) -> None:
        """Make room for one more stream, with the average similarity to the others; `values` (m,) are its last."""
        links = self.graph.typical_links() if self.sharing else {}
        for view, runners in zip(self.views, self.runners, strict=True):
            graph = view.graph.join(view.graph.n_tasks, links)
            view.join(graph, values)
            for runner in runners.values():
                runner.join(graph, links)
        self.mixture = self.mixture.with_stream()
        if self.horizons is not None:
            self.horizons.join()
        self.used = np.pad(self.used, ((0, 1), (0, 0)))

    @property
    def breakdowns(self) -> int:
        """How often a member broke down and was reset."""
        later = 0 if self.horizons is None else self.horizons.resets
        return later + sum(runner.breakdowns for runners in self.runners for runner in runners.values())

    # Saving --------------------------------------------------------------------------------------------------------

    def dump(self) -> dict[str, Any]:
        """Return all that is measured and learned."""
        return {
            "seasons": self.seasons,
            "members": self.members,
            "sharing": self.sharing,
            "views": [view.dump() for view in self.views],
            "n_given": self.views[0].n_given,
            "n_planned": self.n_planned,
            "runners": [{name: one.dump() for name, one in runners.items()} for runners in self.runners],
            "mixture": self.mixture._asdict(),
            "horizon": self.views[0].horizon,
            "horizons": [] if self.horizons is None else [self.horizons.dump()],
            "positions": self.positions,
            "rounds": self.rounds,
            "used": self.used,
        }

    @classmethod
    def restore(cls, dumped: Mapping[str, Any]) -> Self:
        """Return the ensemble that was dumped; raise InputError if its parts do not fit together."""
        seasons, members = dumped["seasons"], dumped["members"]
        insist_members(members)
        if not isinstance(seasons, Seasons) or not 1 <= len(dumped["views"]) <= 2:
            raise InputError("an ensemble has no seasons, or no view")
        horizon = count(dumped["horizon"], "horizon", most=LONGEST_HORIZON)
        horizons = (horizon, 1)[: len(dumped["views"])]
        n_given = dumped["n_given"]
        views = [
            View.restore(one, seasons, n_given, ahead) for one, ahead in zip(dumped["views"], horizons, strict=True)
        ]
        if len({view.graph.n_tasks for view in views}) != 1:
            raise InputError("the views of an ensemble belong to different streams")
        n_planned = count(dumped["n_planned"], "n_planned", least=0)
        ensemble = cls(views, members, seasons, bool(dumped["sharing"]), horizon, n_planned)
        for runners, held in zip(ensemble.runners, dumped["runners"], strict=True):
            if runners.keys() != held.keys():
                raise InputError(f"the members are {', '.join(runners)}; the saved ones are {', '.join(held)}")
            for name, runner in runners.items():
                runner.restore(held[name])
        ensemble.mixture = restored_mixture(dumped["mixture"], ensemble.mixture)
        if len(dumped["horizons"]) != (ensemble.horizons is not None):
            raise InputError(f"the ensemble forecasts {horizon} rounds ahead; what was saved does otherwise")
        if ensemble.horizons is not None:
            ensemble.horizons.restore(dumped["horizons"][0])
        ensemble.rounds = count(dumped["rounds"], "rounds of the ensemble", least=0, most=LARGEST_COUNT)
        if any(view.panel.totals[ROUNDS] != ensemble.rounds for view in views):
            raise InputError(f"the ensemble has learned {ensemble.rounds} rounds, its views a different number")
        insist_numbers(dumped["used"], "used", ensemble.used.shape)
        insist_numbers(dumped["positions"], "positions", (min(ensemble.rounds, len(views[0].panel.levels)),))
        ensemble.used, ensemble.positions = dumped["used"], dumped["positions"]
        return ensemble
