"""Composed: a feature map in front of a learner."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

from braided._compiled.batch import Batch
from braided.errors import InputError
from braided.features import FeatureMap
from braided.graph import TaskGraph
from braided.learners.base import Health, Learner
from braided.types import Floats, Ints
from braided.validate import count, floats, stored_integer


@final
class Composed(Learner):
    """A feature map in front of a learner; made by `features | learner`.

    >>> import braided as bd
    >>> model = bd.ELM(hidden=20, seed=0) | bd.MTWRLS(bd.TaskGraph.pooled(["a", "b"]), n_features=3)
    >>> model.learn_one([0.1, 0.2, 0.3], 1.0, task="a")
    >>> model.coef.shape
    (2, 21)
    """

    def __init__(self, features: FeatureMap, learner: Learner) -> None:
        """Make a fresh learner of the width that the features have."""
        if learner.samples:
            raise InputError(f"{type(learner).__name__} has learned {learner.samples} samples: compose before learning")
        self.features = features
        self.learner = learner.with_features(features.width(learner.n_features))
        self.has_std, self.shares = learner.has_std, learner.shares
        super().__init__(learner.graph, learner.n_features)

    @property  # a feature map has no state of its own
    def state(self) -> Any:
        """The state of the learner."""
        return self.learner.state

    @state.setter
    def state(self, state: Any) -> None:
        self.learner.state = state

    @property
    def samples(self) -> int:
        """The number of samples that the learner has learned."""
        return self.learner.samples

    @samples.setter
    def samples(self, samples: int) -> None:
        self.learner.samples = samples

    @property
    def health(self) -> Health:
        """The health of the learner."""
        return self.learner.health

    @property
    def coef(self) -> Floats:
        """The weights of the learner, one column per feature."""
        return self.learner.coef

    def _derive(self, graph: TaskGraph) -> None:
        self.learner._derive(graph)  # first, as it may refuse the graph
        self.learner.graph = graph

    def _start(self) -> Any:
        return self.learner._start()

    def _predict(self, X: Floats, tasks: Ints, mean: Floats, std: Floats) -> None:
        self.learner._predict(self._transform(X), tasks, mean, std)

    @property
    def gain_size(self) -> int:
        """That of the learner."""
        return self.learner.gain_size

    def _progressive(self, batch: Batch, mean: Floats, std: Floats) -> int:
        return self.learner._progressive(batch._replace(X=self._transform(batch.X)), mean, std)

    def _transform(self, X: Floats) -> Floats:
        name = f"features of {type(self.features).__name__}"
        features, expected = floats(self.features.transform(X), name, ndim=2), (len(X), self.learner.n_features)
        if features.shape != expected:
            raise InputError(f"{name} have shape {features.shape}, but its width says {expected}")
        return features

    def _absorb(self, batch: Batch) -> int:
        return self.learner._absorb(batch._replace(X=self._transform(batch.X)))

    def _joined(self, graph: TaskGraph) -> Any:
        return self.learner._joined(graph)

    def _left(self, graph: TaskGraph, position: int) -> Any:
        return self.learner._left(graph, position)

    def with_features(self, n_features: int) -> Composed:
        """Return a fresh composition for another number of inputs."""
        return Composed(self.features, self.learner.with_features(n_features))

    def dump(self) -> dict[str, Any]:
        """Return the two parts, the number of inputs and the clock."""
        return {name: getattr(self, name) for name in ("features", "learner", "n_features", "_last_round")}

    @classmethod
    def restore(cls, dumped: Mapping[str, Any]) -> Composed:
        """Return the composition whose `dump` this is."""
        features, learner, n_features = dumped["features"], dumped["learner"], count(dumped["n_features"], "n_features")
        if not (isinstance(features, FeatureMap) and isinstance(learner, Learner)):
            raise InputError(f"a {type(features).__name__} and a {type(learner).__name__} can't be composed")
        if features.width(n_features) != learner.n_features:
            raise InputError(
                f"{features.width(n_features)} features for a learner with n_features={learner.n_features}"
            )
        model = cls.__new__(cls)
        model.features, model.learner, model.graph, model.n_features = features, learner, learner.graph, n_features
        model.has_std, model.shares = learner.has_std, learner.shares
        model._last_round = stored_integer(dumped["_last_round"], "last_round")
        return model

    def __repr__(self) -> str:
        """Show the composition."""
        return f"{self.features!r} | {self.learner!r}"
