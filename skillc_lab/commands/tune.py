"""``skillc tune``: try settings of methods under one protocol, and say which is the best of each."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from skillc_lab.cli.command import Command, complain, say
from skillc_lab.cli.policy import complete_from_policy
from skillc_lab.commands.compare import COMMAND as COMPARE
from skillc_lab.commands.compare import CompareOptions
from skillc_lab.planning import typed_words
from skillc_lab.studies import (
    ComparisonPlan,
    check_settings,
    cores,
    cross,
    held_out_split,
    read_grid,
    tune,
    tuning_table,
)
from trainers.tracking import write_json


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


def run(options: TuneOptions) -> int:
    """Runs the command; 1 if runs are missing."""
    config = options.settings.config()
    overrides = cross(options.methods, read_grid(options.grid_options))
    for label, changes in overrides.items():
        check_settings(changes, f"the grid, {label}")
    plan = ComparisonPlan(
        config=config,
        methods=tuple(overrides),
        seeds=options.seeds,
        folder=options.out,
        held_out=held_out_split(config.env, options.held_out),
        per_type=options.per_type,
        overrides=overrides,
        title="tuning",
    )
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


COMMAND = Command(
    TuneOptions,
    run,
    COMPARE.interrupted,
    ("grid_options", "rounds", *COMPARE.main_options),
    complete=partial(complete_from_policy, learning=True),
)
