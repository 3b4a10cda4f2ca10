"""The forecasting suite: braided's forecasters beside rules and other packages, on real panels."""

from braided.suite.panels import suite_panels
from braided.suite.past import Past, cuts_of
from braided.suite.run import SUITE_METHODS, SuiteMethod, find_suite_method, run_suite
from braided.suite.scores import Cell, Outcome

__all__ = [
    "SUITE_METHODS",
    "Cell",
    "Outcome",
    "Past",
    "SuiteMethod",
    "cuts_of",
    "find_suite_method",
    "run_suite",
    "suite_panels",
]
