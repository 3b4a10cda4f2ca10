"""Features: from series to samples (`Lags`), and maps composed with `|` in front of a learner."""

from braided.features.base import Chain, FeatureMap
from braided.features.elm import ELM
from braided.features.lags import Lags
from braided.features.scale import Scale

__all__ = ["ELM", "Chain", "FeatureMap", "Lags", "Scale"]
