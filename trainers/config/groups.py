"""The settings of a training run, by concept; each class is one group of :class:`trainers.config.TrainConfig`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from skillc_gym.errors import ConfigError
from trainers.base import (
    Aggregation,
    AtLeastTwo,
    Count,
    MaskTruncated,
    Natural,
    NotNegative,
    Part,
    Positive,
    RatioLevel,
    Returns,
    Share,
    TaskSampling,
    Thoughts,
)

LossType = Literal["grpo", "dapo", "dr_grpo", "gspo"]

_MEANINGS: Mapping[str, Mapping[str, str]] = {
    "grpo": {"loss_aggregation": "trajectory", "ratio": "token"},
    "dapo": {"loss_aggregation": "token", "ratio": "token"},
    "dr_grpo": {"loss_aggregation": "constant", "ratio": "token"},
    "gspo": {"loss_aggregation": "trajectory", "ratio": "sequence"},
}
_DEFAULTS = _MEANINGS["grpo"]


def settings_of(loss_type: LossType | None, given: Mapping[str, Any]) -> Mapping[str, str]:
    """The settings that a name stands for."""
    meant = _MEANINGS[loss_type] if loss_type else {}
    others = {name: given[name] for name in meant if given[name] != _DEFAULTS[name]}
    require_meant({"loss_type": loss_type, **others})
    return meant


def without_meaning(loss_type: LossType | None) -> Mapping[str, str]:
    """The defaults of what a name stands for: what holds once the name is replaced."""
    return {name: _DEFAULTS[name] for name in (_MEANINGS[loss_type] if loss_type else ())}


def require_meant(given: Mapping[str, Any]) -> None:
    """Refuses (ConfigError) what contradicts the ``loss_type`` beside it, a default that is given included."""
    named = given.get("loss_type")
    for name, value in _MEANINGS.get(named if isinstance(named, str) else "", {}).items():
        if given.get(name, value) != value:
            raise ConfigError(
                f"loss_type={given['loss_type']} means {name}={value}, but {name}={given[name]}; set one of the two."
            )


RECOMMENDED = "guarded_imitation"
"""The method to start with where a policy has to learn to do without its skills: the default wherever none is named."""


@dataclass(frozen=True)
class PolicySettings:
    """Policy and method."""

    model: str
    """Folder or name of a transformers checkpoint: the policy to start from, and the KL penalty's reference;
    "shipped" is the small one that comes with the environment, "shipped-hard" one to which success without the skill
    is rare, "shipped-real" and "shipped-real-hard" those that know ALFWorld's real games, "shipped-real-hard-trained"
    what the last of them became, smollm2-135m what skillc get-model fetches."""
    revision: str | None = None
    """Branch, tag or commit of a model that comes from a hub; its default branch if None."""
    method: str = RECOMMENDED
    """The method: grpo, skillc or another recipe by name, with `+NAME` behind it for an addition, or module:RECIPE."""
    method_options: Mapping[str, Any] = field(default_factory=dict)
    """Changes to the method's options; on the command line ``method.correction_mask=success``."""


@dataclass(frozen=True)
class EnvironmentSettings:
    """Environment."""

    env: str = "alfworld"
    """Environment: a short name (alfworld, webshop), a registered id, or ``module:id`` to import a module first."""
    data: str | None = None
    """The environment's data: a folder, an archive, or "generated"; None leaves it to the environment."""
    split: str = "train"
    """Split that training and the held-back validation panel are taken from."""
    task_types: tuple[str, ...] | None = None
    """Only these task types; all if None. Comma-separated on the command line."""
    env_options: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of the environment; on the command line ``env.generator='{"size": "small"}'``."""
    env_wrappers: Mapping[str, Any] = field(default_factory=dict)
    """Wrappers around the environment, the innermost first: their options by ``module:Class``, as JSON."""
    max_episode_steps: Count | None = None
    """Step limit of an episode; the environment's own if None."""
    library: str | None = None
    """Skill library by name or path; the environment's own if None."""
    skill_grade: Literal["full", "minimal", "none"] = "full"
    """How much of a skill is shown where it is on: full; minimal: its first line and key step; or none."""


