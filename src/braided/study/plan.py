"""Plan: which windows of which data, how much of each to tune on, and which methods: all that decides the result."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from itertools import pairwise
from typing import Any, NamedTuple, final

import numpy as np

from braided.errors import InputError
from braided.methods import METHODS, Clock, find_method, methods_on_samples
from braided.tables import Panel
from braided.types import Flags, Floats
from braided.validate import LARGEST_VALUE, count
from braided.version import __version__

SMALLEST_VALUE = 1e-150  # so that squares do not vanish
WINDOWS = 30
WINDOW_LENGTH = 400  # points in a window
TUNING_SHARES = {"I": 0.275, "II": 0.45}  # of a window to tune on: the paper's two experiments
PAPER_FORGETTING = (1.0, 0.8, 0.6, 0.4, 0.2, 0.01)  # the paper's, per sample of any task
SHORTEST_WINDOW = 40  # points, so that both parts are long enough to compare methods
METRICS = ("rmse", "mae", "rmse_to_no_change", "mae_to_no_change", "rmse_to_last_change", "mae_to_last_change")


@final
@dataclass(frozen=True)
class Plan:
    """The paper's experiment, or a variation of it."""

    data: str
    starts: tuple[int, ...]  # first steps of the windows
    length: int = WINDOW_LENGTH
    splits: dict[str, int] = field(default_factory=lambda: splits_of(WINDOW_LENGTH))  # steps to tune on, by experiment
    lags: int = 9
    seed: int = 0
    logarithm: bool = False  # of the levels, so that differences are growth rates
    forgetting: tuple[float, ...] = PAPER_FORGETTING  # what σ is tuned among
    per: Clock = "sample"  # what MT-WRLS forgets by; single filters by their own samples
    methods: tuple[str, ...] = field(default_factory=methods_on_samples)

    def __post_init__(self) -> None:
        for name, least in {"length": SHORTEST_WINDOW, "lags": 1, "seed": 0}.items():
            count(getattr(self, name), name, least)
        for name in self.methods:
            if not find_method(name).sees_samples:
                raise InputError(f"{name} is no method of the paper's study, whose windows hold samples: leave it out")
        known = [name for name in METHODS if name in self.methods]
        object.__setattr__(self, "methods", tuple(known))
        if not known:
            raise InputError("no methods: name at least one")

    def describe(self, panel: Panel) -> dict[str, Any]:
        """Return all that decides the result, and what the report says of the data; a store is recognised by it."""
        times = panel.times[list(self.starts)]
        return asdict(self) | {
            "tasks": panel.tasks,
            "source": panel.source,
            "synthetic": panel.synthetic,
            "times": times.tolist() if times.dtype.kind == "i" else times.astype(str).tolist(),
            "values": sha256(panel.values.tobytes()).hexdigest(),
            "metrics": METRICS,  # the columns of the scores: a store with others can't be read
            "version": __version__,
        }


class Unit(NamedTuple):
    """One window with one split: what is run and stored together."""

    window: int
    split: str

    @property
    def label(self) -> str:
        """A name for files and progress bars."""
        return f"window-{self.window + 1:03d}-{self.split}"


def splits_of(length: int) -> dict[str, int]:
    """Return how many steps of a window the paper's two experiments tune on."""
    return {name: round(share * length) for name, share in TUNING_SHARES.items()}


def plan_for(panel: Panel, windows: int = WINDOWS, seed: int = 0, methods: tuple[str, ...] | None = None) -> Plan:
    """Return the plan for a panel: the paper's, or that for yearly incomes; `windows` windows, or as many as fit."""
    count(windows, "windows")
    plan = Plan(panel.name, starts=(), seed=seed, methods=methods_on_samples() if methods is None else methods)
    if panel.name == "us-incomes":
        return _incomes(plan, len(panel.times))
    _insist_squares_fit(panel)
    longest = max((end - first for first, end in panel.complete_runs(1)), default=0)
    if longest < SHORTEST_WINDOW:
        raise InputError(
            f"{panel.name}: the longest evenly spaced stretch in which no task lacks a value has {longest} steps, and "
            f"{plan.lags} lags, a tuning period and a test period need {SHORTEST_WINDOW}: fill gaps, or leave out "
            "tasks with many"
        )
    length = min(WINDOW_LENGTH, longest)
    plan = replace(plan, length=length, splits=splits_of(length))
    return replace(plan, starts=_draw(panel, plan, windows))


