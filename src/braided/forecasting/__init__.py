"""Forecasting: streams of values in, forecasts with intervals out."""

from braided.forecasting.forecaster import Forecaster, Forecasts, usual_step
from braided.forecasting.record import CONTENDERS, Record
from braided.forecasting.units import Units

__all__ = ["CONTENDERS", "Forecaster", "Forecasts", "Record", "Units", "usual_step"]
