"""Feature maps, composed with `|` in front of a learner."""

from braided.features.base import Chain, FeatureMap
from braided.features.elm import ELM
from braided.features.scale import Scale

__all__ = ["ELM", "Chain", "FeatureMap", "Scale"]
