"""Forecasting: streams of values in, forecasts with intervals out."""

from braided.forecasting.forecaster import NEVER, Forecaster, Forecasts, as_stamps, gaps_in, joined, usual_step, widened
from braided.forecasting.record import CONTENDERS, Record
from braided.forecasting.units import Units

__all__ = [
    "CONTENDERS",
    "NEVER",
    "Forecaster",
    "Forecasts",
    "Record",
    "Units",
    "as_stamps",
    "gaps_in",
    "joined",
    "usual_step",
    "widened",
]
