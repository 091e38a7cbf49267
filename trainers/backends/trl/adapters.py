"""LoRA adapters: made as the settings say, and merged in the end into the weights that they were trained over."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skillc_gym.errors import CheckpointError
from trainers.config import TrainConfig
from trainers.models import load_model

__all__ = ["lora_config", "save_merged"]


def lora_config(config: TrainConfig) -> Any:
    """PEFT's settings; None where all weights are trained."""
    if not config.lora_rank:
        return None
    from peft import LoraConfig

    everywhere = config.lora_targets == ("all-linear",)
    return LoraConfig(
        r=config.lora_rank,
        lora_alpha=config.lora_alpha,
        lora_dropout=config.lora_dropout,
        target_modules="all-linear" if everywhere else list(config.lora_targets),
        task_type="CAUSAL_LM",
    )


def save_merged(config: TrainConfig, state: Mapping[str, Any], path: Path) -> None:
    """Writes the policy that training began with, with trained adapters merged into it.

    The weights are loaded once more, on the processor, so that it does not matter where and how the trained ones lie.

    Args:
        config: The run's settings.
        state: The trained model's whole state dictionary, of which the adapters are taken.
        path: Folder of the checkpoint.

    Raises:
        CheckpointError: The adapters are not those of these settings.
    """
    from peft import get_peft_model

    model = get_peft_model(load_model(config), lora_config(config))
    adapters = {name: value for name, value in state.items() if "lora_" in name}
    if adapters.keys() != {name for name in model.state_dict() if "lora_" in name}:
        raise CheckpointError("The trained adapters are not those of lora_rank and lora_targets; train again.")
    model.load_state_dict(adapters, strict=False)
    model.merge_and_unload().save_pretrained(path)
