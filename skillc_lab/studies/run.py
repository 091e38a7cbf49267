"""Running a comparison: cell by cell, on all cores, to be continued after an interruption.

Cells run in processes of their own, one thread each; none outlives the process that asked for them.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TypeVar, cast

from skillc_gym.errors import ConfigError
from skillc_lab.studies.cells import begun_cells, cell_path, read_cell, read_written, run_cell
from skillc_lab.studies.declared import require_preregistered
from skillc_lab.studies.pictures import draw_record
from skillc_lab.studies.plan import Cell, ComparisonPlan
from skillc_lab.studies.record import ComparisonRecord, read_record, record_path, write_comparison
from skillc_lab.studies.result import CellResult
from trainers.models import check_model
from trainers.tracking import RunFolder, make_folder, one_revision, provenance, require_own_folder

Note = Callable[[str], object]
Work = Callable[[ComparisonPlan, Cell], object]
Job = TypeVar("Job")
_THREADS = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}


def compare(
    plan: ComparisonPlan,
    cells: Sequence[Cell] | None = None,
    *,
    workers: int = 0,
    note: Note = lambda text: None,
    work: Work | None = None,
    left_out: Callable[[Cell], str] = lambda cell: "left to another process, which is at it, or its time is up",
) -> list[CellResult]:
    """Runs what is not there yet of a comparison, and writes its record anew after every cell.

    The record (``<title>.json``) holds the protocol and the outcome of every task; ``table.md`` and the pictures are
    drawn from it in the end, which an interruption is as well. Calling it again goes on; cells of another protocol are
    refused, one that fails is passed over, as is one that another process is at.

    Args:
        plan: What is compared; if it says preregistered, git must show it.
        cells: Which of its cells are run, after their starting points; all if None. The record is of all that are done.
        workers: Processes, one thread each; 0 for none but this one.
        note: Told of every cell that is done.
        work: Does a cell and writes its file; :func:`~skillc_lab.studies.run_cell` if none.
        left_out: Says why its work did not do a cell.

    Returns:
        The trained cells that were meant, in the plan's order; those that were interrupted or failed are missing.

    Raises:
        ConfigError: The plan is not what git shows, or a record is there whose cells are not, and would be lost.
        MissingDataError: A starting point is not there.
    """
    if plan.preregistered:
        require_preregistered(plan.declared, begun_cells(plan))
    meant = plan.with_starts(plan.cells if cells is None else cells)
    require_own_folder(plan.folder, ("cells", record_path(plan).name), ("table.md", "*.png"), "--out")
    make_folder(plan.folder / "cells")
    done = _done(plan)
    _require_cells(plan)
    missing = [cell for cell in meant if cell not in done]
    if work is None:
        for start in dict.fromkeys(cell.start for cell in missing):  # one that is not there would fail cell by cell
            check_model(plan.config.with_(model=plan.models[start]).model_path)
    try:
        for cell in _ended(plan, missing, workers, note, partial(_unless_done, work or run_cell)):
            done = _done(plan)
            if cell in done:
                without, with_skill = (f"{100 * rate:.0f} %" for rate in (done[cell].without, done[cell].with_skill))
                left = len(set(meant) - done.keys())
                note(f"{cell.name}: {without} without the skill, {with_skill} with it; {left} to go")
                write_comparison(plan, [*done.values()])
            else:
                note(f"{cell.name}: {left_out(cell)}")
    finally:
        written = None
        while written != (done := _done(plan)):  # another process may have ended a cell while the record was written
            written, record = done, write_comparison(plan, [*done.values()])
        draw_record(record, plan.folder)
    return [done[cell] for cell in meant if cell.trained and cell in done]


def require_one_revision(
    plan: ComparisonPlan, record: ComparisonRecord | None = None, *, allow_changes: bool = False
) -> None:
    """Refuses to go on with what another revision, or one with changes, began; the message names them.

    What is missing counts as it stands in a ``record``, which it is going to be restored from.
    """
    recorded = {} if record is None else record.found
    files = [plan.folder / "runs" / cell.name / "versions.json" for cell in plan.cells]
    begun = [read_written(path).get("git") for path in files if path.is_file()]
    results = [read_cell(plan, cell) or recorded.get(cell.place) for cell in plan.jobs]
    done = [result.versions.get("git") for result in results if result]
    try:
        one_revision([provenance()["git"], *begun, *done], allow_changes=allow_changes)
    except ConfigError as error:
        raise ConfigError(f"{plan.folder}: {error}") from error


def _done(plan: ComparisonPlan) -> dict[Cell, CellResult]:
    """The cells that are done, in the plan's order; other processes may do some in the same folder."""
    return {cell: found for cell in plan.jobs if (found := read_cell(plan, cell))}


