"""Running a comparison: cell by cell, on all cores, to be continued after an interruption."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from skillc_gym.errors import ConfigError
from skillc_lab.studies.cells import begun_cells, read_cell, run_cell
from skillc_lab.studies.declared import require_preregistered
from skillc_lab.studies.pictures import draw_record
from skillc_lab.studies.plan import Cell, ComparisonPlan
from skillc_lab.studies.record import ComparisonRecord, write_comparison
from skillc_lab.studies.result import CellResult
from skillc_lab.studies.workers import run_jobs
from trainers.tracking import make_folder, one_revision, provenance, read_object

Note = Callable[[str], object]
Work = Callable[[ComparisonPlan, Cell], object]


def compare(
    plan: ComparisonPlan,
    cells: Sequence[Cell] | None = None,
    *,
    workers: int = 0,
    note: Note = lambda text: None,
    work: Work | None = None,
) -> list[CellResult]:
    """Runs what is not there yet of a comparison, and writes its record anew after every cell.

    The record (``<title>.json``) holds the protocol and the outcome of every task; ``table.md`` and the pictures are
    drawn from it in the end, which an interruption is as well. Calling it again goes on; cells of another protocol are
    refused, one that fails is passed over.

    Args:
        plan: What is compared; if it says preregistered, git must show it.
        cells: Which of its cells are run, after their starting points; all if None. The record is of all that are done.
        workers: Processes, one thread each; 0 for none but this one.
        note: Told of every cell that is done.
        work: Does a cell and writes its file; :func:`~skillc_lab.studies.run_cell` if none.

    Returns:
        The trained cells that were meant, in the plan's order; those that were interrupted or failed are missing.
    """
    if plan.preregistered:
        require_preregistered(plan.declared, begun_cells(plan))
    meant = plan.with_starts(plan.cells if cells is None else cells)
    make_folder(plan.folder / "cells")
    done = _done(plan)
    missing = [cell for cell in meant if cell not in done]
    try:
        for cell in _ended(plan, missing, workers, note, partial(_unless_done, work or run_cell)):
            done = _done(plan)
            if cell in done:
                note(f"{cell.name}: {_rates(done[cell])}; {len(set(meant) - done.keys())} to go")
                write_comparison(plan, [*done.values()])
    finally:
        done = _done(plan)
        draw_record(write_comparison(plan, [*done.values()]), plan.folder)
    return [done[cell] for cell in meant if cell.trained and cell in done]


def require_one_revision(
    plan: ComparisonPlan, record: ComparisonRecord | None = None, *, allow_changes: bool = False
) -> None:
    """Refuses to go on with what another revision, or one with changes, began; the message names them.

    What is missing counts as it stands in a ``record``, which it is going to be restored from.
    """
    recorded = {} if record is None else record.found
    files = [plan.folder / "runs" / cell.name / "versions.json" for cell in plan.cells]
    begun = [read_object(path).get("git") for path in files if path.is_file()]
    results = [read_cell(plan, cell) or recorded.get(cell.place) for cell in plan.jobs]
    done = [result.versions.get("git") for result in results if result]
    try:
        one_revision([provenance()["git"], *begun, *done], allow_changes=allow_changes)
    except ConfigError as error:
        raise ConfigError(f"{plan.folder}: {error}") from error


def _done(plan: ComparisonPlan) -> dict[Cell, CellResult]:
    """The cells that are done, in the plan's order; other processes may do some in the same folder."""
    return {cell: found for cell in plan.jobs if (found := read_cell(plan, cell))}


def _unless_done(work: Work, plan: ComparisonPlan, cell: Cell) -> object:
    return read_cell(plan, cell) or work(plan, cell)


def _ended(plan: ComparisonPlan, cells: Sequence[Cell], workers: int, note: Note, work: Work) -> Iterable[Cell]:
    """Cells as they end, well or not."""
    if workers < 1:
        for cell in cells:
            work(plan, cell)
            yield cell
        return
    logs: dict[Path, Cell] = {plan.folder / "logs" / f"{cell.name}.log": cell for cell in cells}
    paths = {cell: path for path, cell in logs.items()}
    for cell, well in run_jobs(partial(work, plan), logs, workers):
        if not well:
            note(f"{cell.name}: failed, {paths[cell]} says why; the same command tries again")
        yield cell


def _rates(result: CellResult) -> str:
    return f"{100 * result.without:.0f} % without the skill, {100 * result.with_skill:.0f} % with it"
