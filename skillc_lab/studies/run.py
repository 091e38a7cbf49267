"""Running a comparison: cell by cell, on all cores, to be gone on with after an interruption."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from skillc_gym.errors import ConfigError
from skillc_lab.studies.cells import read_cell, run_cell
from skillc_lab.studies.drawing import draw_record
from skillc_lab.studies.plan import Cell, ComparisonPlan
from skillc_lab.studies.record import write_comparison
from skillc_lab.studies.result import CellResult
from skillc_lab.studies.selection import EVERYTHING, Selection
from skillc_lab.studies.workers import run_jobs
from trainers.tracking.json_files import read_object
from trainers.tracking.revision import one_revision
from trainers.tracking.run_folder import make_folder, provenance

__all__ = ["compare", "require_one_revision"]

Note = Callable[[str], object]
Work = Callable[[ComparisonPlan, Cell], object]


def compare(
    plan: ComparisonPlan,
    *,
    selection: Selection = EVERYTHING,
    workers: int = 0,
    note: Note = lambda text: None,
    work: Work | None = None,
) -> list[CellResult]:
    """Runs what is not there yet of a comparison, and writes its record anew after every cell.

    The record (``<title>.json``) holds the protocol and the outcome of every task; ``table.md`` and the pictures are
    drawn from it in the end, which an interruption is as well. Calling it again goes on; cells of another protocol are
    refused, one that fails is passed over.

    Args:
        plan: What is compared.
        selection: Which cells are run; the record is of all that are there.
        workers: Processes, one thread each; 0 for none beside this one.
        note: Told of every cell that is done.
        work: Does a cell and writes its file; :func:`~skillc_lab.studies.cells.run_cell` if none.

    Returns:
        The trained cells that were meant, in the plan's order; those that were interrupted or failed are missing.

    Raises:
        UnknownNameError: The selection names what the plan does not have.
        CheckpointError: The folder holds cells of another protocol.
    """
    meant = selection.jobs(plan)
    make_folder(plan.folder / "cells")
    done = {cell: found for cell in plan.jobs if (found := read_cell(plan, cell))}
    missing = [cell for cell in meant if cell not in done]
    left = len(missing)
    try:
        for cell, result in _results(plan, missing, workers, note, work or run_cell):
            done[cell] = result
            left -= 1
            note(f"{cell.name}: {_described(result)}; {left} to go")
            write_comparison(plan, _ordered(plan, done))
    finally:
        draw_record(write_comparison(plan, _ordered(plan, done)), plan.folder)
    return [done[cell] for cell in meant if cell.trained and cell in done]


def require_one_revision(plan: ComparisonPlan, *, allow_changes: bool = False) -> None:
    """Refuses to go on with what another revision, or one with changes, began.

    Raises:
        ConfigError: The message names the revisions.
    """
    files = [plan.folder / "runs" / cell.name / "versions.json" for cell in plan.cells]
    begun = [read_object(path).get("git") for path in files if path.is_file()]
    done = [found.versions.get("git") for cell in plan.jobs if (found := read_cell(plan, cell))]
    try:
        one_revision([provenance()["git"], *begun, *done], allow_changes=allow_changes)
    except ConfigError as error:
        raise ConfigError(f"{plan.folder}: {error}") from error


def _ordered(plan: ComparisonPlan, done: Mapping[Cell, CellResult]) -> list[CellResult]:
    return [done[cell] for cell in plan.jobs if cell in done]


def _results(
    plan: ComparisonPlan, cells: Sequence[Cell], workers: int, note: Note, work: Work
) -> Iterator[tuple[Cell, CellResult]]:
    """Pairs of a cell and its result, as they come."""
    for cell in _ended(plan, cells, workers, note, work):
        result = read_cell(plan, cell)
        if result is not None:
            yield cell, result


def _ended(plan: ComparisonPlan, cells: Sequence[Cell], workers: int, note: Note, work: Work) -> Iterable[Cell]:
    if workers < 1:
        for cell in cells:
            work(plan, cell)
            yield cell
        return
    logs = {_log(plan, cell): cell for cell in cells}
    for cell, well in run_jobs(partial(work, plan), logs, workers):
        if not well:
            note(f"{cell.name}: failed, {_log(plan, cell)} says why; the same command tries again")
        yield cell


def _log(plan: ComparisonPlan, cell: Cell) -> Path:
    return plan.folder / "logs" / f"{cell.name}.log"


def _described(result: CellResult) -> str:
    return f"{100 * result.without:.0f} % without the skill, {100 * result.with_skill:.0f} % with it"
