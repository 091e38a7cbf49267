"""Methods compared under one protocol: same panel, start, tasks, seeds and budget of generated tokens."""

from skillc_lab.studies.cells import cell_path, held_out_fields, play_held_out, read_cell, run_cell, write_cell
from skillc_lab.studies.check import CellCheck, check_cell, require_recorded
from skillc_lab.studies.curves import TOLD_APART, curve_names, draw_curves
from skillc_lab.studies.drawing import draw_record
from skillc_lab.studies.picture import draw_comparison
from skillc_lab.studies.plan import UNTRAINED, Cell, ComparisonPlan, read_method
from skillc_lab.studies.protocol import protocol_differences
from skillc_lab.studies.record import ComparisonRecord, read_record, write_comparison
from skillc_lab.studies.regime_map import draw_regime_map
from skillc_lab.studies.regimes import Regime, by_lead, regimes_of
from skillc_lab.studies.replaying import Changed, Replay
from skillc_lab.studies.restoring import restore_cells
from skillc_lab.studies.result import (
    CellResult,
    CurvePoint,
    TaskOutcome,
    Usage,
    area_under_curve,
    area_weights,
    by_env_steps,
    tokens_to_reach,
)
from skillc_lab.studies.run import compare, require_one_revision
from skillc_lab.studies.run_file import RunFile, held_out_split, read_run_file
from skillc_lab.studies.selection import EVERYTHING, Selection
from skillc_lab.studies.significance import area, area_difference, change, difference, success
from skillc_lab.studies.table import Cost, CurveSummary, MethodRow, Versus, method_rows, table_text
from skillc_lab.studies.workers import run_jobs

__all__ = [
    "EVERYTHING",
    "TOLD_APART",
    "UNTRAINED",
    "Cell",
    "CellCheck",
    "CellResult",
    "Changed",
    "ComparisonPlan",
    "ComparisonRecord",
    "Cost",
    "CurvePoint",
    "CurveSummary",
    "MethodRow",
    "Regime",
    "Replay",
    "RunFile",
    "Selection",
    "TaskOutcome",
    "Usage",
    "Versus",
    "area",
    "area_difference",
    "area_under_curve",
    "area_weights",
    "by_env_steps",
    "by_lead",
    "cell_path",
    "change",
    "check_cell",
    "compare",
    "curve_names",
    "difference",
    "draw_comparison",
    "draw_curves",
    "draw_record",
    "draw_regime_map",
    "held_out_fields",
    "held_out_split",
    "method_rows",
    "play_held_out",
    "protocol_differences",
    "read_cell",
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
    "table_text",
    "tokens_to_reach",
    "write_cell",
    "write_comparison",
]
