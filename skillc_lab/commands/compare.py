"""``skillc compare``: train several methods under one protocol, and say which differ beyond noise.

``skillc study``: run a grid of methods, starting points and seeds from a file.
``skillc tune``: try settings of methods under one protocol, and say which is the best of each.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import tyro

from skillc_gym.errors import ConfigError
from skillc_lab.cli.command import Command, complain, refuse_options, say
from skillc_lab.commands.train import MAIN, complete_from_policy
from skillc_lab.planning import typed_words
from skillc_lab.studies import (
    Cell,
    CellResult,
    Changed,
    ComparisonPlan,
    check_cell,
    check_settings,
    compare,
    cores,
    cross,
    draw_record,
    held_out_split,
    read_grid,
    read_record,
    read_run_file,
    replay_cell,
    require_one_revision,
    require_recorded,
    restore_cells,
    tune,
    tuning_table,
)
from skillc_lab.studies.cells import cell_path, read_cell
from trainers.config import RECOMMENDED, Settings
from trainers.tracking import require_clean, write_json

_MAIN = (
    *("methods", "seeds", "out", "held_out", "per_type", "workers", "budget_tokens"),
    *(name for name in MAIN if name not in ("method", "seed", "run", "library", "max_context")),
)


@dataclass(frozen=True)
class CompareOptions:
    """Train several methods under one protocol and say which differ by more than noise.

    All runs share the panel, the starting point, the tasks, the settings and the budget of generated tokens
    (--budget-tokens). The first method is the baseline. The same command goes on with what was interrupted.

    Example: skillc compare --methods grpo skillc half_skill_grpo+relabelling --seeds 0 1 2 --budget-tokens 500000
    --steps 60 --model shipped
    """

    settings: Settings
    methods: tuple[str, ...] = ("grpo", RECOMMENDED)
    """Methods, the baseline first; options behind a colon: skillc:omega=0.2,rho=0.5."""
    seeds: tuple[int, ...] = (0, 1, 2)
    """Training seeds."""
    out: Path = Path("comparison")
    """Folder for the runs, comparison.json, table.md and comparison.png."""
    held_out: str | None = None
    """Split of the tasks that are played before and after training; the environment's own held-out split if none."""
    per_type: int | None = 24
    """So many of them per type; all if none."""
    workers: int = 0
    """Runs at once; 0 for one per core."""


def _compare(options: CompareOptions) -> int:
    plan = _plan(options, options.methods)
    cells = compare(plan, workers=_at_once(options), note=complain)
    _say_table(options.out)
    return 0 if len(cells) == len(plan.cells) and None not in _starts(plan, plan.cells) else 1


def _starts(plan: ComparisonPlan, cells: Sequence[Cell]) -> list[CellResult | None]:
    """What the starting points of some cells played as they are; None for one that is missing."""
    return [read_cell(plan, cell) for cell in plan.with_starts(cells) if not cell.trained]


def _at_once(options: CompareOptions | StudyOptions) -> int:
    if options.workers < 0:
        raise ConfigError(f"workers must be at least 1, or 0 for one per core, got {options.workers}")
    return options.workers or cores()


def _plan(options: CompareOptions, methods: Sequence[str], **more: Any) -> ComparisonPlan:
    config = options.settings.config()
    refuse_options(config, ("method", "run", "resume"), "A comparison", ", and name methods by --methods")
    held_out = held_out_split(config.env, options.held_out)
    return ComparisonPlan(config, tuple(methods), options.seeds, options.out, held_out, options.per_type, **more)


@dataclass(frozen=True)
class TuneOptions(CompareOptions):
    """Try all settings of a grid, for every method alike, and say which is the best of each.

    The rule: the mean over the seeds of success without the skill, half at the end and half averaged over training.
    With more than one round, each round but the last has half the budget of the next, and the better half of each
    method's settings goes on. The same command goes on with what was interrupted. What is best here was chosen on
    these tasks and seeds: report it on others.

    Example: skillc tune --methods grpo guarded_imitation grid.learning_rate=0.0003,0.001
    grid.temperature=1,1.5 --seeds 201 202 --held-out valid_seen --budget-tokens 140000 --model shipped
    """

    grid_options: Mapping[str, Any] = field(default_factory=dict)
    """Values of each setting that is tuned: grid.learning_rate=0.0003,0.001 grid.temperature=1,1.5."""
    methods: tuple[str, ...] = CompareOptions.methods
    """Methods, with additions if they have some; their options belong into the grid: grid.method.omega=0.1,0.2."""
    rounds: int = 1
    """Rounds of halving; 1 for the whole grid at the full budget."""
    seeds: tuple[int, ...] = (201, 202)
    """Training seeds, better others than those of the later comparison."""
    out: Path = Path("tuning")
    """Folder for the runs, a record per round, and tuning.json with the ranks."""


