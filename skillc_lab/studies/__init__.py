"""Methods compared under one protocol: same panel, start, tasks, seeds and budget of generated tokens."""

from skillc_lab.studies.cells import Changed, Replay, cell_path, read_cell, run_cell
from skillc_lab.studies.check import check_cell, require_recorded, restore_cells
from skillc_lab.studies.hero import before_and_after, draw_hero
from skillc_lab.studies.pictures import (
    TOLD_APART,
    curve_names,
    draw_comparison,
    draw_curves,
    draw_record,
    draw_regime_map,
)
from skillc_lab.studies.plan import UNTRAINED, Cell, ComparisonPlan, read_method
from skillc_lab.studies.record import ComparisonRecord, Regime, by_lead, read_record, regimes_of, write_comparison
from skillc_lab.studies.result import (
    CellResult,
    CurvePoint,
    TaskOutcome,
    Usage,
    area_under_curve,
    by_env_steps,
    tokens_to_reach,
)
from skillc_lab.studies.run import compare, require_one_revision
from skillc_lab.studies.run_file import RunFile, check_settings, held_out_split, read_run_file
from skillc_lab.studies.significance import area, area_difference, change, difference, success
from skillc_lab.studies.table import COLUMNS, Column, MethodRow, comparison_table, method_rows
from skillc_lab.studies.tuning import TunedSetting, best_settings, cross, rank_settings, read_grid, tune, tuning_table
from skillc_lab.studies.workers import run_jobs

__all__ = [
    "COLUMNS",
    "TOLD_APART",
    "UNTRAINED",
    "Cell",
    "CellResult",
    "Changed",
    "Column",
    "ComparisonPlan",
    "ComparisonRecord",
    "CurvePoint",
    "MethodRow",
    "Regime",
    "Replay",
    "RunFile",
    "TaskOutcome",
    "TunedSetting",
    "Usage",
    "area",
    "area_difference",
    "area_under_curve",
    "before_and_after",
    "best_settings",
    "by_env_steps",
    "by_lead",
    "cell_path",
    "change",
    "check_cell",
    "check_settings",
    "compare",
    "comparison_table",
    "cross",
    "curve_names",
    "difference",
    "draw_comparison",
    "draw_curves",
    "draw_hero",
    "draw_record",
    "draw_regime_map",
    "held_out_split",
    "method_rows",
    "rank_settings",
    "read_cell",
    "read_grid",
    "read_method",
    "read_record",
    "read_run_file",
    "regimes_of",
    "require_one_revision",
    "require_recorded",
    "restore_cells",
    "run_cell",
    "run_jobs",
    "success",
    "tokens_to_reach",
    "tune",
    "tuning_table",
    "write_comparison",
]
