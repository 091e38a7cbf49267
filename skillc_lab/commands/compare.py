"""``skillc compare``: train several methods under one protocol, and say which differ beyond noise.

``skillc tune``: try settings of methods under one protocol, and say which is the best of each.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from skillc_lab.cli.command import Command, complain, say
from skillc_lab.commands.study import say_table
from skillc_lab.commands.train import MAIN, complete_from_policy
from skillc_lab.planning import typed_words
from skillc_lab.studies import (
    ComparisonPlan,
    check_settings,
    compare,
    cores,
    cross,
    held_out_split,
    read_grid,
    tune,
    tuning_table,
)
from trainers.config import RECOMMENDED, Settings
from trainers.tracking import write_json

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
    """Methods, the baseline first; options behind a colon: skillc:omega=0.2,lam=0."""
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
    cells = compare(plan, workers=options.workers or cores(), note=complain)
    say_table(options.out)
    return 0 if len(cells) == len(plan.cells) else 1


def _plan(options: CompareOptions, methods: Sequence[str], **more: Any) -> ComparisonPlan:
    config = options.settings.config()
    held_out = held_out_split(config.env, options.held_out)
    return ComparisonPlan(config, tuple(methods), options.seeds, options.out, held_out, options.per_type, **more)


@dataclass(frozen=True)
class TuneOptions(CompareOptions):
    """Try all settings of a grid, for every method alike, and say which is the best of each.

    The rule: the mean over the seeds of success without the skill, half at the end and half averaged over training.
    With more than one round, each round but the last has half the budget of the next, and the better half of each
    method's settings goes on. The same command goes on with what was interrupted. What is best here was chosen on
    these tasks and seeds: report it on others.

    Example: skillc tune --methods grpo contrastive_relabelling grid.learning_rate=0.0003,0.001
    grid.temperature=1,1.5 --seeds 201 202 --held-out valid_seen --budget-tokens 140000 --model shipped
    """

    grid_options: Mapping[str, Any] = field(default_factory=dict)
    """Values of each setting that is tuned: grid.learning_rate=0.0003,0.001 grid.temperature=1,1.5."""
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
    ranked = tune(plan, rounds=options.rounds, workers=options.workers or cores(), note=complain)
    if not ranked:
        complain(f"Some runs are missing; the same command goes on. Their logs are in {options.out}")
        return 1
    write_json(options.out / "tuning.json", {"ranked": [{**asdict(found), "score": found.score} for found in ranked]})
    say(tuning_table(ranked).text())
    for method in dict.fromkeys(found.method for found in ranked):
        best = next(found for found in ranked if found.method == method)
        say(f"\nBest of {method}: skillc train {shlex.join(typed_words(plan.overrides[best.label]))}")
    return 0


_COMPLETE = partial(complete_from_policy, learning=True)
_GOES_ON = "interrupted; the same command goes on."
COMMANDS: Mapping[str, Command[Any]] = {
    "compare": Command(CompareOptions, _compare, _GOES_ON, _MAIN, complete=_COMPLETE),
    "tune": Command(TuneOptions, _tune, _GOES_ON, ("grid_options", "rounds", *_MAIN), complete=_COMPLETE),
}
