"""View: the values of all streams on one scale, with their units, similar streams and features."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Self, final

import numpy as np
import scipy.sparse as sparse

from braided._compiled.panel import (
    RULES,
    Calendar,
    Described,
    Panel,
    Ties,
    describe_inplace,
    feature_groups,
    fresh_panel,
)
from braided._compiled.targets import Far, Targets, describe_targets_inplace
from braided._compiled.targets import progressive_inplace as describe_rounds_inplace
from braided.errors import InputError
from braided.forecasting.auto.linear import with_blank_row
from braided.forecasting.auto.members import Start
from braided.forecasting.auto.seasons import Seasons
from braided.forecasting.clipping import Clipping
from braided.forecasting.units import LARGEST_FLOAT, Units
from braided.graph import TaskGraph
from braided.types import Floats, Ints
from braided.validate import insist_integers, insist_numbers

DENSE_UP_TO = 30  # streams; beyond that, each is tied to the most similar only
TIED_TO = 20  # most similar streams
MOST_ALIKE = 19  # streams that members see one by one
RIDGE = 0.1
ASINH_AT = 3.0  # asinh of this times value / median: nearly a logarithm from the median on
LARGEST_ASINH = 50.0
LEAST_REACH = 11  # rounds


@final
class View:
    """Values as levels, plain or on the asinh scale; `medians` are empty on the plain one."""

    def __init__(
        self,
        units: Units,
        graph: TaskGraph,
        alike: Ints,
        medians: Floats,
        seasons: Seasons,
        n_given: tuple[int, int],  # numbers of features in the groups known and planned
        horizon: int = 1,
    ) -> None:
        self.units, self.graph, self.alike, self.medians = units, graph, alike, medians
        self.seasons, self.n_given, self.horizon = seasons, n_given, horizon
        self.ties = self._ties()
        waves, n_seasons = int(seasons.waves.sum()), len(seasons.lengths)
        self.groups = feature_groups(waves, n_seasons, self.alike.shape[1], *n_given)
        n_rounds = max(seasons.reach, LEAST_REACH) + 1 + horizon
        self.panel = fresh_panel(graph.n_tasks, n_rounds, int(seasons.bins[-1]))
        self.clipping = Clipping.blank(graph.n_tasks, self.n_features)

    @classmethod
    def measure(
        cls,
        head: Floats,
        seasons: Seasons,
        n_given: tuple[int, int],
        sharing: bool,
        is_asinh: bool = False,
        horizon: int = 1,
    ) -> Self:
        """Measure units and similarities on the first rounds (h, T)."""
        medians = positive_medians(head) if is_asinh else np.empty(0)
        values = _scaled(head, medians)
        graph = similar_streams(values) if sharing else TaskGraph.independent(range(head.shape[1]), ridge=RIDGE)
        return cls(Units.measure(values), graph, most_alike(graph), medians, seasons, n_given, horizon)

    @property
    def n_features(self) -> int:
        """The number of features."""
        return self.groups["others"]

    @property
    def are_few(self) -> bool:
        """Whether tied filters know all streams at once, and not only the most similar."""
        return not self.graph.is_sparse or not self.graph.similarity.nnz

    @property
    def is_asinh(self) -> bool:
        """Whether it is on the asinh scale."""
        return self.medians.size > 0

    @property
    def start(self) -> Start:
        """What members need to start."""
        return Start(self.graph, self.groups, self.alike, self.seasons.n_phases, self.horizon)

    def _ties(self) -> Ties:
        links = sparse.csr_array(self.graph.similarity)
        links.sort_indices()
        places = links.indptr.astype(np.int64), links.indices.astype(np.int64)
        return Ties(*places, links.data, self.alike, self.seasons.waves, self.seasons.bins, self.seasons.known_from)

    def describe(self, calendar: Calendar, values: Floats, given: Floats, targets: Targets, far: Far) -> Described:
        """Return features, rules and targets of rounds of values (n, T), and remember these; fill `far`."""
        n, T = values.shape
        made = self._described(n)
        levels, given = np.ascontiguousarray(self.inward(values)), np.ascontiguousarray(given)  # compiled once
        describe_rounds_inplace(self.panel, self.ties, calendar, targets, levels, given, made, far)
        self.clipping.clip_inplace(made.X.reshape(n * T, -1), np.tile(np.arange(T), n), learn=True)
        self._give_planned(made, given)
        return made

    def _give_planned(self, made: Described, given: Floats) -> None:
        """Put what is known ahead into the features as it is: a rare promotion is not a wild value."""
        end, size = self.groups["planned"], self.n_given[1]
        made.X[:, :, end - size : end] = given[:, :, given.shape[2] - size :]

    def describe_next(self, calendar: Calendar, given: Floats, targets: Targets, far: Far) -> Described:
        """Return features and rules of the next round, whose values are not known yet; fill the last row of `far`."""
        made = self._described(1)
        back, phase, angle, _ = (array[0] for array in calendar)
        describe_inplace(self.panel, self.ties, back, phase, angle, given[0], made.X[0], made.rules[0])
        if len(far.X):
            ahead = targets.back[0], targets.phase[0]
            means = np.empty(len(self.seasons.lengths))
            describe_targets_inplace(self.panel, self.ties, *ahead, made.X[0], far, far.X.shape[1] - 1, means)
        self.clipping.clip_inplace(made.X[0], np.arange(self.graph.n_tasks))
        self._give_planned(made, given)
        made.last[0], made.scale[0] = self.panel.last, self.panel.scale
        made.y[0] = np.nan
        return made

    def _described(self, n: int) -> Described:
        T, n_rules = self.graph.n_tasks, RULES + 2 * len(self.seasons.lengths)
        return Described(np.empty((n, T, self.n_features)), np.empty((n, T, n_rules)), *np.empty((3, n, T)))

    def inward(self, values: Floats) -> Floats:
        """Return values (…, T) as levels; NaN where one is too large."""
        return self.units.inward(_scaled(values, self.medians))

    def outward(self, levels: Floats) -> Floats:
        """Return levels (…, T) as values."""
        values: Floats = levels * self.units.scale + self.units.centre
        if self.is_asinh:
            values = np.sinh(np.clip(values, -LARGEST_ASINH, LARGEST_ASINH)) * self.medians / ASINH_AT
        return values

    def join(self, graph: TaskGraph, values: Floats) -> None:
        """Make room for one more stream, the last of the graph; its units are measured on its last values (m,)."""
        if self.is_asinh:
            typical = np.median(values[values > 0.0]) if (values > 0.0).any() else np.median(self.medians)
            self.medians = np.append(self.medians, typical)
        own = _scaled(values, self.medians[-1:])
        self.units, self.graph, self.alike = self.units.joined(own), graph, with_blank_row(self.alike)
        self.ties = self._ties()
        levels = (own - self.units.centre[-1]) / self.units.scale[-1]
        self.panel = self.panel.with_stream(levels[:, None])
        self.clipping.join()

    def dump(self) -> dict[str, Any]:
        """Return all that is measured and remembered."""
        names = ("units", "graph", "medians", "alike", "clipping")
        return {name: getattr(self, name) for name in names} | {"panel": self.panel._asdict()}

    @classmethod
    def restore(cls, dumped: Mapping[str, Any], seasons: Seasons, n_given: tuple[int, int], horizon: int) -> Self:
        """Return the view that was dumped; raise InputError if its parts do not fit together."""
        units, graph, medians = dumped["units"], dumped["graph"], dumped["medians"]
        if not isinstance(units, Units) or not isinstance(graph, TaskGraph) or len(units.centre) != graph.n_tasks:
            raise InputError("the units and the graph of a view belong to different streams")
        insist_numbers(medians, "medians", (graph.n_tasks if medians.size else 0,))
        alike = dumped["alike"]
        insist_integers(alike, "alike", (graph.n_tasks, np.shape(alike)[1]), -1, graph.n_tasks - 1)
        view = cls(units, graph, alike, medians, seasons, n_given, horizon)
        clipping = dumped["clipping"]
        if not isinstance(clipping, Clipping) or clipping.squares.shape != view.clipping.squares.shape:
            raise InputError("the typical sizes of a view are of other streams or features")
        for name, fresh in view.panel._asdict().items():
            insist_numbers(dumped["panel"][name], name, fresh.shape, missing=True)
        view.panel = Panel(**dumped["panel"])
        view.clipping = clipping
        return view


def _scaled(values: Floats, medians: Floats) -> Floats:
    if not medians.size:
        return values
    with np.errstate(over="ignore"):
        relative = ASINH_AT * values / medians
    return np.arcsinh(np.clip(relative, -LARGEST_FLOAT, LARGEST_FLOAT))


def similar_streams(values: Floats) -> TaskGraph:
    """Return the graph of the streams, by rank correlations of their changes; if few, all are tied to each other."""
    n_streams = values.shape[1]
    if n_streams == 1:
        return TaskGraph.independent([0], ridge=RIDGE)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "no similarity")
        return TaskGraph.from_history(values, k=TIED_TO if n_streams > DENSE_UP_TO else None, ridge=RIDGE)


def most_alike(graph: TaskGraph) -> Ints:
    """Return the most similar streams of each (T, m), the most similar first; −1 where a sparse graph has fewer."""
    n_streams, m = graph.n_tasks, min(MOST_ALIKE, graph.n_tasks - 1)
    if not graph.is_sparse:
        itself = np.diag(np.full(n_streams, np.inf))
        return np.argsort(itself - graph.similarity, axis=1, kind="stable")[:, :m]
    links = sparse.csr_array(graph.similarity)
    alike = np.full((n_streams, min(m, int(np.diff(links.indptr).max(initial=0)))), -1)
    for t in range(n_streams):
        row = slice(links.indptr[t], links.indptr[t + 1])
        order = np.argsort(-links.data[row], kind="stable")[: alike.shape[1]]
        alike[t, : len(order)] = links.indices[row][order]
    return alike


def positive_medians(head: Floats) -> Floats:
    """Return the median of each stream's positive values; that of all streams where it has none."""
    everyone = np.median(head[head > 0.0])
    return np.array([np.median(column[column > 0.0]) if (column > 0.0).any() else everyone for column in head.T])
