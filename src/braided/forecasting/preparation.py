"""Preparation: from values to samples, the same for the tuning period, the forecaster and the study.

| step     | what it does                                                                                        |
|----------|-----------------------------------------------------------------------------------------------------|
| gaps     | a row without values marks a gap in time, so that lags do not reach across it (`Clock.gaps`)      |
| units    | values become levels about 0, with changes about 1 (`Units`); further columns are standardised  |
| features | levels become lags and other features of the next step (`Lags`)                                     |
| clipping | features are clipped at ten times their typical size (`Clipping`)                                   |

>>> import braided as bd
>>> panel = bd.datasets.wind_field(seed=0, steps=300, sites=3)     # synthetic
>>> graph = bd.TaskGraph.from_history(panel.values, panel.tasks)
>>> preparation = Preparation(bd.Lags(3), graph, Units.measure(panel.values), clips=True)
>>> samples = preparation.samples(panel.values)
>>> samples.X.shape, bool(np.abs(samples.y).mean() < 1.0)
((888, 4), True)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, final

import numpy as np

from braided.features import Lags, Scale
from braided.features.lags import Latest, Samples
from braided.forecasting.clipping import Clipping
from braided.forecasting.clock import Clock
from braided.forecasting.units import LARGEST_LEVEL, Units
from braided.graph import TaskGraph, TaskKey
from braided.types import Floats, Ints


class Rows(NamedTuple):
    """Rounds with a row without values for each gap between them."""

    values: Floats  # (n, T)
    extras: Floats  # (n, T, E)
    rounds: Ints  # (n,) which round each row is; -1 for a gap


def with_gaps(clock: Clock, stamps: Ints, values: Floats, extras: Floats, before: int) -> Rows:
    """Return rounds with a row without values for each gap; `before` is the time before the first."""
    gaps = clock.gaps(stamps, before)
    values, extras = (np.insert(one, gaps, np.nan, axis=0) for one in (values, extras))
    return Rows(values, extras, np.insert(np.arange(len(stamps)), gaps, -1))


@final
@dataclass(eq=False)
class Preparation:
    """Turns values into samples; `dataclasses.replace` makes one that has seen no sample yet."""

    lags: Lags
    graph: TaskGraph
    units: Units | None = None  # without them, values are taken as they are
    scale: Scale | None = None  # of further columns
    clock: Clock = field(default_factory=Clock)
    clips: bool = False  # whether features are clipped
    clipping: Clipping = field(init=False)

    def __post_init__(self) -> None:
        self.clipping = Clipping.blank(self.graph.n_tasks, self.lags.n_features + self.n_extras)

    @property
    def n_extras(self) -> int:
        """The number of further columns."""
        return 0 if self.scale is None else self.scale.mean.size

    def levels(self, values: Floats) -> Floats:
        """Return values (n, tasks or more) in units, those of the tasks only; NaN where one is too large."""
        own = values[:, : self.graph.n_tasks]
        return own if self.units is None else self.units.inward(own)

    def samples(self, values: Floats, extras: Floats | None = None, first: int = 0) -> Samples:
        """Return the samples of the rows from `first` on; those before are for lags to look back to."""
        made = self.lags.samples(*self._known(values, extras)).between(first, len(values))
        return made._replace(X=self._clipped(made.X, made.tasks, learn=True))

    def latest(self, values: Floats, extras: Floats | None = None) -> Latest:
        """Return the inputs for a forecast of the row after the last."""
        made = self.lags.latest(*self._known(values, extras))
        return made._replace(X=self._clipped(made.X, made.tasks, learn=False))

    def _clipped(self, X: Floats, tasks: list[TaskKey], learn: bool) -> Floats:
        return self.clipping.clipped(X, self.graph.indices(tasks), learn) if self.clips else X

    def _known(
        self, values: Floats, extras: Floats | None
    ) -> tuple[Floats, tuple[TaskKey, ...], TaskGraph, Floats | None]:
        """The arguments of the lags: levels, tasks, their graph, and further features."""
        scaled = None
        if self.scale is not None and extras is not None:
            scaled = self.scale.transform(extras[:, : self.graph.n_tasks])
            scaled[np.abs(scaled) > LARGEST_LEVEL] = np.nan
        return self.levels(values), self.graph.tasks, self.graph, scaled

    def join(self, task: TaskKey, similar: dict[TaskKey, float], values: Floats) -> None:
        """Add a task, tied to others as given; its units are measured on its first values."""
        self.graph = self.graph.join(task, similar)
        self.units = None if self.units is None else self.units.joined(values)
        self.clipping.join()
