"""The settings of training as options: the groups of :class:`trainers.config.TrainConfig`, one box of the help each."""

from __future__ import annotations

from dataclasses import dataclass, fields

from trainers.config import (
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
    TrainConfig,
    ValidationSettings,
    VllmSettings,
)

__all__ = ["Settings"]


@dataclass(frozen=True)
class Settings:
    """All settings of a run."""

    policy_and_method: PolicySettings
    environment: EnvironmentSettings
    prompts: PromptSettings
    rollouts: RolloutSettings
    sampling_of_replies: SamplingSettings
    optimiser: OptimiserSettings
    objective: ObjectiveSettings
    reference: ReferenceSettings
    memory: MemorySettings
    adapters: AdapterSettings
    generation: GenerationSettings
    vllm: VllmSettings
    validation: ValidationSettings
    run_folder: RunSettings

    def config(self) -> TrainConfig:
        """The configuration that they make up.

        Raises:
            ConfigError: If a value lies outside its range or two contradict each other.
        """
        groups = [getattr(self, group.name) for group in fields(self)]
        return TrainConfig(**{name: value for group in groups for name, value in vars(group).items()})
