"""Pictures and pages from the records of a run."""

from skillc_lab.report.comparison import SeedRun, mean_curve, save_comparison
from skillc_lab.report.examples import choose_tasks, examples, group_by_task
from skillc_lab.report.figures import draw_before_after
from skillc_lab.report.page import ReportFiles, make_report, replay_page
from skillc_lab.report.records import RunRecords, Series, moving_mean, read_object, transcripts_of_step
from skillc_lab.report.style import (
    SOFT,
    WITH,
    WITHOUT,
    TypeStyle,
    figure_style,
    new_figure,
    rate_axis,
    rates_across,
    title,
    type_styles,
)

__all__ = [
    "SOFT",
    "WITH",
    "WITHOUT",
    "ReportFiles",
    "RunRecords",
    "SeedRun",
    "Series",
    "TypeStyle",
    "choose_tasks",
    "draw_before_after",
    "examples",
    "figure_style",
    "group_by_task",
    "make_report",
    "mean_curve",
    "moving_mean",
    "new_figure",
    "rate_axis",
    "rates_across",
    "read_object",
    "replay_page",
    "save_comparison",
    "title",
    "transcripts_of_step",
    "type_styles",
]