def _insist_squares_fit(panel: Panel) -> None:
    """Refuse values with squares that overflow or vanish."""
    largest = np.fmax.reduce(np.abs(panel.values), initial=0.0)
    for place in np.flatnonzero((largest < SMALLEST_VALUE) | (largest > LARGEST_VALUE))[:1]:
        raise InputError(
            f"{panel.name}: the largest value of {panel.tasks[place]!r} is {largest[place]:g}: bring it between "
            f"{SMALLEST_VALUE:g} and {LARGEST_VALUE:g} by another unit, or leave it out"
        )


def _incomes(plan: Plan, years: int) -> Plan:
    """One window of 77 rounds, 25 or 40 of them for tuning; rounds are years, so forgetting is slow and per round."""
    lags = 3
    # Hidden layers for 48 tasks of 77 samples; and, to save time, the ADMM that is shown tuned as well.
    too_large = ("mt-wrls-elm", "wrls-elm", "mogd-elm", "madmm")
    kept = tuple(name for name in plan.methods if name not in too_large)
    if not kept:
        raise InputError(f"us-incomes has too few samples for {', '.join(plan.methods)}: name other methods")
    return replace(
        plan,
        starts=(0,),
        length=years,
        splits={"I": 25 + 1 + lags, "II": 40 + 1 + lags},
        lags=lags,
        logarithm=True,
        forgetting=(1.0, 0.99, 0.98, 0.95, 0.9, 0.8),
        per="round",
        methods=kept,
    )


def levels_of(panel: Panel, plan: Plan) -> Floats:
    """Return the levels that are differenced: the values, or their logarithms."""
    if plan.logarithm and not (panel.values[~np.isnan(panel.values)] > 0).all():
        raise InputError(f"{panel.name} has values of 0 or below: their growth can't be taken")
    return np.log(panel.values) if plan.logarithm else panel.values


def _draw(panel: Panel, plan: Plan, most: int) -> tuple[int, ...]:
    """Draw the first steps of at most `most` windows that are complete and do not overlap.

    In every part of a window every task must change, or its error has nothing to be compared with.
    """
    runs = panel.complete_runs(plan.length)
    starts = np.concatenate([np.arange(first, end - plan.length + 1) for first, end in runs])
    moves = np.vstack([np.zeros((1, len(panel.tasks)), bool), np.diff(panel.values, axis=0) != 0.0])
    drawn: list[int] = []
    for start in np.random.default_rng(plan.seed).permutation(starts).tolist():
        apart = all(abs(start - other) >= plan.length for other in drawn)
        if len(drawn) < most and apart and _varied(moves[start : start + plan.length], plan):
            drawn.append(start)
    # Where there is little room, windows one after the other may be more than were drawn.
    tiles = [start for first, end in runs for start in range(first, end - plan.length + 1, plan.length)]
    whole = [start for start in tiles if _varied(moves[start : start + plan.length], plan)]
    drawn = drawn if len(drawn) >= min(most, len(whole)) else whole[:most]
    if not drawn:
        raise InputError(
            f"{panel.name} has no window of {plan.length} complete steps in all parts of which every task changes: "
            "leave out tasks that lack values or do not change"
        )
    return tuple(drawn)


def _varied(moves: Flags, plan: Plan) -> bool:
    bounds = [1 + plan.lags, *plan.splits.values(), plan.length]
    return all(moves[first:end].any(axis=0).all() for first, end in pairwise(bounds))