@dataclass(frozen=True)
class PromptSettings:
    """Prompts."""

    chat: str = "default"
    """Wording of the prompt by name: default (the environment's own), compact (the tiny policy's), shop, or
    verl-agent:FOLDER (the templates of that checkout of verl-agent, in window form)."""
    form: str = "conversation"
    """"conversation": one growing chat; "window:h": each turn rendered afresh with the last h steps."""
    chat_options: Mapping[str, Any] = field(default_factory=dict)
    """Fields of ChatFormat to change; on the command line ``chat.show_admissible=false``."""
    chat_template: str | None = None
    """A file with a chat template in Jinja, "trl" for TRL's training template, or None for the tokenizer's own."""
    template_options: Mapping[str, Any] = field(default_factory=dict)
    """Variables of the chat template; on the command line ``template.enable_thinking=false``."""
    thoughts: Thoughts = "template"
    """What a conversation shows of earlier thoughts: "template": what the chat template shows, which must be all;
    "keep": all, as generated; "drop": none, and each turn is a row of its own. The window form never shows any."""
    require_think: bool = True
    """Whether a reply without thoughts counts as ill-formed. It costs nothing but the flag."""


@dataclass(frozen=True)
class RolloutSettings:
    """Updates and their rollouts."""

    steps: Count = 180
    """Updates in all; K(t) and the schedule are laid over them, also where budget_tokens ends a run."""
    budget_tokens: Count | None = None
    """Generated tokens, those of skills it writes included, after which training ends; no limit if None, which a
    comparison refuses."""
    seed: Natural = 0
    """Seed of tasks and of sampling; with the step's number it decides every draw."""
    tasks_per_step: Count = 8
    """Groups per update, over all processes."""
    group_size: Count = 8
    """Rollouts per group."""
    redraw_groups: Natural = 0
    """How often groups whose rollouts all came to the same return are replaced by groups of other tasks, as DAPO does;
    those that are left at last are left out of the update. 0 keeps all groups."""
    rollouts_ahead: bool = False
    """Play the next update's groups in a second process while this one learns, with weights one step behind, which
    truncated importance weights answer for; for engines in the training process, and one process that trains."""
    task_sampling: TaskSampling = "uniform"
    """How an update's tasks are drawn: "uniform" over the training tasks, or "types": task types in turn."""
    max_reply_tokens: Count = 512
    """Longest reply in tokens."""
    max_context: AtLeastTwo = 32768
    """Longest row in tokens, at most what the model takes; an episode that would exceed it ends, truncated."""
    max_parallel: Count = 128
    """Most episodes played at once per process, at least a group; vLLM in the process keeps that many
    going, beside up to as many environments of groups whose other members have ended."""


@dataclass(frozen=True)
class SamplingSettings:
    """Sampling of replies."""

    temperature: Positive = 1.0
    """Sampling temperature in training."""
    top_p: Part = 1.0
    """Draw from the most probable tokens that together reach this share, in training and validations; 1 for all."""
    top_k: Natural = 0
    """Draw from so many of the most probable tokens; 0 for all."""
    min_p: Share = 0.0
    """Draw from tokens at least so probable as this share of the most probable one; 0 for all."""


@dataclass(frozen=True)
class OptimiserSettings:
    """Optimiser."""

    optimiser: Literal["adamw", "adamw_8bit", "paged_adamw_8bit", "adafactor", "sgd"] = "adamw"
    """Optimiser; those of 8 bits keep AdamW's moments in bytes and need bitsandbytes."""
    learning_rate: NotNegative = 1e-6
    """Peak learning rate."""
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    """Course of the learning rate after the warm-up."""
    warmup_steps: Natural = 0
    """Optimiser steps over which the learning rate rises."""
    weight_decay: NotNegative = 0.0
    """AdamW's decoupled weight decay."""
    adam_beta1: Share = 0.9
    """AdamW's decay of the first moment."""
    adam_beta2: Share = 0.999
    """AdamW's decay of the second moment."""
    adam_epsilon: Positive = 1e-8
    """AdamW's epsilon, added to the root of the second moment."""
    max_grad_norm: Positive = 1.0
    """Gradients are clipped to this norm; 1e9 clips none."""


