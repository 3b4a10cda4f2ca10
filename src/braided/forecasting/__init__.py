"""Forecasting: streams of values in, forecasts with intervals out."""

from braided.forecasting.choice import Choice, Parameters, Trial
from braided.forecasting.clipping import Clipping
from braided.forecasting.clock import Clock
from braided.forecasting.engine import Engine
from braided.forecasting.forecasts import Forecasts, joined
from braided.forecasting.live_rounds import LiveRounds
from braided.forecasting.origin import Origin, Position
from braided.forecasting.preparation import Preparation
from braided.forecasting.record import Record
from braided.forecasting.units import Units

__all__ = [
    "Choice",
    "Clipping",
    "Clock",
    "Engine",
    "Forecasts",
    "LiveRounds",
    "Origin",
    "Parameters",
    "Position",
    "Preparation",
    "Record",
    "Trial",
    "Units",
    "joined",
]
