"""Pictures and pages from the records of a run."""

from skillc_lab.report.examples import choose_tasks, examples, group_by_task
from skillc_lab.report.page import ReportFiles, make_report, replay_page
from skillc_lab.report.records import RunRecords, Series, moving_mean, read_object, transcripts_of_step
from skillc_lab.report.style import (
    SOFT,
    WITH,
    WITHOUT,
    LineStyle,
    canvas,
    method_styles,
    method_words,
    rate_axis,
    rates_across,
    shared_legend,
    start_styles,
    title,
    type_styles,
)

__all__ = [
    "SOFT",
    "WITH",
    "WITHOUT",
    "LineStyle",
    "ReportFiles",
    "RunRecords",
    "Series",
    "canvas",
    "choose_tasks",
    "examples",
    "group_by_task",
    "make_report",
    "method_styles",
    "method_words",
    "moving_mean",
    "rate_axis",
    "rates_across",
    "read_object",
    "replay_page",
    "shared_legend",
    "start_styles",
    "title",
    "transcripts_of_step",
    "type_styles",
]
