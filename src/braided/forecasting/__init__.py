"""Forecasting: streams of values in, forecasts with intervals out."""

from braided.forecasting.choice import Choice, Trial
from braided.forecasting.clock import Clock
from braided.forecasting.engine import Engine
from braided.forecasting.forecasts import Forecasts, joined
from braided.forecasting.live_rounds import LiveRounds
from braided.forecasting.origin import Origin, Position
from braided.forecasting.record import Record
from braided.forecasting.units import Units
from braided.forecasting.usual import Usual

__all__ = [
    "Choice",
    "Clock",
    "Engine",
    "Forecasts",
    "LiveRounds",
    "Origin",
    "Position",
    "Record",
    "Trial",
    "Units",
    "Usual",
    "joined",
]
