"""``skillc study``: run a grid of methods, starting points and seeds from a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import tyro

from skillc_gym.errors import ConfigError
from skillc_lab.cli.command import Command, complain, say
from skillc_lab.studies import (
    Cell,
    CellResult,
    Changed,
    ComparisonPlan,
    check_cell,
    compare,
    cores,
    draw_record,
    read_record,
    read_run_file,
    replay_cell,
    require_one_revision,
    require_recorded,
    restore_cells,
)
from trainers.tracking import require_clean


@dataclass(frozen=True)
class StudyOptions:
    """Run a grid of methods, starting points and seeds from a file, and draw its table and pictures from the record.

    The same command goes on with what was interrupted: finished cells are not run again, an unfinished one goes on from
    its checkpoint. Cells run seed by seed, so that an interrupted study is a whole one of fewer seeds. A record is of
    one clean revision.

    Example: skillc study benchmarks/studies/first_table.yaml --workers 2
    One cell: skillc study benchmarks/studies/first_table.yaml --methods skillc --starts hard --seeds 0
    The same, compared with a record task by task: ... --check benchmarks/records/first_table.json
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


def _run(options: StudyOptions) -> int:
    folder = options.out or Path("runs/studies") / options.run_file.stem
    if options.workers < 0:
        raise ConfigError(f"workers must be at least 1, or 0 for one per core, got {options.workers}")
    if options.draw:
        return _drawn(options, folder)
    plan = read_run_file(options.run_file, folder)
    cells = plan.choose(options.methods, options.starts, options.seeds)
    played = options.changed.plan(plan) if options.changed else plan
    record = None if options.check is None else read_record(options.check)
    if record is not None:
        require_recorded(played, cells, record)
    done = _play(plan, played, cells, options)
    say_table(played.folder)
    checks = [check_cell(cell, record) for cell in done] if record is not None else []
    for check in checks:
        say(check.said)
    return 0 if len(done) == len(cells) and all(check.equal for check in checks) else 1


def _drawn(options: StudyOptions, folder: Path) -> int:
    if options.check is not None:
        raise ConfigError("--draw runs nothing that could be checked; leave out --draw or --check")
    title = options.run_file.stem
    if options.changed:
        folder, title = options.changed.place(folder, title)
    draw_record(read_record(folder / f"{title}.json"), folder)
    say_table(folder)
    return 0


def _play(
    plan: ComparisonPlan, played: ComparisonPlan, cells: Sequence[Cell], options: StudyOptions
) -> list[CellResult]:
    """Trains what is missing of a plan, or plays it otherwise with the policies of the cells that are done."""
    require_clean(allow_changes=options.allow_changes)
    record = None if options.restore is None else read_record(options.restore)
    # Policies may be older than what plays them: the record names the revision that played.
    require_one_revision(played, None if options.changed else record, allow_changes=options.allow_changes)
    if record is not None:
        complain(f"{len(restore_cells(plan, record))} cells taken from {options.restore}")
    workers = options.workers or cores()
    what = f"{len(cells)} cells of {plan.budget:,} generated tokens"
    if options.changed:
        what = f"The policies of {plan.folder}, {options.changed.name}"
    complain(f"{what}, {workers} at once, in {played.folder}")
    work = partial(replay_cell, plan) if options.changed else None
    return compare(played, cells, workers=workers, note=complain, work=work)


def say_table(folder: Path) -> None:
    """Says the table that a comparison left in its folder."""
    table = folder / "table.md"
    say(table.read_text(encoding="utf-8") if table.is_file() else "No cell of the baseline is done yet.")


COMMAND = Command(StudyOptions, _run, "interrupted; the same command goes on.")
