"""Going on from a record: its finished cells are put where a comparison looks for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skillc_gym.errors import CheckpointError
from trainers.comparison.cells import cell_path, write_cell
from trainers.comparison.plan import Cell, ComparisonPlan
from trainers.comparison.record import ComparisonRecord
from trainers.config import TrainConfig
from trainers.tracking.run_folder import make_folder

__all__ = ["restore_cells"]


def restore_cells(plan: ComparisonPlan, record: ComparisonRecord) -> list[Cell]:
    """Writes the cells of a record that the plan asks for and that are not there yet.

    Args:
        plan: What is compared; it may have further methods, starting points and seeds.
        record: Of the same protocol. Its revision is left to
            :func:`~trainers.comparison.run.require_one_revision`, which reads the cells.

    Returns:
        The cells that were written.

    Raises:
        CheckpointError: The record is of another protocol.
    """
    _require_same_protocol(plan.protocol, record.protocol)
    found = {(result.start, result.method, result.seed): result for result in record.results}
    make_folder(plan.folder / "cells")
    restored = []
    for cell in plan.jobs:
        result = found.get((cell.start, cell.method, cell.seed))
        if result is not None and not cell_path(plan, cell).is_file():
            write_cell(plan, cell, result)
            restored.append(cell)
    return restored


def _require_same_protocol(plan: Mapping[str, Any], record: Mapping[str, Any]) -> None:
    """Settings, tasks, and what both know of starting points and methods must agree; newer settings are defaults."""
    settings = {**TrainConfig(model="").to_json(), **record["settings"]}
    differing = [f"settings.{name}" for name, value in plan["settings"].items() if settings[name] != value]
    differing += [f"settings.{name}" for name in record["settings"] if name not in plan["settings"]]
    differing += [name for name in ("held_out", "per_type") if plan[name] != record[name]]
    for name, known in (("starts", plan["starts"]), ("overrides", plan["methods"])):
        both = set(known) & set(record["starts" if name == "starts" else "methods"])
        if any(plan[name].get(key) != record[name].get(key) for key in both):
            differing.append(name)
    if differing:
        raise CheckpointError(
            f"The record is of another protocol ({', '.join(differing)} differ); "
            "name one that this run file made, or run the cells anew without it"
        )