@dataclass(frozen=True)
class ObjectiveSettings:
    """Objective."""

    clip: NotNegative = 0.2
    """Half width of the trust region of the probability ratio."""
    clip_high: NotNegative | None = None
    """Width of the trust region above 1, where it is another than below; clip if None."""
    ratio: RatioLevel = "token"
    """"token": a probability ratio per token; "sequence": per row, the geometric mean over its own tokens (GSPO)."""
    loss_type: LossType | None = None
    """Short for loss_aggregation and ratio: grpo (trajectory, token), dapo (token, token), dr_grpo (constant, token),
    gspo (trajectory, sequence)."""
    returns: Returns = "won"
    """What is maximised: success ("won"), the environment's own score ("task_score") or the summed rewards ("reward").
    Contrast and curriculum go by success in any case."""
    loss_aggregation: Aggregation = "trajectory"
    """"trajectory": each rollout counts 1/T_i, its own tokens over all turns; "token": every token counts alike;
    "constant": every token counts 1/T, T the longest possible trajectory, max_reply_tokens times the step limit."""
    mask_truncated: MaskTruncated = "none"
    """Which episodes teach the policy nothing though they count in the baselines: those that the "context" cut, "all"
    that were truncated, the step limit included, or "none"."""
    num_minibatches: Count = 1
    """Optimiser steps per update; more than one is off-policy and needs the old log-probabilities."""


@dataclass(frozen=True)
class ReferenceSettings:
    """KL penalty and its reference."""

    kl_coef: NotNegative = 0.01
    """Weight of the KL penalty (k3) to the reference, the starting policy; 0 does without a reference model."""
    reference_model: str = ""
    """Folder or name of a checkpoint that is the reference in place of the starting policy: for the penalty, and a
    separate teacher where a method has teacher_weights=reference; same tokens as the policy's, not with lora_rank."""
    reference_sync_every: Natural = 0
    """Updates after which the reference moves towards the policy; 0 for never."""
    reference_sync_weight: Part = 0.6
    """Weight of the policy in the reference then; 1 copies it."""


@dataclass(frozen=True)
class MemorySettings:
    """Training backend, memory and precision."""

    backend: str = "trl"
    """Who owns the weights and the optimiser: trl, or a backend of your own as module:NAME."""
    micro_batches: Count = 4
    """Forward and backward passes per optimiser step; raise it when memory runs out."""
    precision: Literal["auto", "float32", "bfloat16", "bfloat16_copy", "pure_bfloat16"] = "auto"
    """Arithmetic: bfloat16 under autocast over float32 weights; bfloat16_copy: throughout, with copies of float32
    weights, which the optimiser steps on; or the weights too; auto: bfloat16 under autocast on a GPU only."""
    trained_layers: str = "all"
    """Layers that are trained: all, or the last N and the last norm with upper:N; the others, and what stands for words
    at both ends, stay as they are."""
    gradient_checkpointing: bool = False
    """Trades a second forward pass for memory."""
    attention: Literal["sdpa", "eager", "flash_attention_2", "flash_attention_3"] = "sdpa"
    """How attention is computed: eager for models without sdpa; flash attention needs its package, a GPU, and vLLM to
    generate."""
    share_prefixes: bool = False
    """Compute what an update's rollouts begin alike with once, in generating (engine=transformers) and in learning: the
    same figures up to rounding; needs attention=sdpa."""
    liger: bool = False
    """Compute norms, rotary positions and feed-forward parts with Liger's kernels; needs liger-kernel and a GPU."""
    ddp_timeout: Count = 1800
    """Seconds after which a training process that the others wait for is given up."""


