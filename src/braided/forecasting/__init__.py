"""Forecasting: streams of values in, forecasts with intervals out."""

from braided.forecasting.clipping import Clipping as Clipping
from braided.forecasting.clock import Clock as Clock
from braided.forecasting.curve import Curve as Curve
from braided.forecasting.engine import Engine as Engine
from braided.forecasting.forecasts import Forecasts as Forecasts
from braided.forecasting.forecasts import joined as joined
from braided.forecasting.learner_engine import LearnerEngine as LearnerEngine
from braided.forecasting.live_rounds import LiveRounds as LiveRounds
from braided.forecasting.origin import Choice as Choice
from braided.forecasting.origin import Origin as Origin
from braided.forecasting.origin import Parameters as Parameters
from braided.forecasting.origin import Position as Position
from braided.forecasting.origin import Trial as Trial
from braided.forecasting.plan import Plan as Plan
from braided.forecasting.preparation import Preparation as Preparation
from braided.forecasting.record import Record as Record
from braided.forecasting.units import Units as Units
