"""Every method runs by its name in every world, a few tiny updates long."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from tests.trainers.toys import toy_config
from trainers.config import TrainConfig
from trainers.recipes import recipe_names

pytest.importorskip("trl", reason="needs the train extra")

from trainers.training import run

SHARED: dict[str, Any] = {
    "model": "shipped",
    "data": "generated",
    "chat": "compact",
    "steps": 2,
    "tasks_per_step": 1,
    "group_size": 2,
    "panel_per_type": 1,
    "validate_every": 9,
    "save_every": 9,
    "transcripts_every": 0,
    "micro_batches": 1,
    "max_context": 1024,
    "max_episode_steps": 2,
    "max_reply_tokens": 12,
    "kl_coef": 0.0,
    "task_sampling": "types",
}
WORLDS: dict[str, dict[str, Any]] = {
    "alfworld": {
        "task_types": ("pick_heat_then_place_in_recep",),
        "env_options": {"generator": {"seed": 0, "games_per_type": 4, "size": "small"}},
    },
    "webshop": {"env_options": {"generator": {"seed": 0, "size": 1000}}},
}
VARIANTS = (
    "grpo+relabelling+need",
    "skillc+forward_distillation+baseline",
    "skillc+allocation",
    "grpo+need",
    "grpo+entropy",
)
ODD_PARTS = ("gigpo", "ppo", "opsd_jsd", "skill_sd", "opid", "half_skill_grpo+relabelling")
"""Methods that use every part of a learner that GRPO does not."""
METHODS = (*recipe_names(), *VARIANTS)


@pytest.mark.parametrize("env", WORLDS)
@pytest.mark.parametrize("method", METHODS)
def test_it_runs_in_both_worlds(method: str, env: str, tmp_path: Path) -> None:
    result = run(TrainConfig(method=method, env=env, run=str(tmp_path), **{**SHARED, **WORLDS[env]}))
    last = result.metrics[-1]
    assert (result.finished, last["step"]) == (True, 2)
    assert math.isfinite(last["loss"])


@pytest.mark.parametrize("method", [name for name in ODD_PARTS if name.split("+")[0] in recipe_names()])
def test_it_learns_on_the_toy(method: str, toy_folder: Path, tmp_path: Path) -> None:
    often = {"steps": 3, "group_size": 12, "temperature": 3.0, "validate_every": 9, "save_every": 9}
    result = run(toy_config(toy_folder, method=method, run=str(tmp_path), **often))
    train = [record for record in result.metrics if record["event"] == "train"]
    assert len(train) == 3
    assert any(record["grad_norm"] > 0 for record in train)
