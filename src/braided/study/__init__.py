"""The study: the paper's experiment on any panel, with its contenders; resumable, in parallel, the same every time."""

from braided.methods import METHODS, Method, find_method
from braided.study.parallel import run_study
from braided.study.plan import Plan, plan_for
from braided.study.results import Results
from braided.study.store import Store

__all__ = ["METHODS", "Method", "Plan", "Results", "Store", "find_method", "plan_for", "run_study"]
