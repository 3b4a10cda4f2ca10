"""Runs: a table, or lines as they arrive, through a forecaster that was tuned on the leading rounds."""

from braided.forecasting import Choice as Choice
from braided.forecasting import Trial as Trial
from braided.runs.ahead import SetAsideError as SetAsideError
from braided.runs.live import Live as Live
from braided.runs.start import Settings as Settings
from braided.runs.start import choose as choose
from braided.runs.start import chosen as chosen
from braided.runs.start import load_forecaster as load_forecaster
from braided.runs.start import load_live as load_live
from braided.runs.start import read_choice as read_choice
from braided.runs.start import write_choice as write_choice
from braided.runs.table import Run as Run
from braided.runs.table import claim as claim
from braided.runs.table import learn as learn
from braided.runs.table import learn_known_ahead as learn_known_ahead
from braided.runs.table import read_tuning_period as read_tuning_period
from braided.runs.table import run as run
from braided.runs.table import run_in_memory as run_in_memory
from braided.runs.trials import search as search
from braided.runs.tuning_period import TuningPeriod as TuningPeriod
