"""The report: tables, figures and a page of finished studies."""

from braided.report.page import write_report

__all__ = ["write_report"]
