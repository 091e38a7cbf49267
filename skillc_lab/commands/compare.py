"""``skillc compare``: train several methods under one protocol, and say which differ beyond noise."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from skillc_lab.cli.command import Command, complain
from skillc_lab.cli.policy import complete_from_policy
from skillc_lab.commands.study import say_table
from skillc_lab.commands.train import MAIN
from skillc_lab.studies import ComparisonPlan, compare, cores, held_out_split
from trainers.config import RECOMMENDED, Settings

_OWN = ("methods", "seeds", "out", "held_out", "per_type", "workers", "budget_tokens")


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


def run(options: CompareOptions) -> int:
    """Runs the command; 1 if cells are missing."""
    config = options.settings.config()
    held_out = held_out_split(config.env, options.held_out)
    plan = ComparisonPlan(config, options.methods, options.seeds, options.out, held_out, options.per_type)
    cells = compare(plan, workers=options.workers or cores(), note=complain)
    say_table(options.out)
    return 0 if len(cells) == len(plan.cells) else 1


COMMAND = Command(
    CompareOptions,
    run,
    "interrupted; the same command goes on.",
    (*_OWN, *(name for name in MAIN if name not in ("method", "seed", "run", "library", "max_context"))),
    complete=partial(complete_from_policy, learning=True),
)
