"""Results: what is in a store, arranged for tables and figures."""

from __future__ import annotations

import json
from collections import Counter
from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from braided.evaluation import PROTOCOLS
from braided.statistics import Comparison, compare
from braided.study.methods import METHODS, Method
from braided.study.run import METRICS
from braided.study.store import Columns, Store
from braided.types import Floats, Ints


class Curve(NamedTuple):
    """Forecasts of one task in one window."""

    steps: Ints
    actual: Floats
    forecast: Floats


@final
class Results:
    """The finished units of a store.

    `scores` has the axes window, split, protocol, method, task, metric; NaN where a method has no such protocol.
    """

    def __init__(self, store: Store) -> None:
        self.about = store.about
        self.tasks: tuple[str, ...] = tuple(self.about["tasks"])
        self.splits: tuple[str, ...] = tuple(self.about["splits"])
        self.methods: tuple[Method, ...] = tuple(METHODS[name] for name in self.about["methods"])
        self._store = store
        rows = store.read("scores")
        self.windows = len(np.unique(rows["window"]))
        axes = (self.windows, len(self.splits), len(PROTOCOLS), len(self.methods), len(self.tasks))
        self.scores: Floats = np.full((*axes, len(METRICS)), np.nan)
        self.scores[self._places(rows)] = np.stack([rows[name] for name in METRICS], axis=1)

    @property
    def name(self) -> str:
        """The name of the data."""
        return str(self.about["data"])

    def _places(self, rows: Columns) -> tuple[Ints, ...]:
        labels = {
            "window": np.unique(rows["window"]).tolist(),
            "split": self.splits,
            "protocol": PROTOCOLS,
            "method": [method.name for method in self.methods],
            "task": self.tasks,
        }
        return tuple(_positions(rows[name], order) for name, order in labels.items() if name in rows)

    def table(self, split: str, protocol: str, metric: str) -> Floats:
        """Return one metric as (windows, methods), the mean over the tasks; NaN for methods without that protocol."""
        where = self.splits.index(split), PROTOCOLS.index(protocol)
        return self.scores[:, *where, :, :, METRICS.index(metric)].mean(axis=2)

    def ranked(self, split: str, protocol: str, paper_only: bool = True) -> tuple[list[Method], Comparison] | None:
        """Compare methods over the windows by RMSE relative to persistence of the level; None where two are needed."""
        table = self.table(split, protocol, "rmse_to_level")
        chosen = [
            place
            for place, method in enumerate(self.methods)
            if (method.paper or not paper_only) and np.isfinite(table[:, place]).all()
        ]
        if len(chosen) < 2 or self.windows < 2:
            return None
        return [self.methods[place] for place in chosen], compare(table[:, chosen])

    @cached_property
    def choices(self) -> Columns:
        """The table of chosen parameters."""
        return self._store.read("choices")

    def chosen(self, split: str, protocol: str, method: str) -> dict[str, Counter[float]]:
        """Return how often each value of each parameter was chosen."""
        rows = self._rows(self.choices, split=split, protocol=protocol, method=method)
        counts: dict[str, Counter[float]] = {}
        for text in self.choices["parameters"][rows]:
            for name, value in (json.loads(text) or {}).items():
                counts.setdefault(name, Counter())[value] += 1
        return counts

    def breakdowns(self, split: str, protocol: str, method: str) -> int:
        """Return in how many windows a method broke down on the test part, at least once."""
        rows = self._rows(self.choices, split=split, protocol=protocol, method=method)
        return int((self.choices["broke"][rows] > 0).sum())

    def similarity(self, window: int, split: str) -> Floats:
        """Return the similarities (T, T) that the training part of a window gave."""
        similarity: Floats = self._store.read("graphs", window=window, split=split)["similarity"]
        return similarity.reshape(len(self.tasks), -1)

    def series(self, window: int) -> Floats:
        """Return the levels (steps, T) of a window."""
        level: Floats = self._store.read("series", window=window, split=self.splits[0])["level"]
        return level.reshape(-1, len(self.tasks))

    def curve(self, window: int, split: str, protocol: str, method: str, task: str) -> Curve:
        """Return what was forecast of a task in a window, beside what came."""
        where = {"window": window, "split": split, "protocol": protocol, "method": method, "task": task}
        rows = self._store.read("forecasts", **where)
        return Curve(rows["step"], rows["actual"], rows["forecast"])

    def error_over_time(self, split: str, protocol: str, method: str) -> tuple[Ints, Floats, Floats]:
        """Return the steps of a window, and at each the mean square error over windows and tasks, and that of 0."""
        rows = self._store.read("forecasts", split=split, protocol=protocol, method=method)
        steps, of = np.unique(rows["step"], return_inverse=True)
        own, zero = (
            np.bincount(of, e**2) / np.bincount(of) for e in (rows["actual"] - rows["forecast"], rows["actual"])
        )
        return steps, own, zero

    @cached_property
    def timings(self) -> Columns:
        """The table of what everything took."""
        return self._store.read("timings")

    def seconds(self, method: str) -> tuple[float, float, float]:
        """Return the seconds that tuning and testing a method took in all, and the microseconds per forecast sample."""
        rows = self._rows(self.timings, method=method)
        tuning, testing, samples = (float(self.timings[name][rows].sum()) for name in ("tuning", "testing", "samples"))
        return tuning, testing, 1e6 * testing / samples

    @staticmethod
    def _rows(table: Columns, **wanted: Any) -> NDArray[np.bool_]:
        return np.logical_and.reduce([table[name] == value for name, value in wanted.items()])


def _positions(values: NDArray[Any], order: Any) -> Ints:
    place = {label: position for position, label in enumerate(order)}
    return np.fromiter(map(place.__getitem__, values.tolist()), np.int64, len(values))
