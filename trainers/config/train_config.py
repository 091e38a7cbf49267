"""All settings of a training run in one object."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import gymnasium

import trainers.config.groups as g
from skillc_gym.envs.registry import EnvSpec, env_spec
from skillc_gym.errors import ConfigError
from trainers.base import Sampling, check_values, current_names, named_folder, understands_old_names

MAY_DIFFER = (
    *("run", "resume", "data", "save_every", "keep_checkpoints", "transcripts_every", "stream_norms_every"),
    *("ddp_timeout", "max_minutes"),
)
"""Fields that a resumed run may change: none of them moves a number (``data``'s tasks are compared by hash)."""


_ADDED = ("trained_layers", "redraw_groups", "reference_model", "rollouts_ahead", "load_best_at_end")
"""Settings that hashes of earlier versions did not know: left out of them where they are at their defaults."""
_UPPER = re.compile(r"upper:[1-9]\d{0,5}")
_RENAMED: Mapping[str, str] = {
    "preset": "method",
    "preset_options": "method_options",
    "beta": "kl_coef",
    "draw": "task_sampling",
    "minibatches": "num_minibatches",
}
"""New name by old name; both are understood."""


def current_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """Recorded settings by the names of today, whichever version wrote them."""
    return current_names(values, _RENAMED, quietly=True)


@understands_old_names(_RENAMED)
@dataclass(frozen=True)
class TrainConfig(
    g.RunSettings,
    g.ValidationSettings,
    g.VllmSettings,
    g.GenerationSettings,
    g.AdapterSettings,
    g.MemorySettings,
    g.ReferenceSettings,
    g.ObjectiveSettings,
    g.OptimiserSettings,
    g.SamplingSettings,
    g.RolloutSettings,
    g.PromptSettings,
    g.EnvironmentSettings,
    g.PolicySettings,
):
    """Settings of one training run, held against their ranges and each other (ConfigError)."""

    def __post_init__(self) -> None:
        check_values(self)
        for name, value in g.settings_of(self.loss_type, vars(self)).items():
            object.__setattr__(self, name, value)
        if taken := sorted(self._named_kwargs.keys() & self.env_options.keys()):
            raise ConfigError(f"env.{taken[0]} is a setting of its own: give {taken[0]}={self.env_options[taken[0]]}.")
        for name in ("reference_sync_every", "reference_model"):
            if getattr(self, name) and self.lora_rank:
                raise ConfigError(
                    f"{name} needs a reference of its own; with lora_rank the reference is the policy without its "
                    "adapters. Leave one of the two out."
                )
        if self.trained_layers != "all" and (self.lora_rank or not _UPPER.fullmatch(self.trained_layers)):
            raise ConfigError(
                "trained_layers is all, or upper:N with N at least 1 and without lora_rank; got "
                f"{self.trained_layers!r}."
            )
        if self.precision == "bfloat16_copy" and self.gradient_checkpointing:
            raise ConfigError(
                "precision=bfloat16_copy and gradient_checkpointing=true exclude each other; leave one out."
            )
        if self.lora_rank and not self.lora_targets:
            raise ConfigError("lora_targets names no layer for the adapters; give all-linear, or module names.")
        if self.share_prefixes and (self.attention != "sdpa" or self.lora_dropout):
            raise ConfigError("share_prefixes needs attention=sdpa and lora_dropout=0; change them, or leave it out.")
        if self.num_minibatches > self.tasks_per_step * self.group_size:
            raise ConfigError("There are fewer rollouts than minibatches; lower num_minibatches.")

    @property
    def model_path(self) -> str:
        """Folder or name of the checkpoint; "shipped" and "shipped-NAME" are those that come with the environment."""
        return str(named_folder(self.model, self.env) or self.model)

    @property
    def reference_path(self) -> str:
        """Folder or name of the reference's checkpoint: the starting policy's, where no other is named."""
        return str(named_folder(self.reference_model, self.env) or self.reference_model) or self.model_path

    @property
    def upper_layers(self) -> int | None:
        """How many of the last layers are trained; None for the whole model."""
        return None if self.trained_layers == "all" else int(self.trained_layers.partition(":")[2])

    @property
    def sampling(self) -> Sampling:
        """How training's replies are drawn."""
        return Sampling(self.temperature, top_p=self.top_p, top_k=self.top_k, min_p=self.min_p)

    @property
    def eval_sampling(self) -> Sampling:
        """How replies are drawn in validations and evaluations."""
        return Sampling(self.eval_temperature, self.eval_greedy, top_p=self.top_p, top_k=self.top_k, min_p=self.min_p)

    @property
    def longest_trajectory(self) -> int:
        """Most tokens that a policy can say in an episode; one reply's where the environment has no step limit."""
        return self.max_reply_tokens * (self.step_limit or 1)

    @property
    def step_limit(self) -> int | None:
        """Most steps of an episode, as far as it is known."""
        registered = gymnasium.registry.get(self.env_id)
        known = registered.max_episode_steps if registered else None
        return self.max_episode_steps or self.env_spec.max_episode_steps or known

    @property
    def env_spec(self) -> EnvSpec:
        """What is known of the environment."""
        return env_spec(self.env)

    @property
    def env_id(self) -> str:
        """The registered id of the environment."""
        return self.env_spec.id

    @property
    def skill_library(self) -> str | None:
        """The skill library in use."""
        return self.library or self.env_spec.library

    @property
    def run_folder(self) -> str:
        """Where the run is written."""
        return self.run or f"runs/{self.method}-{self.env.replace('/', '-')}-seed{self.seed}"

    @property
    def env_kwargs(self) -> dict[str, Any]:
        """The arguments of the environment."""
        return {key: value for key, value in self._named_kwargs.items() if value is not None} | dict(self.env_options)

    @property
    def _named_kwargs(self) -> dict[str, Any]:
        return {
            "data": self.data,
            "split": self.split,
            "task_types": list(self.task_types) if self.task_types else None,
            "max_episode_steps": self.max_episode_steps,
        }

    def to_json(self) -> dict[str, Any]:
        """All fields as JSON-able values."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return plain

    def legacy_json(self) -> dict[str, Any]:
        """All fields by the names that hashes of them were first taken over; whoever hashes settings takes these."""
        old = {new: old for old, new in _RENAMED.items()}
        added = {name for name in _ADDED if getattr(self, name) == getattr(TrainConfig, name)}
        return {old.get(name, name): value for name, value in self.to_json().items() if name not in added}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> TrainConfig:
        """Settings from those that :meth:`to_json` wrote, in this version or an earlier one."""
        return cls(**current_settings(values))

    def differences(self, other: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
        """Fields that a resumed run may not change and that differ: name to (other, own)."""
        mine = self.to_json()
        # Settings that an older version did not know were at their defaults.
        theirs = {**TrainConfig(model=self.model).to_json(), **current_settings(other)}
        names = [name for name in mine if name not in MAY_DIFFER]
        found = {name: (theirs[name], mine[name]) for name in names if theirs[name] != mine[name]}
        if list(theirs["env_wrappers"]) != list(mine["env_wrappers"]):  # their order counts, too
            found["env_wrappers"] = (theirs["env_wrappers"], mine["env_wrappers"])
        return found

    def with_(self, **changes: Any) -> TrainConfig:
        """A copy with some fields changed."""
        g.require_meant({"loss_type": self.loss_type, **changes})
        left = g.without_meaning(self.loss_type) if "loss_type" in changes else {}
        return replace(self, **{**left, **changes})


@dataclass(frozen=True)
class Settings:
    """All settings by concept: one group each, as the help of the command line shows them."""

    policy_and_method: g.PolicySettings
    environment: g.EnvironmentSettings
    prompts: g.PromptSettings
    rollouts: g.RolloutSettings
    sampling_of_replies: g.SamplingSettings
    optimiser: g.OptimiserSettings
    objective: g.ObjectiveSettings
    reference: g.ReferenceSettings
    memory: g.MemorySettings
    adapters: g.AdapterSettings
    generation: g.GenerationSettings
    vllm: g.VllmSettings
    validation: g.ValidationSettings
    run_folder: g.RunSettings

    def config(self) -> TrainConfig:
        """The configuration that they make up; errors as of :class:`TrainConfig`."""
        return TrainConfig(**{name: value for group in vars(self).values() for name, value in vars(group).items()})