def _tune(options: TuneOptions) -> int:
    overrides = cross(options.methods, read_grid(options.grid_options))
    for label, changes in overrides.items():
        check_settings(changes, f"the grid, {label}")
    plan = _plan(options, list(overrides), overrides=overrides, title="tuning")
    ranked = tune(plan, rounds=options.rounds, workers=_at_once(options), note=complain)
    if not ranked:
        complain(f"Some runs are missing; the same command goes on. Their logs are in {options.out}")
        return 1
    write_json(options.out / "tuning.json", {"ranked": [{**asdict(found), "score": found.score} for found in ranked]})
    say(tuning_table(ranked).text())
    for method in dict.fromkeys(found.method for found in ranked):
        best = next(found for found in ranked if found.method == method)
        say(f"\nBest of {method}: skillc train {shlex.join(typed_words(plan.overrides[best.label]))}")
    return 0


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


def _study(options: StudyOptions) -> int:
    folder = options.out or Path("runs/studies") / options.run_file.stem
    if options.draw:
        return _drawn(options, folder)
    _at_once(options)
    plan = read_run_file(options.run_file, folder)
    cells = plan.choose(options.methods, options.starts, options.seeds)
    played = options.changed.plan(plan) if options.changed else plan
    record = None if options.check is None else read_record(options.check)
    if record is not None:
        # A record of one part of a study may be without the starting points.
        recorded = [cell for cell in played.with_starts(cells) if cell.trained or cell.place in record.found]
        require_recorded(played, recorded, record)
    trained = _play(plan, played, cells, options)
    _say_table(played.folder)
    starts = _starts(played, cells)
    done = [*trained, *filter(None, starts)]
    checks = [check_cell(cell, record) for cell in done if cell.place in record.found] if record is not None else []
    for check in checks:
        say(check.said)
    whole = len(trained) == len(cells) and None not in starts
    return 0 if whole and all(check.equal for check in checks) else 1


def _drawn(options: StudyOptions, folder: Path) -> int:
    unused = ("check", "restore", "methods", "starts", "seeds", "workers")
    refuse_options(options, unused, "--draw runs nothing, draws the whole record, and")
    title = options.run_file.stem
    if options.changed:
        folder, title = options.changed.place(folder, title)
    draw_record(read_record(folder / f"{title}.json"), folder)
    _say_table(folder)
    return 0


def _play(
    plan: ComparisonPlan, played: ComparisonPlan, cells: Sequence[Cell], options: StudyOptions
) -> list[CellResult]:
    """Trains what is missing of a plan, or plays it otherwise with the policies of the cells that are done."""
    require_clean(allow_changes=options.allow_changes)
    record = None if options.restore is None else read_record(options.restore)
    if record is not None and options.changed:
        raise ConfigError("--restore brings cells without policies to play; leave --held-out and --library out")
    # Policies may be older than what plays them: the record names the revision that played.
    require_one_revision(played, record, allow_changes=options.allow_changes)
    if record is not None:
        complain(f"{len(restore_cells(plan, record))} cells taken from {options.restore}")
    workers = _at_once(options)
    where = f"{workers} at once, in {played.folder}"
    if not options.changed:
        complain(f"{len(cells)} cells of {plan.budget:,} generated tokens, {where}")
        return compare(played, cells, workers=workers, note=complain)
    complain(f"The policies of {plan.folder}, {options.changed.name}, {where}")

    def left(cell: Cell) -> str:
        if cell_path(plan, cell).is_file():
            return "left to another process, which plays it"
        return f"its cell in {plan.folder} is not done yet; run the study there without --held-out and --library first"

    return compare(played, cells, workers=workers, note=complain, work=partial(replay_cell, plan), left_out=left)


def _say_table(folder: Path) -> None:
    """Says the table that a comparison left in its folder."""
    table = folder / "table.md"
    say(table.read_text(encoding="utf-8") if table.is_file() else "No cell of the baseline is done yet.")
    complain(f"Runs, table and pictures: {folder}")


_COMPLETE = partial(complete_from_policy, learning=True)
_GOES_ON = "interrupted; the same command goes on."
COMMANDS: Mapping[str, Command[Any]] = {
    "compare": Command(CompareOptions, _compare, _GOES_ON, _MAIN, complete=_COMPLETE),
    "study": Command(StudyOptions, _study, _GOES_ON),
    "tune": Command(TuneOptions, _tune, _GOES_ON, ("grid_options", "rounds", *_MAIN), complete=_COMPLETE),
}
