"""Runs: a table, or lines as they come, through a forecaster that was tuned on the leading part."""

from braided.runs.head import Head
from braided.runs.summary import Summary, chosen, in_words
from braided.runs.table import Run, Settings, choose, learn, read_choice, read_head, run, run_in_memory, write_choice
from braided.runs.tuning import Choice, Trial, search

__all__ = [
    "Choice",
    "Head",
    "Run",
    "Settings",
    "Summary",
    "Trial",
    "choose",
    "chosen",
    "in_words",
    "learn",
    "read_choice",
    "read_head",
    "run",
    "run_in_memory",
    "search",
    "write_choice",
]
