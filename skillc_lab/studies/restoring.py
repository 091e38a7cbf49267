"""Going on from a record: its finished cells are put where a comparison looks for them."""

from __future__ import annotations

from skillc_gym.errors import CheckpointError
from skillc_lab.studies.cells import cell_path, write_cell
from skillc_lab.studies.plan import Cell, ComparisonPlan
from skillc_lab.studies.protocol import protocol_differences
from skillc_lab.studies.record import ComparisonRecord
from trainers.tracking.run_folder import make_folder

__all__ = ["restore_cells"]


def restore_cells(plan: ComparisonPlan, record: ComparisonRecord) -> list[Cell]:
    """Writes the cells of a record that the plan asks for and that are not there yet.

    Args:
        plan: What is compared; it may have further methods, starting points and seeds.
        record: Of the same protocol. Its revision is left to
            :func:`~skillc_lab.studies.run.require_one_revision`, which reads the cells.

    Returns:
        The cells that were written.

    Raises:
        CheckpointError: One of them was run under another protocol; none has been written then.
    """
    found = {(result.start, result.method, result.seed): result for result in record.results}
    known = [cell for cell in plan.jobs if (cell.start, cell.method, cell.seed) in found]
    for cell in known:
        if changed := protocol_differences(record.protocol, plan.protocol, cell):
            raise CheckpointError(f"{cell.name} of the record was run under another protocol: {changed}")
    restored = [cell for cell in known if not cell_path(plan, cell).is_file()]
    make_folder(plan.folder / "cells")
    for cell in restored:
        write_cell(plan, cell, found[cell.start, cell.method, cell.seed])
    return restored
