"""``skillc train``: train a policy, or go on with a run that was interrupted."""

from __future__ import annotations

from dataclasses import dataclass

from skillc_lab.cli.command import Command
from skillc_lab.cli.recipe_help import recipe_help
from trainers.config import Settings
from trainers.tracking import make_progress

__all__ = ["COMMAND", "TrainOptions"]


@dataclass(frozen=True)
class TrainOptions(Settings):
    """Train a policy, or go on with a run that was interrupted.

    Ctrl-C finishes the update, writes a checkpoint and stops; the same command goes on from there.

    The options of a method follow at the end; name it for those of another: skillc train --method grpo --help

    Example: skillc train --model shipped --chat compact --data generated --steps 40
    """


def train(options: TrainOptions) -> int:
    """Runs the command; 130 if the run was interrupted."""
    config = options.config()
    from trainers.training import run

    return 0 if run(config, progress=make_progress()).finished else 130


COMMAND = Command(TrainOptions, train, "interrupted while starting; the same command starts again.", recipe_help)
