"""``skillc train``: train a policy, or go on with a run that was interrupted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from skillc_lab.cli.command import Command
from skillc_lab.cli.policy import complete_from_policy
from skillc_lab.cli.recipe_help import recipe_help
from trainers.base import end_together
from trainers.config import Settings
from trainers.tracking import make_progress

MAIN = (
    *("model", "method", "env", "data", "library", "chat"),
    *("steps", "seed", "tasks_per_step", "group_size", "max_reply_tokens", "max_context"),
    *("learning_rate", "kl_coef", "micro_batches", "engine", "run"),
)
"""The settings that matter most."""


@dataclass(frozen=True)
class TrainOptions(Settings):
    """Train a policy, or go on with a run that was interrupted.

    What a policy was made with (wording of prompts, length of replies, step limit, sampling, environment) and learned
    with stands in its folder, and is taken where nothing else is given.

    Ctrl-C finishes the update, writes a checkpoint and stops; the same command goes on from there.

    With a method named, its own options follow at the end: skillc help train --method grpo

    Example: skillc train --model shipped --steps 40
    """


def train(options: TrainOptions) -> int:
    """Runs the command; 130 if the run was interrupted."""
    config = options.config()
    from trainers.training import run

    finished = run(config, progress=make_progress()).finished
    if finished:
        end_together()
    return 0 if finished else 130


COMMAND = Command(
    TrainOptions,
    train,
    "interrupted while starting; the same command starts again.",
    MAIN,
    recipe_help,
    partial(complete_from_policy, learning=True),
)
