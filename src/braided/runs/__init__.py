"""Runs: a table, or lines as they come, through a forecaster that was tuned on the leading part."""

from braided.forecasting import Choice, Trial
from braided.runs.ahead import SetAsideError
from braided.runs.live import Live
from braided.runs.notes import chosen
from braided.runs.start import Settings, choose, load_forecaster, load_live, read_choice, write_choice
from braided.runs.table import Run, claim, learn, read_tuning_period, run, run_in_memory
from braided.runs.trials import search
from braided.runs.tuning_period import TuningPeriod

__all__ = [
    "Choice",
    "Live",
    "Run",
    "SetAsideError",
    "Settings",
    "Trial",
    "TuningPeriod",
    "choose",
    "chosen",
    "claim",
    "learn",
    "load_forecaster",
    "load_live",
    "read_choice",
    "read_tuning_period",
    "run",
    "run_in_memory",
    "search",
    "write_choice",
]
