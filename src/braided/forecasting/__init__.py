"""Forecasting: streams of values in, forecasts with intervals out."""

from braided.forecasting.clock import usual_step
from braided.forecasting.forecaster import Forecaster, Forecasts, joined
from braided.forecasting.record import Record
from braided.forecasting.units import Units

__all__ = ["Forecaster", "Forecasts", "Record", "Units", "joined", "usual_step"]