def _require_cells(plan: ComparisonPlan) -> None:
    """Refuses to write over a record none of whose cells is there any more, or whose methods are all others."""
    path = record_path(plan)
    recorded = [Cell(*result.place) for result in read_record(path).results] if path.is_file() else []
    trained = [cell for cell in recorded if cell.trained]
    if trained and not any(cell_path(plan, cell).is_file() for cell in trained):
        raise ConfigError(
            f"{path} is a record, and {plan.folder / 'cells'} has none of its cells: they would be lost. Name another "
            f"folder; or, for a study, take them over by --restore {path}"
        )
    others = sorted({cell.method for cell in trained})
    if trained and set(plan.methods).isdisjoint(others):
        raise ConfigError(f"{path} is of another comparison ({', '.join(others)}); name another folder.")


def _unless_done(work: Work, plan: ComparisonPlan, cell: Cell) -> object:
    """Does a cell, unless that is done, or another process is at it."""
    with ExitStack() as stack:
        try:
            stack.enter_context(RunFolder(plan.folder / "locks" / cell.name).locked())
        except ConfigError as error:
            if not isinstance(error.__cause__, BlockingIOError):
                raise
            return read_cell(plan, cell)
        return read_cell(plan, cell) or work(plan, cell)


def _ended(plan: ComparisonPlan, cells: Sequence[Cell], workers: int, note: Note, work: Work) -> Iterable[Cell]:
    if workers < 1:
        for cell in cells:
            work(plan, cell)
            yield cell
        return
    logs = {cell: plan.folder / "logs" / f"{cell.name}.log" for cell in cells}
    for cell, well in run_jobs(partial(work, plan), {path: cell for cell, path in logs.items()}, workers):
        if well:
            yield cell
        else:
            note(f"{cell.name}: failed, {logs[cell]} says why; the same command tries again")


# Processes ------------------------------------------------------------------------------------------------------------


def cores() -> int:
    """How many cores this process may use: what ``workers=0`` asks for."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_jobs(work: Callable[[Job], object], jobs: Mapping[Path, Job], workers: int) -> Iterator[tuple[Job, bool]]:
    """Runs jobs in their order, so many at a time, and yields each as it ends, and whether it ended well.

    Jobs stand by the file that their words (standard output and error) are added to; they and the work are pickled.
    Results are files, for whoever comes after an interruption, which is passed on once the processes have stopped.
    """
    waiting = list(jobs.items())
    running: dict[int, tuple[Job, BaseProcess]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                log, job = waiting.pop(0)
                process = _started(work, job, log)
                running[process.sentinel] = (job, process)
            for sentinel in wait(list(running)):
                job, process = running.pop(cast("int", sentinel))
                process.join()
                yield job, process.exitcode == 0
    finally:
        # Ctrl-C, or a caller that wants no more: they finish their update and save.
        for _, process in running.values():
            process.terminate()
        for _, process in running.values():
            process.join()


def _started(work: Callable[[Job], object], job: Job, log: Path) -> BaseProcess:
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(_THREADS)
    try:
        context = multiprocessing.get_context("spawn")
        process = context.Process(target=_work, args=(work, job, log, os.getpid()))
        process.start()
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
    return process


def _work(work: Callable[[Job], object], job: Job, log: Path, parent: int) -> None:
    if hasattr(os, "setpgrp"):
        os.setpgrp()  # a terminal's Ctrl-C reaches the parent alone, which asks once
    threading.Thread(target=_leave_with, args=(parent,), daemon=True).start()
    log.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(descriptor, stream.fileno())
    with suppress(KeyboardInterrupt):  # it has saved
        work(job)


def _leave_with(parent: int) -> None:
    """Ends this process as soon as its parent is gone: a checkpoint is there, and its lock must not stay."""
    while os.getppid() == parent:
        time.sleep(0.2)
    os._exit(1)
