"""``skillc study``: run a grid of methods, starting points and seeds from a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from skillc_gym.errors import ConfigError
from skillc_lab.cli.command import Command, complain, say
from skillc_lab.studies import CellResult, Changed, ComparisonPlan, Replay, Selection, read_run_file

__all__ = ["COMMAND", "StudyOptions"]


@dataclass(frozen=True)
class StudyOptions:
    """Run a grid of methods, starting points and seeds from a file, and draw its table and pictures from the record.

    The same command goes on with what was interrupted: finished cells are not run again, an unfinished one goes on from
    its checkpoint. Cells run seed by seed, so that an interrupted study is a whole one of fewer seeds. A record is of
    one clean revision.

    Example: skillc study benchmarks/studies/first_table.yaml --workers 2
    One cell: skillc study benchmarks/studies/first_table.yaml --methods skillc --starts hard --seeds 0
    The same, compared with a record task by task: ... --check docs/results/first_table.json
    The finished cells' policies on other tasks: ... --held-out valid_seen
    The same, shown texts that should not help: ... --library alfworld:wrong
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
    check: Path | None = None
    """A record: say of each cell whether the outcome of every task is the record's; exit status 1 if one differs."""
    held_out: str | None = None
    """Train nothing: play this split with the policies of the cells that are done; record and table in OUT/SPLIT."""
    library: str | None = None
    """Train nothing: show this skill library to the policies of the cells that are done; files in OUT/LIBRARY."""
    draw: bool = False
    """Run nothing: draw table and pictures from the record that is there."""
    allow_changes: bool = False
    """Run from a working tree with changes, or go on with another revision's cells; the record says so."""

    @property
    def changed(self) -> Changed:
        """What the policies of finished cells play otherwise."""
        return Changed(self.held_out, self.library)


def study(options: StudyOptions) -> int:
    """Runs the command; 130 if cells are missing, 1 if one differs from the record that it is checked against."""
    folder = options.out or Path("runs/studies") / options.run_file.stem
    if options.workers < 0:
        raise ConfigError(f"workers must be at least 1, or 0 for one per core, got {options.workers}")
    if options.draw:
        return _drawn(options, folder)
    plan = read_run_file(options.run_file, folder)
    selection = Selection(options.methods, options.starts, options.seeds)
    wanted = len(selection.cells(plan))
    played = options.changed.plan(plan) if options.changed else plan
    if options.check is not None:
        _require_recorded(played, selection, options.check)
    done = _run(plan, selection, options)
    _shown(played.folder)
    equal = options.check is None or _checked(done, options.check)
    if len(done) < wanted:
        return 130
    return 0 if equal else 1


def _drawn(options: StudyOptions, folder: Path) -> int:
    from skillc_lab.studies import draw_record, read_record

    if options.check is not None:
        raise ConfigError("--draw runs nothing that could be checked; leave out --draw or --check")
    title = options.run_file.stem
    if options.changed:
        folder, title = options.changed.place(folder, title)
    draw_record(read_record(folder / f"{title}.json"), folder)
    return _shown(folder)


def _require_recorded(plan: ComparisonPlan, selection: Selection, path: Path) -> None:
    from skillc_lab.studies import read_record, require_recorded

    require_recorded(plan, selection.cells(plan), read_record(path))


def _checked(cells: Sequence[CellResult], path: Path) -> bool:
    """Says of each cell how it stands beside the record; whether all are equal."""
    from skillc_lab.studies import check_cell, read_record

    record = read_record(path)
    checks = [check_cell(cell, record) for cell in cells]
    for check in checks:
        say(str(check))
    return all(check.equal for check in checks)


def _run(plan: ComparisonPlan, selection: Selection, options: StudyOptions) -> list[CellResult]:
    from skillc_lab.studies import compare, read_record, require_one_revision, restore_cells
    from trainers.tracking.revision import require_clean

    require_clean(allow_changes=options.allow_changes)
    if options.restore is not None:
        complain(f"{len(restore_cells(plan, read_record(options.restore)))} cells taken from {options.restore}")
    workers = options.workers or os.cpu_count() or 1
    if options.changed:
        return _replayed(plan, options.changed, selection, workers, allow_changes=options.allow_changes)
    require_one_revision(plan, allow_changes=options.allow_changes)
    cells = len(selection.cells(plan))
    complain(f"{cells} cells of {plan.budget:,} generated tokens, {workers} at once, in {plan.folder}")
    return compare(plan, selection=selection, workers=workers, note=complain)


def _replayed(
    plan: ComparisonPlan, changed: Changed, selection: Selection, workers: int, *, allow_changes: bool
) -> list[CellResult]:
    from skillc_lab.studies import compare, require_one_revision

    played = changed.plan(plan)
    # Policies may be older than what plays them: the record names the revision that played.
    require_one_revision(played, allow_changes=allow_changes)
    complain(f"The policies of {plan.folder}, {changed.name}, {workers} at once, in {played.folder}")
    return compare(played, selection=selection, workers=workers, note=complain, work=Replay(plan))


def _shown(folder: Path) -> int:
    table = folder / "table.md"
    say(table.read_text(encoding="utf-8") if table.is_file() else "No cell of the baseline is done yet.")
    return 0


COMMAND = Command(StudyOptions, study, "interrupted; the same command goes on.")
