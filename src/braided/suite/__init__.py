"""The forecasting suite: braided's forecasters beside rules and other packages, one step ahead, on real panels."""

from braided.suite.panels import suite_panels
from braided.suite.past import Past, cuts_of
from braided.suite.run import CONTENDERS, Contender, find_contender, run_suite
from braided.suite.scores import Cell, Outcome

__all__ = [
    "CONTENDERS",
    "Cell",
    "Contender",
    "Outcome",
    "Past",
    "cuts_of",
    "find_contender",
    "run_suite",
    "suite_panels",
]
