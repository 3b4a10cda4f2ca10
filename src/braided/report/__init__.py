"""The report: tables, figures and a page of finished studies (`study`) or of a run (`run`); `common` is for both."""

from braided.report.common.page import PAGES, insist_own_pages
from braided.report.run.page import write_run_report
from braided.report.run.summary import Summary, in_words
from braided.report.study.page import write_report

__all__ = ["PAGES", "Summary", "in_words", "insist_own_pages", "write_report", "write_run_report"]
