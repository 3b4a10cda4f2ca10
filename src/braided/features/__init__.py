"""Features: samples from series (`Lags`), and maps that are composed with a learner by `|`."""

from braided.features.base import Chain as Chain
from braided.features.base import FeatureMap as FeatureMap
from braided.features.elm import ELM as ELM
from braided.features.lags import Lags as Lags
from braided.features.scale import Scale as Scale
