"""The report: tables, figures and a page of finished studies, of the suite or of a run; `common` is for all."""

from braided.report.common.page import PAGES, insist_own_pages
from braided.report.run.kinds import in_words
from braided.report.run.page import write_run_report
from braided.report.run.summary import Summary
from braided.report.study.page import write_report
from braided.report.suite.page import write_suite_report

__all__ = ["PAGES", "Summary", "in_words", "insist_own_pages", "write_report", "write_run_report", "write_suite_report"]
