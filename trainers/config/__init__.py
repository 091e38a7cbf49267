"""Every setting of a training run: groups by concept, all of them flat fields of :class:`TrainConfig`."""

from trainers.config.groups import (
    AdapterSettings,
    EnvironmentSettings,
    GenerationSettings,
    MemorySettings,
    ObjectiveSettings,
    OptimiserSettings,
    PolicySettings,
    PromptSettings,
    ReferenceSettings,
    RolloutSettings,
    RunSettings,
    SamplingSettings,
    ValidationSettings,
    VllmSettings,
)
from trainers.config.train_config import TrainConfig, current_settings

__all__ = [
    "AdapterSettings",
    "EnvironmentSettings",
    "GenerationSettings",
    "MemorySettings",
    "ObjectiveSettings",
    "OptimiserSettings",
    "PolicySettings",
    "PromptSettings",
    "ReferenceSettings",
    "RolloutSettings",
    "RunSettings",
    "SamplingSettings",
    "TrainConfig",
    "ValidationSettings",
    "VllmSettings",
    "current_settings",
]
