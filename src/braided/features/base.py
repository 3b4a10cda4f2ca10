"""FeatureMap: a map of inputs to features in front of a learner, and a chain of several."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

from braided.errors import InputError
from braided.types import Floats


class FeatureMap(ABC):
    """A fixed map of inputs to features, the same for all tasks."""

    @abstractmethod
    def width(self, n_features: int) -> int:
        """Return the number of features for `n_features` inputs."""

    @abstractmethod
    def transform(self, X: Floats) -> Floats:
        """Return the features (n, width) of the inputs (n, n_features)."""

    def __or__(self, other: FeatureMap) -> Chain:
        """Compose with a map that follows; `Learner.__ror__` composes with a learner."""
        return Chain((self, other)) if isinstance(other, FeatureMap) else NotImplemented


@final
@dataclass(frozen=True)
class Chain(FeatureMap):
    """Several maps, one after the other."""

    maps: tuple[FeatureMap, ...]

    def __post_init__(self) -> None:
        """Check that all are maps."""
        for part in self.maps:
            if not isinstance(part, FeatureMap):
                raise InputError(f"{part!r:.80} is not a feature map: chain feature maps only")

    def width(self, n_features: int) -> int:
        """Return the width after the last map."""
        for part in self.maps:
            n_features = part.width(n_features)
        return n_features

    def transform(self, X: Floats) -> Floats:
        """Apply all maps in order."""
        for part in self.maps:
            X = part.transform(X)
        return X
