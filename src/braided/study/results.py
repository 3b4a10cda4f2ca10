"""Results: the contents of a store, arranged for tables and figures."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from braided.evaluation import PROTOCOLS, Protocol, error_so_far
from braided.methods import METHODS, Method
from braided.statistics import Comparison, compare
from braided.study.plan import METRICS
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
        rows, self.choices, self.timings = (store.read(name) for name in ("scores", "choices", "timings"))
        self.windows = len(self.about["starts"])
        axes = {
            "window": range(self.windows),
            "split": self.splits,
            "protocol": PROTOCOLS,
            "method": self.about["methods"],
            "task": self.tasks,
        }
        self.scores: Floats = np.full((*map(len, axes.values()), len(METRICS)), np.nan)
        places = tuple(_positions(rows[name], labels) for name, labels in axes.items())
        self.scores[places] = np.stack([rows[name] for name in METRICS], axis=1)

    @property
    def name(self) -> str:
        """The name of the data."""
        return str(self.about["data"])

    def by_task(self, split: str, protocol: Protocol, metric: str) -> Floats:
        """Return one metric as (windows, methods, tasks); NaN for methods without that protocol."""
        return self.scores[:, self.splits.index(split), PROTOCOLS.index(protocol), :, :, METRICS.index(metric)]

    def table(self, split: str, protocol: Protocol, metric: str) -> Floats:
        """Return one metric as (windows, methods), the mean over the tasks."""
        return self.by_task(split, protocol, metric).mean(axis=2)

    def ranked(self, split: str, protocol: Protocol) -> tuple[list[Method], Comparison] | None:
        """Compare the paper's methods over the windows by RMSE over that of "no change"; None without two of each."""
        table = self.table(split, protocol, "rmse_to_no_change")
        complete = np.isfinite(table.sum(axis=0))
        chosen = [place for place, method in enumerate(self.methods) if method.paper and complete[place]]
        if len(chosen) < 2 or self.windows < 2:
            return None
        return [self.methods[place] for place in chosen], compare(table[:, chosen])

    def chosen(self, **where: str) -> dict[str, Counter[float]]:
        """Return how often each value of each parameter was chosen; `where` selects a split, protocol or method."""
        rows = self._rows(self.choices, **where)
        counts: dict[str, Counter[float]] = {}
        for text in self.choices["parameters"][rows]:
            for name, value in (json.loads(text) or {}).items():
                counts.setdefault(name, Counter())[value] += 1
        return counts

    def breakdowns(self, split: str, protocol: Protocol, method: str) -> int:
        """Return in how many windows a method broke down in the test period, at least once."""
        rows = self._rows(self.choices, split=split, protocol=protocol, method=method)
        return int((self.choices["broke"][rows] > 0).sum())

    def similarity(self, window: int, split: str) -> Floats:
        """Return the similarities (T, T) in the tuning period of a window."""
        similarity: Floats = self._store.read("graphs", window=window, split=split)["similarity"]
        return similarity.reshape(len(self.tasks), -1)

    def series(self, window: int) -> Floats:
        """Return the levels (steps, T) of a window."""
        level: Floats = self._store.read("series", window=window, split=self.splits[0])["level"]
        return level.reshape(-1, len(self.tasks))

    def curve(self, window: int, split: str, protocol: Protocol, method: str, task: str) -> Curve:
        """Return the forecasts of a task in a window, beside the actual values."""
        where = {"window": window, "split": split, "protocol": protocol, "method": method, "task": task}
        rows = self._store.read("forecasts", **where)
        return Curve(rows["step"], rows["actual"], rows["forecast"])

    def error_so_far(self, split: str, protocol: Protocol, method: str) -> tuple[Ints, Floats]:
        """Return the steps of a window, and up to each the error over that of "no change", of all windows and tasks."""
        rows = self._store.read("forecasts", split=split, protocol=protocol, method=method)
        return error_so_far(rows["step"], rows["actual"], rows["forecast"])

    def seconds(self, method: str) -> tuple[float, float, float]:
        """Return the seconds that tuning and testing took, synchronous, and the microseconds per forecast sample."""
        rows = self._rows(self.timings, protocol="synchronous", method=method)
        tuning, testing, samples = (float(self.timings[name][rows].sum()) for name in ("tuning", "testing", "samples"))
        return tuning, testing, 1e6 * testing / samples

    @staticmethod
    def _rows(table: Columns, **wanted: Any) -> NDArray[np.bool_]:
        return np.logical_and.reduce([table[name] == value for name, value in wanted.items()])


def _positions(values: NDArray[Any], labels: Sequence[Any]) -> Ints:
    place = {label: position for position, label in enumerate(labels)}
    return np.fromiter(map(place.__getitem__, values.tolist()), np.int64, len(values))
