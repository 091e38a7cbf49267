"""Pictures and pages from the records of a run."""

from skillc_lab.report.beside import BesideRun, beside_section, read_run, save_beside
from skillc_lab.report.comparison import SeedRun, mean_curve, save_comparison
from skillc_lab.report.figures import save_figures, save_outcome_figure
from skillc_lab.report.make import ReportFiles, make_report, replay_page
from skillc_lab.report.pages import render_page
from skillc_lab.report.records import RunRecords, Series, moving_mean, read_object
from skillc_lab.report.sources import Evaluation, Source, read_evaluation, read_source, transcripts_of_step
from skillc_lab.report.style import (
    SOFT,
    WITH,
    WITHOUT,
    TypeStyle,
    figure_style,
    new_figure,
    rate_axis,
    rates_across,
    step_axis,
    title,
    type_styles,
)
from skillc_lab.report.transcripts import TaskEpisodes, all_tasks, choose_tasks, group_by_task, transcripts_section

__all__ = [
    "SOFT",
    "WITH",
    "WITHOUT",
    "BesideRun",
    "Evaluation",
    "ReportFiles",
    "RunRecords",
    "SeedRun",
    "Series",
    "Source",
    "TaskEpisodes",
    "TypeStyle",
    "all_tasks",
    "beside_section",
    "choose_tasks",
    "figure_style",
    "group_by_task",
    "make_report",
    "mean_curve",
    "moving_mean",
    "new_figure",
    "rate_axis",
    "rates_across",
    "read_evaluation",
    "read_object",
    "read_run",
    "read_source",
    "render_page",
    "replay_page",
    "save_beside",
    "save_comparison",
    "save_figures",
    "save_outcome_figure",
    "step_axis",
    "title",
    "transcripts_of_step",
    "transcripts_section",
    "type_styles",
]