@dataclass(frozen=True)
class AdapterSettings:
    """LoRA adapters."""

    lora_rank: Natural = 0
    """Rank of LoRA adapters, which the trained policy has merged into its weights; 0 trains all weights."""
    lora_alpha: Positive = 16.0
    """Scale of the LoRA adapters."""
    lora_targets: tuple[str, ...] = ("all-linear",)
    """Layers that get one: all-linear, or ends of module names such as q_proj v_proj."""
    lora_dropout: Share = 0.0
    """Share of an adapter's inputs that is dropped in training."""


@dataclass(frozen=True)
class GenerationSettings:
    """Generation."""

    engine: str = "transformers"
    """Who generates: transformers, vllm, choosing (draws among the possible commands), openai (a server, to evaluate),
    scoring (ranks the possible commands, to evaluate), or an engine of your own as module:NAME."""
    engine_options: Mapping[str, Any] = field(default_factory=dict)
    """Further options of the engine; on the command line ``engine.max_num_seqs=64``."""


@dataclass(frozen=True)
class VllmSettings:
    """vLLM."""

    vllm_mode: Literal["colocate", "server"] = "colocate"
    """vLLM within each training process, or a server started with ``trl vllm-serve``."""
    vllm_memory: Part = 0.3
    """Share of GPU memory for a colocated vLLM."""
    vllm_server: str | None = None
    """Address of the server (http://host:port); TRL's default if None."""
    vllm_dtype: Literal["auto", "bfloat16", "float16", "float32"] = "auto"
    """Type of vLLM's weights and cache; auto: the checkpoint's, but 16 bits in place of float32."""
    vllm_tensor_parallel: Count = 1
    """GPUs over which vLLM spreads the model. In training as many processes share one vLLM and play in step."""
    vllm_sleep: bool = False
    """Let a colocated vLLM give its memory back during updates; its weights are sent again before it generates."""
    vllm_prefix_caching: bool = True
    """Keep keys and values of prompts that begin alike; growing conversations live on it."""


@dataclass(frozen=True)
class ValidationSettings:
    """Validation."""

    validate_every: Count = 10
    """Updates between validations; there is one before the first update and one after the last too."""
    panel_per_type: Count = 24
    """Held-back tasks per type for the fixed validation panel; each is played with and without the skill."""
    panel_seed: Natural = 0
    """Seed of the choice of the panels of validations and evaluations, so that runs of all seeds share them."""
    eval_temperature: Positive = 0.4
    """Sampling temperature of validations."""
    eval_greedy: bool = False
    """Validate greedily instead."""
    load_best_at_end: bool = False
    """The trained policy is that of the best validation without the skill, the first of equals, not the last one."""


@dataclass(frozen=True)
class RunSettings:
    """Run folder."""

    report_to: tuple[str, ...] = ()
    """Who is told the records beside metrics.jsonl: tensorboard, wandb, trackio, or loggers of your own as
    module:CLASS."""
    metrics: tuple[str, ...] = ()
    """Further metrics of an update: functions of its trajectories that return a dictionary, as module:FUNCTION."""
    run: str = ""
    """Run folder; runs/<method>-<env>-seed<seed> if empty."""
    resume: str = "auto"
    """"auto": go on from the folder's last checkpoint if there is one; "never"; or a checkpoint folder."""
    max_minutes: Positive | None = None
    """Minutes after which the run saves after an update and stops, as after SIGTERM; the same command goes on."""
    save_every: Count = 10
    """Updates between checkpoints; the last update is always saved."""
    keep_checkpoints: Count = 2
    """Checkpoints kept, the newest first."""
    transcripts_every: Natural = 10
    """Updates between transcripts of training rollouts; 0 for none. Validations are always kept."""
    stream_norms_every: Natural = 0
    """Updates between measurements of each advantage stream's gradient norm (one backward pass each); 0 for never."""
