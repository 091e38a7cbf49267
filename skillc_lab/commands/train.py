"""``skillc train``: train a policy, or go on with a run that was interrupted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from skillc_gym.envs.registry import env_spec
from skillc_lab.cli.command import Command
from skillc_lab.cli.help import recipe_help
from trainers.base import end_together
from trainers.config import Settings, TrainConfig
from trainers.engines import check_engine
from trainers.recipes import get_recipe
from trainers.tracking import complete_settings, make_progress
from trainers.training import run

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


def _run(options: TrainOptions) -> int:
    finished = run(options.config(), progress=make_progress()).finished
    if finished:
        end_together()
    return 0 if finished else 130


def complete_from_policy(given: Mapping[str, Any], *, learning: bool) -> tuple[dict[str, Any], list[str]]:
    """What was typed, and what the policy's folder says for the rest, with lines for the user.

    Chat wording, method and engine are looked up before anything is said of settings.
    """
    if "method" in given:
        get_recipe(str(given["method"]))
    if "engine" in given:
        check_engine(str(given["engine"]))
    if "chat" in given:
        env_spec(str(given.get("env", TrainConfig.env))).chat_format(str(given["chat"]))
    return complete_settings(given, learning=learning)


COMMAND = Command(
    TrainOptions,
    _run,
    "interrupted; the same command goes on from the last checkpoint, or starts where there is none.",
    MAIN,
    recipe_help,
    partial(complete_from_policy, learning=True),
)
