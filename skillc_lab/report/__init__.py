"""Pictures and pages from the records of a run."""

from skillc_lab.report.examples import choose_tasks, examples, group_by_task
from skillc_lab.report.page import ReportFiles, make_report, recorded_episodes, replay_page
from skillc_lab.report.records import RunRecords, object_or_empty, read_run
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
)
from skillc_lab.report.tables import agent_words, measures, own_agent, results, versus_table

__all__ = [
    "SOFT",
    "WITH",
    "WITHOUT",
    "LineStyle",
    "ReportFiles",
    "RunRecords",
    "agent_words",
    "canvas",
    "choose_tasks",
    "examples",
    "group_by_task",
    "make_report",
    "measures",
    "method_styles",
    "method_words",
    "object_or_empty",
    "own_agent",
    "rate_axis",
    "rates_across",
    "read_run",
    "recorded_episodes",
    "replay_page",
    "results",
    "shared_legend",
    "start_styles",
    "title",
    "versus_table",
]
