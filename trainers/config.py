"""Every knob of a training run."""

from __future__ import annotations

import json
import typing
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal, get_args, get_origin

from skillc_gym.errors import ConfigError, unknown_name
from trainers.rollout.collate import Aggregation
from trainers.rollout.task_sampling import Draw

__all__ = ["ENVIRONMENTS", "HINTS", "TrainConfig", "method_options"]

ENVIRONMENTS: Mapping[str, tuple[str, str]] = {
    "alfworld": ("skillc/ALFWorld-v0", "alfworld"),
    "webshop": ("skillc/WebShop-v0", "webshop"),
}
"""Short names: the environment's id and its skill library."""

MAY_DIFFER = ("run", "resume", "data", "save_every", "keep_checkpoints", "transcripts_every", "stream_norms_every")
"""Fields that a resumed run may change: none of them moves a number (``data``'s tasks are compared by hash)."""


@dataclass(frozen=True)
class TrainConfig:
    """Settings of one training run.

    Raises:
        ConfigError: If a value lies outside its range or two contradict each other.
    """

    model: str
    """Folder or name of a transformers checkpoint: the policy to start from, and the KL penalty's reference."""
    preset: str = "skillc"
    """The method: grpo, skill_grpo, skill0, skillc, or one of the ablations."""
    preset_options: Mapping[str, Any] = field(default_factory=dict)
    """Changes to the preset's options; on the command line ``preset.correction_mask=success``."""
    env: str = "alfworld"
    """Environment: a short name (alfworld, webshop) or a registered id."""
    data: str | None = None
    """The environment's data: a folder, an archive, or "generated"; None leaves it to the environment."""
    split: str = "train"
    """Split that training and the held-back curriculum panel are taken from."""
    task_types: tuple[str, ...] | None = None
    """Only these task types; all if None. Comma-separated on the command line."""
    env_options: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of the environment; on the command line ``env.generator='{"size": "small"}'``."""
    max_episode_steps: int | None = None
    """Step limit of an episode; the environment's own if None."""
    library: str | None = None
    """Skill library by name or path; the environment's own if None."""

    chat: str = "default"
    """Wording of the prompt by name: default, or compact (the tiny policy's)."""
    form: str = "conversation"
    """"conversation": one growing chat; "window:h": each turn rendered afresh with the last h steps."""
    chat_options: Mapping[str, Any] = field(default_factory=dict)
    """Fields of ChatFormat to change; on the command line ``chat.show_admissible=false``."""
    chat_template: str | None = None
    """A file with a chat template in Jinja, "trl" for TRL's training template, or None for the tokenizer's own."""
    require_think: bool = True
    """Whether a reply without thoughts counts as ill-formed. It costs nothing but the flag."""

    steps: int = 180
    """Updates in all; the curriculum's K(t) is laid over them."""
    seed: int = 0
    """Seed of tasks, of sampling, of the held-back panel; with the step's number it decides every draw."""
    tasks_per_step: int = 8
    """Groups per update, over all processes."""
    group_size: int = 8
    """Rollouts per group."""
    draw: Draw = "uniform"
    """How an update's tasks are drawn: "uniform" over the training tasks, or "types": task types in turn."""
    temperature: float = 1.0
    """Sampling temperature in training."""
    max_reply_tokens: int = 512
    """Longest reply in tokens."""
    max_context: int = 4096
    """Longest row in tokens; an episode that would exceed it ends, truncated."""
    max_parallel: int = 128
    """Most episodes played at once per process."""

    learning_rate: float = 1e-6
    """Peak learning rate of AdamW."""
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    """Course of the learning rate after the warm-up."""
    warmup_steps: int = 0
    """Optimiser steps over which the learning rate rises."""
    weight_decay: float = 0.0
    """AdamW's decoupled weight decay."""
    adam_beta2: float = 0.999
    """AdamW's decay of the second moment."""
    max_grad_norm: float = 1.0
    """Gradients are clipped to this norm."""
    clip: float = 0.2
    """Half width of the trust region of the probability ratio."""
    beta: float = 0.01
    """Weight of the KL penalty (k3) to the starting policy; 0 does without a reference model."""
    loss_aggregation: Aggregation = "trajectory"
    """"trajectory": each rollout counts 1/T_i, its own tokens over all turns; "token": every token counts alike."""
    minibatches: int = 1
    """Optimiser steps per update; more than one is off-policy and needs the old log-probabilities."""
    micro_batches: int = 4
    """Forward and backward passes per optimiser step; raise it when memory runs out."""
    precision: Literal["auto", "float32", "bfloat16", "pure_bfloat16"] = "auto"
    """Arithmetic: bfloat16 under autocast over float32 weights, or the weights too; auto: bfloat16 on a GPU only."""
    gradient_checkpointing: bool = False
    """Trades a second forward pass for memory."""
    lora_rank: int = 0
    """Rank of LoRA adapters on all linear layers; 0 trains all weights."""
    lora_alpha: float = 16.0
    """Scale of the LoRA adapters."""

    engine: Literal["transformers", "vllm"] = "transformers"
    """Who generates."""
    vllm_mode: Literal["colocate", "server"] = "colocate"
    """vLLM within each training process, or a server started with ``trl vllm-serve``."""
    vllm_memory: float = 0.3
    """Share of GPU memory for a colocated vLLM."""
    vllm_server: str | None = None
    """Address of the server (http://host:port); TRL's default if None."""

    validate_every: int = 10
    """Updates between validations; there is one before the first update too."""
    panel_per_type: int = 24
    """Held-back tasks per type for the curriculum's fixed panel; each is played with and without the skill."""
    eval_temperature: float = 0.4
    """Sampling temperature of validations."""
    eval_greedy: bool = False
    """Validate greedily instead."""

    run: str = ""
    """Run folder; runs/<preset>-<env>-seed<seed> if empty."""
    resume: str = "auto"
    """"auto": go on from the folder's last checkpoint if there is one; "never"; or a checkpoint folder."""
    save_every: int = 10
    """Updates between checkpoints; the last update is always saved."""
    keep_checkpoints: int = 2
    """Checkpoints kept, the newest first."""
    transcripts_every: int = 10
    """Updates between transcripts of training rollouts; 0 for none. Validations are always kept."""
    stream_norms_every: int = 0
    """Updates between measurements of each advantage stream's gradient norm (one backward pass each); 0 for never."""

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            if getattr(self, name) is not None and getattr(self, name) < least:
                raise ConfigError(f"{name} must be at least {least}, got {getattr(self, name)}.")
        for name in ("temperature", "eval_temperature", "max_grad_norm"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name} must be positive, got {getattr(self, name)}.")
        for spec in fields(self):
            hint = HINTS[spec.name]
            if get_origin(hint) is Literal and getattr(self, spec.name) not in get_args(hint):
                raise unknown_name(spec.name, getattr(self, spec.name), get_args(hint))
        if self.minibatches > self.tasks_per_step * self.group_size:
            raise ConfigError("There are fewer rollouts than minibatches; lower minibatches.")

    @property
    def env_id(self) -> str:
        """The registered id of the environment."""
        return ENVIRONMENTS[self.env][0] if self.env in ENVIRONMENTS else self.env

    @property
    def skill_library(self) -> str | None:
        """The skill library in use."""
        return self.library or (ENVIRONMENTS[self.env][1] if self.env in ENVIRONMENTS else None)

    @property
    def method_options(self) -> dict[str, Any]:
        """The options of the preset, with what the environment implies."""
        return method_options(self.env, self.preset_options)

    @property
    def run_folder(self) -> str:
        """Where the run is written."""
        return self.run or f"runs/{self.preset}-{self.env.replace('/', '-')}-seed{self.seed}"

    @property
    def env_kwargs(self) -> dict[str, Any]:
        """The arguments of the environment."""
        named = {
            "data": self.data,
            "split": self.split,
            "task_types": list(self.task_types) if self.task_types else None,
            "max_episode_steps": self.max_episode_steps,
        }
        return {key: value for key, value in named.items() if value is not None} | dict(self.env_options)

    def to_json(self) -> dict[str, Any]:
        """All fields as JSON-able values."""
        values = asdict(self)
        return json.loads(json.dumps(values))  # type: ignore[no-any-return]

    def differences(self, other: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
        """Fields that a resumed run may not change and that differ: name to (other, own)."""
        mine = self.to_json()
        names = [name for name in mine if name not in MAY_DIFFER]
        return {name: (other.get(name), mine[name]) for name in names if other.get(name) != mine[name]}

    def with_(self, **changes: Any) -> TrainConfig:
        """A copy with some fields changed."""
        return replace(self, **changes)


HINTS: Mapping[str, Any] = typing.get_type_hints(TrainConfig)
"""The type of every setting."""
_LEAST: Mapping[str, float] = {
    "steps": 1, "tasks_per_step": 1, "group_size": 1, "max_reply_tokens": 1, "max_context": 2, "max_parallel": 1,
    "max_episode_steps": 1,
    "learning_rate": 0, "warmup_steps": 0, "weight_decay": 0, "clip": 0, "beta": 0, "minibatches": 1,
    "micro_batches": 1, "lora_rank": 0, "validate_every": 1, "panel_per_type": 1, "save_every": 1,
    "keep_checkpoints": 1, "transcripts_every": 0, "stream_norms_every": 0, "seed": 0,
}  # fmt: skip


def method_options(env: str, preset_options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a preset in an environment: WebShop's one skill is never pruned, unless the options say so.

    Args:
        env: Short name or id of the environment.
        preset_options: What was chosen; it has the last word.
    """
    implied = {"capacity": (1,), "retire_by": ()} if env in ("webshop", ENVIRONMENTS["webshop"][0]) else {}
    return {**implied, **preset_options}
