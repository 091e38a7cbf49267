"""Methods compared under one protocol: same panel, start, tasks, seeds and budget of generated tokens."""

from skillc_lab.studies.cells import Changed, replay_cell, run_cell
from skillc_lab.studies.check import check_cell, require_recorded, restore_cells
from skillc_lab.studies.pictures import draw_band, draw_curves, draw_record, draw_regime_map
from skillc_lab.studies.plan import UNTRAINED, Cell, ComparisonPlan, read_method
from skillc_lab.studies.record import (
    ComparisonRecord,
    Regime,
    read_record,
    regimes_of,
    with_method,
    write_comparison,
)
from skillc_lab.studies.result import CellResult, CurvePoint, TaskOutcome, Usage
from skillc_lab.studies.run import compare, cores, require_one_revision, run_jobs
from skillc_lab.studies.run_file import check_settings, held_out_split, read_run_file
from skillc_lab.studies.significance import area_difference, change, difference, success
from skillc_lab.studies.table import MethodRow, comparison_table
from skillc_lab.studies.tuning import cross, read_grid, tune, tuning_table

__all__ = [
    "UNTRAINED",
    "Cell",
    "CellResult",
    "Changed",
    "ComparisonPlan",
    "ComparisonRecord",
    "CurvePoint",
    "MethodRow",
    "Regime",
    "TaskOutcome",
    "Usage",
    "area_difference",
    "change",
    "check_cell",
    "check_settings",
    "compare",
    "comparison_table",
    "cores",
    "cross",
    "difference",
    "draw_band",
    "draw_curves",
    "draw_record",
    "draw_regime_map",
    "held_out_split",
    "read_grid",
    "read_method",
    "read_record",
    "read_run_file",
    "regimes_of",
    "replay_cell",
    "require_one_revision",
    "require_recorded",
    "restore_cells",
    "run_cell",
    "run_jobs",
    "success",
    "tune",
    "tuning_table",
    "with_method",
    "write_comparison",
]
