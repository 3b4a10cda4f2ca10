"""The report: tables, figures and a page of finished studies, or of a run."""

from braided.report.page import PAGES, insist_own_pages, write_report
from braided.report.run_page import write_run_report

__all__ = ["PAGES", "insist_own_pages", "write_report", "write_run_report"]
