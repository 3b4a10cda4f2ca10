"""Which report belongs to which kind of engine."""

from __future__ import annotations

from braided.forecasting import Engine, LearnerEngine
from braided.forecasting.auto import AutoEngine
from braided.report.run.auto_report import AutoReport
from braided.report.run.engine_report import EngineReport
from braided.report.run.learner_report import LearnerReport


def report_of(engine: Engine) -> EngineReport:
    """Return what is said of an engine."""
    if isinstance(engine, AutoEngine):
        return AutoReport(engine)
    return LearnerReport(engine) if isinstance(engine, LearnerEngine) else EngineReport(engine)


def in_words(forecaster: Engine) -> list[str]:
    """Return what the record says, also where it goes against the method."""
    return report_of(forecaster).in_words()
