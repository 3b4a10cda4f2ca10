"""The report: tables, figures and a page of finished studies, or of a run."""

from braided.report.page import write_report
from braided.report.run_page import write_run_report

__all__ = ["write_report", "write_run_report"]
