"""What a policy's method learned to show beside its weights: kept with them, and shown when the policy is evaluated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from skillc_gym.chat import Message
from skillc_gym.errors import CheckpointError
from trainers.config import TrainConfig
from trainers.memory import MemoryTools, SkillMemory
from trainers.memory.banked import BankOptions
from trainers.recipes import recipe_in
from trainers.rollout.opening import graded_library
from trainers.tracking.files import read_object, write_json

MEMORY_FILE = "skill_memory.json"


def save_policy_memory(folder: Path, config: TrainConfig, state: Mapping[str, Any]) -> None:
    """Writes a memory's state beside the weights, with the method that can read it."""
    method = {"preset": config.method, "preset_options": dict(config.method_options), "env": config.env}
    write_json(folder / MEMORY_FILE, {**method, "state": dict(state)})


def policy_memory(config: TrainConfig) -> SkillMemory | None:
    """The memory that lies beside the configured policy, None if there is none; a CheckpointError if it is damaged."""
    path = Path(config.model_path) / MEMORY_FILE
    if not path.is_file():
        return None
    saved = read_object(path)
    if saved.get("env") != config.env:
        raise CheckpointError(
            f"{path} was learned in {saved.get('env')!r}, and {config.env!r} is played; --memory library shows the "
            "environment's own skills"
        )
    try:
        memory = _start(config, str(saved["preset"]), saved["preset_options"])
        memory.load_state_dict(saved["state"])
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path} is no skill memory of a policy: {error!r}") from error
    return memory


def _start(config: TrainConfig, preset: str, options: Mapping[str, Any]) -> SkillMemory:
    part = recipe_in(config.env, preset, options).memory
    if isinstance(part, BankOptions):
        part = replace(part, bank=None)  # the file that the run began with need not be there any more
    return part.start(MemoryTools(Path(), graded_library(config), _write_nothing))


def _write_nothing(prompts: Sequence[Sequence[Message]]) -> list[str]:
    """Memories write from an update's rollouts alone, and here there are none."""
    return [""] * len(prompts)
