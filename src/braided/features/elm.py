"""ELM: the random hidden layer of an extreme learning machine, shared by all tasks.

| symbol | name     | shape  | meaning                                  |
|--------|----------|--------|------------------------------------------|
| H      | `hidden` |        | hidden nodes                             |
| V      |          | (d, H) | hidden weights, uniform on (−1, 1)       |

x becomes [1, tanh(V'x)]. The learner behind it is linear in these features, so its problem stays convex. Standardise
the inputs (`Scale`): tanh is linear for small inputs and flat for large ones.

>>> ELM(hidden=3, seed=0).transform([[0.0, 0.0]])
array([[1., 0., 0., 0.]])

Reference: Lencione & Von Zuben, arXiv 2308.01938, Eq. 37.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import final

import numpy as np

from braided.features.base import FeatureMap
from braided.types import Floats
from braided.validate import count


@lru_cache(maxsize=64)
def _hidden_weights(n_features: int, hidden: int, seed: int) -> Floats:
    weights = np.random.default_rng(seed).uniform(-1.0, 1.0, (n_features, hidden))
    weights.flags.writeable = False
    return weights


@final
@dataclass(frozen=True)
class ELM(FeatureMap):
    """Random features [1, tanh(V'x)]; the same seed gives the same layer."""

    hidden: int = 50
    seed: int = 0

    def __post_init__(self) -> None:
        """Check both."""
        object.__setattr__(self, "hidden", count(self.hidden, "hidden"))
        object.__setattr__(self, "seed", count(self.seed, "seed", least=0))

    def width(self, n_features: int) -> int:
        """Return H + 1."""
        return self.hidden + 1

    def transform(self, X: Floats) -> Floats:
        """Return [1, tanh(X V)]."""
        X = np.asarray(X, dtype=np.float64)
        features = np.ones((len(X), self.hidden + 1))
        np.tanh(X @ _hidden_weights(X.shape[1], self.hidden, self.seed), out=features[:, 1:])
        return features
