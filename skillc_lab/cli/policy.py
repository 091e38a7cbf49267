"""What a command takes from the folder of the policy that it is given, once the names that were typed are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skillc_gym.envs.registry import env_spec
from trainers.config import TrainConfig
from trainers.engines import check_engine
from trainers.recipes import get_recipe
from trainers.tracking import complete_settings


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
