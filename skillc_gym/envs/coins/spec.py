"""What the suite knows of the coin collector."""

from dataclasses import replace
from pathlib import Path

from skillc_gym.chat import ChatFormat
from skillc_gym.envs.coins.tasks import SPLITS
from skillc_gym.envs.registry import EnvSpec
from skillc_gym.envs.warm_start import DemoTasks, WarmStart

_ROLE = "You walk through rooms described in words, one at a time. You fulfil the task by giving one command per turn."
_WARM_START = WarmStart(
    expert="skillc_gym.envs.coins.expert:demonstrator",
    error_rates={"easy": 0.75, "medium": 0.85, "hard": 0.90},
    generator={"seed": 0, "tasks_per_type": 400, "shortest": 2, "longest": 4},  # 1,200 mazes to train on
    policy="checkpoint_coins",
    demo=DemoTasks(
        held_out_split="test",
        held_out_per_type=80,
        panel_per_type=32,
        max_reply_tokens=16,
        max_episode_steps=24,
        max_episode_steps_of_data=24,
        preset_options={"tau_retire": 0.05},  # as in the houses: a smaller gap is within a panel's noise
    ),
)
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
    warm_start=_WARM_START,
)
SPECS = (COINS,)
