"""Runs: a table, or lines as they come, through a forecaster that was tuned on the leading part."""

from braided.forecasting import Choice, Trial
from braided.runs.ahead import SetAsideError
from braided.runs.head import Head
from braided.runs.live import Live
from braided.runs.notes import chosen
from braided.runs.start import Settings, choose, load_forecaster, load_live, read_choice, write_choice
from braided.runs.table import Run, claim, learn, read_head, run, run_in_memory
from braided.runs.tuning import search

__all__ = [
    "Choice",
    "Head",
    "Live",
    "Run",
    "SetAsideError",
    "Settings",
    "Trial",
    "choose",
    "chosen",
    "claim",
    "learn",
    "load_forecaster",
    "load_live",
    "read_choice",
    "read_head",
    "run",
    "run_in_memory",
    "search",
    "write_choice",
]
