"""Run the suite: every method on every panel and horizon, with the same values scored for all.

>>> import braided as bd
>>> panel = bd.datasets.wind_field(seed=0, steps=100, sites=3)         # synthetic
>>> outcome, = run_suite([panel], names=("best-rule",))
>>> outcome.cells["best-rule"].note, bool(outcome.cells["best-rule"].error <= 1.0)
('mixture of rules', True)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from importlib.util import find_spec
from time import perf_counter
from typing import Literal, NamedTuple, TypeAlias, final

import numpy as np

from braided.errors import InputError
from braided.forecasting.record import NO_CHANGE
from braided.processes import workers
from braided.suite import own
from braided.suite.mixture import mixture_of
from braided.suite.past import Past, cuts_of
from braided.suite.peers import classical, lightgbm, ridge_var
from braided.suite.peers.progress import Progress, silent
from braided.suite.rules import rules_of
from braided.suite.scores import Cell, Outcome, ratios, root_mean_squares, scored_values
from braided.tables import Panel
from braided.types import Floats

Kind: TypeAlias = Literal["rule", "braided", "peer"]
Advance: TypeAlias = Callable[[str, float], None]  # what is being done, and which share of all is finished

TO_INSTALL = "pip install 'braided[peers]'"
MOST_VALUES = 5_000_000  # of a panel, for regressions of all streams
HORIZONS = (1, 3, 6, 12, 24, 48, 96)


class Made(NamedTuple):
    """The forecasts of a method on a panel."""

    forecasts: Floats  # (rounds, T), NaN where there is none
    note: str = ""


@final
@dataclass(frozen=True)
class SuiteMethod:
    """A method of the suite."""

    name: str
    title: str
    about: str
    kind: Kind
    forecast: Callable[[Past, int, Progress], Made]  # of a panel, in so many processes
    needs: str = ""  # a package that it needs
    slow: bool = False  # whether long panels are refused
    ahead: bool = False  # whether it forecasts later rounds than the next


def _best_rule(past: Past, jobs: int, progress: Progress) -> Made:
    """The best in hindsight of the rules and their mixture."""
    rules = rules_of(past)
    if past.horizon == 1:  # for later rounds, it would learn errors that are not known yet
        rules["mixture of rules"] = mixture_of(np.stack([*rules.values()]), past.changes)
    forecasts = {name: past.forecasts(changes) for name, changes in rules.items()}
    errors = {name: Cell(ratios(past, made)).error for name, made in forecasts.items()}
    best = min(errors, key=errors.__getitem__)
    return Made(forecasts[best], best)


def _seasonal(past: Past, jobs: int, progress: Progress) -> Made:
    rules = rules_of(past)
    name = next((name for name in rules if name.startswith("value a ")), NO_CHANGE)
    return Made(past.forecasts(rules[name]), name)


def _lightgbm(past: Past, jobs: int, progress: Progress) -> Made:
    """The better, in hindsight, of both ways to measure units: growing streams need one, short panels the other."""

    def half(first_share: float, again: bool) -> Floats:
        return lightgbm.forecast(past, jobs, again, lambda share: progress(first_share + share / 2.0))

    return Made(min((half(0.0, again=False), half(0.5, again=True)), key=lambda made: Cell(ratios(past, made)).error))


def _classical(past: Past, jobs: int, progress: Progress, kind: classical.Kind) -> Made:
    forecasts = classical.forecast(past, kind, jobs, progress)
    n_streams, all_streams = len(classical.streams_of(past, kind)), len(past.panel.tasks)
    return Made(forecasts, f"{n_streams} of {all_streams} streams" * (n_streams < all_streams))


def _methods() -> Iterator[SuiteMethod]:
    # fmt: off
    yield SuiteMethod(
        "best-rule", "Best rule",
        "the best in hindsight of the rules without a model and of their mixture", "rule", _best_rule, ahead=True)
    yield SuiteMethod(
        "seasonal-naive", "Seasonal naive",
        "the value a season before, the shortest of the clock, as long ago as it takes to be known", "rule", _seasonal,
        ahead=True)
    yield SuiteMethod(
        "single", "One filter per stream",
        "recursive least squares on each stream's own changes and level, tuned on the first fifth",
        "braided", lambda past, *_: Made(own.run_forecasts(past, ("wrls",))))
    yield SuiteMethod(
        "run", "Best of four tuned methods",
        "the best of four methods on the first fifth: `braided run --method …`", "braided",
        lambda past, *_: Made(own.run_forecasts(past)))
    yield SuiteMethod(
        "auto-alone", "Auto without sharing",
        "the same mixture, in which no stream sees another", "braided",
        lambda past, *_: Made(own.auto_forecasts(past, sharing=False)), ahead=True)
    yield SuiteMethod(
        "auto", "Auto", "a mixture of rules and filters, weighted as it forecasts", "braided",
        lambda past, *_: Made(own.auto_forecasts(past)), ahead=True)
    yield SuiteMethod(
        "lightgbm", "LightGBM",
        "gradient-boosted trees, one model of all streams, refitted at ten cuts", "peer", _lightgbm,
        needs="lightgbm", slow=True, ahead=True)
    yield SuiteMethod(
        "ridge-var", "Ridge VAR",
        "a regression per stream on its own past and that of the 20 streams most like it, refitted at ten "
        "cuts", "peer", lambda past, *_: Made(ridge_var.forecast(past)), slow=True)
    yield SuiteMethod(
        "auto-ets", "AutoETS",
        "exponential smoothing per stream, chosen and fitted at ten cuts on the last 1,000 values", "peer",
        partial(_classical, kind="ETS"), needs="statsforecast")
    yield SuiteMethod(
        "auto-arima", "AutoARIMA",
        "ARIMA per stream, chosen and fitted at ten cuts on the last 1,000 values", "peer",
        partial(_classical, kind="ARIMA"), needs="statsforecast")
    # fmt: on


SUITE_METHODS = {one.name: one for one in _methods()}


def find_suite_method(name: str) -> SuiteMethod:
    """Return a method of the suite by its name."""
    if name not in SUITE_METHODS:
        near = get_close_matches(name.lower(), SUITE_METHODS, n=1, cutoff=0.0)[0]
        raise InputError(
            f"the suite has no method {name!r}: did you mean {near!r}? There are {', '.join(SUITE_METHODS)}"
        )
    return SUITE_METHODS[name]


def run_suite(
    panels: Iterable[Panel],
    names: Sequence[str] = tuple(SUITE_METHODS),
    jobs: int = 1,
    progress: Advance = lambda what, share: None,
    horizon: int = 1,
) -> list[Outcome]:
    """Run methods on panels, at some horizons up to the longest; `jobs`, the number of processes, moves no result."""
    workers(jobs)  # refuses 0 before anything is done
    methods = [find_suite_method(name) for name in names]
    pasts = [Past(panel, cuts_of(len(panel.times)), h) for panel in panels for h in horizons_of(panel, horizon)]
    total, outcomes = len(methods) * len(pasts), []
    for number, past in enumerate(pasts):
        cells: dict[str, Cell] = {}
        for place, method in enumerate(methods):
            where = past.panel.name + f", {past.horizon} ahead" * (horizon > 1)
            what, done = f"{where}: {method.title}", number * len(methods) + place
            progress(what, done / total)

            def advance(share: float, what: str = what, done: int = done) -> None:
                progress(what, (done + share) / total)

            cells[method.name] = run_one(method, past, jobs, advance)
        outcomes.append(_outcome(past, cells))
    return outcomes


def horizons_of(panel: Panel, longest: int) -> list[int]:
    """Return the horizons at which methods are compared: 1, 3, 6, 12, … up to a twentieth of the rounds.

    >>> import braided as bd
    >>> horizons_of(bd.datasets.wind_field(seed=0, steps=300, sites=2), 24)         # synthetic
    [1, 3, 6, 12]
    """
    return [h for h in HORIZONS if h == 1 or h <= min(longest, len(panel.times) // 20)]


def run_one(method: SuiteMethod, past: Past, jobs: int = 1, progress: Progress = silent) -> Cell:
    """Run one method on one panel; a note says why where it can't."""
    nothing = Cell(np.full(len(past.panel.tasks), np.nan))
    if method.needs and find_spec(method.needs) is None:
        return replace(nothing, note=TO_INSTALL)
    if past.horizon > 1 and not method.ahead:
        return replace(nothing, note="one step ahead only")
    if method.slow and past.panel.values.size > MOST_VALUES:
        return replace(nothing, note=f"more than {MOST_VALUES:,} values")
    began = perf_counter()
    try:
        made = method.forecast(past, jobs, progress)
    except InputError as error:  # this method can't take such a panel; the others can
        return replace(nothing, note=str(error))
    return Cell(ratios(past, made.forecasts), made.note, perf_counter() - began)


def _outcome(past: Past, cells: dict[str, Cell]) -> Outcome:
    panel = past.panel
    counts = scored_values(past).sum(axis=0)
    base = root_mean_squares(past, past.no_change)
    size = len(panel.times), past.first
    return Outcome(panel.name, panel.source, panel.tasks, *size, counts, base, cells, past.horizon)
