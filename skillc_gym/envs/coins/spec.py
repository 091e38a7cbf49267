"""What the suite knows of the coin collector."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from skillc_gym.chat import ChatFormat
from skillc_gym.envs.coins.tasks import SPLITS
from skillc_gym.envs.registry import EnvSpec

__all__ = ["COINS", "SPECS"]

_ROLE = "You walk through rooms described in words, one at a time. You fulfil the task by giving one command per turn."
COINS = EnvSpec(
    name="coins",
    id="skillc/CoinCollector-v0",
    entry_point="skillc_gym.envs.coins.env:CoinCollectorEnv",
    max_episode_steps=50,
    library=str(Path(__file__).parent / "skills"),
    chat={
        "default": replace(ChatFormat.default(), role=_ROLE),
        "compact": replace(ChatFormat.compact(), role="walker"),
    },
    splits=SPLITS,
    task_types={"easy": "easy", "medium": "medium", "hard": "hard"},
)
SPECS = (COINS,)
