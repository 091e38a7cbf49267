"""``skillc study``."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from skillc_gym.errors import ConfigError
from trainers.commands.cli.command import Command
from trainers.commands.cli.console import complain, say
from trainers.comparison.plan import ComparisonPlan
from trainers.comparison.run_file import read_run_file
from trainers.comparison.selection import Selection

__all__ = ["COMMAND", "StudyOptions"]


@dataclass(frozen=True)
class StudyOptions:
    """Run a grid of methods, starting points and seeds from a file, and draw its table and pictures from the record.

    The same command goes on with what was interrupted: finished cells are not run again, an unfinished one goes on from
    its checkpoint. Cells run seed by seed, so that an interrupted study is a whole one of fewer seeds. A record is of
    one clean revision.

    Example: skillc study benchmarks/studies/first_table.yaml --workers 2
    One cell: skillc study benchmarks/studies/first_table.yaml --methods skillc --starts hard --seeds 0
    """

    run_file: Annotated[Path, tyro.conf.Positional]
    """The study: a file in YAML or TOML."""
    out: Path | None = None
    """Folder for runs, record, table and pictures; runs/studies/NAME if none."""
    methods: tuple[str, ...] = ()
    """Run these methods of the file alone; all if none."""
    starts: tuple[str, ...] = ()
    """Run from these starting points of the file alone; all if none."""
    seeds: tuple[int, ...] = ()
    """Run these seeds of the file alone; all if none."""
    restore: Path | None = None
    """A record of this run file: its finished cells are taken over, and the rest is run."""
    workers: int = 0
    """Runs at once, one thread each; 0 for one per core."""
    draw: bool = False
    """Run nothing: draw table and pictures from the record that is there."""
    allow_changes: bool = False
    """Run from a working tree with changes, or go on with another revision's cells; the record says so."""


def study(options: StudyOptions) -> int:
    """Runs the command; 130 if cells are missing."""
    folder = options.out or Path("runs/studies") / options.run_file.stem
    if options.workers < 0:
        raise ConfigError(f"workers must be at least 1, or 0 for one per core, got {options.workers}")
    if options.draw:
        from trainers.comparison.record import draw_record, read_record

        draw_record(read_record(folder / f"{options.run_file.stem}.json"), folder)
        return _shown(folder)
    plan = read_run_file(options.run_file, folder)
    selection = Selection(options.methods, options.starts, options.seeds)
    wanted = len(selection.cells(plan))
    done = _run(plan, selection, options)
    _shown(folder)
    return 0 if done == wanted else 130


def _run(plan: ComparisonPlan, selection: Selection, options: StudyOptions) -> int:
    from trainers.comparison.record import read_record
    from trainers.comparison.restoring import restore_cells
    from trainers.comparison.run import compare, require_one_revision
    from trainers.tracking.revision import require_clean

    require_clean(allow_changes=options.allow_changes)
    if options.restore is not None:
        complain(f"{len(restore_cells(plan, read_record(options.restore)))} cells taken from {options.restore}")
    require_one_revision(plan, allow_changes=options.allow_changes)
    workers = options.workers or os.cpu_count() or 1
    cells = len(selection.cells(plan))
    complain(f"{cells} cells of {plan.budget:,} generated tokens, {workers} at once, in {plan.folder}")
    return len(compare(plan, selection=selection, workers=workers, note=complain))


def _shown(folder: Path) -> int:
    table = folder / "table.md"
    say(table.read_text(encoding="utf-8") if table.is_file() else "No cell of the baseline is done yet.")
    return 0


COMMAND = Command(StudyOptions, study, "interrupted; the same command goes on.")
