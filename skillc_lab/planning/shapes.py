"""What decides memory: a model's shape, what a layer keeps of a token for the backward pass, how long episodes are.

The shape is counted on the meta device, so no weights are made. What a layer keeps is counted tensor by tensor for
transformers' decoders with RMS norms, SDPA or flash attention and a gated feed-forward part (Llama, Qwen2, Qwen3,
Mistral, SmolLM2); the tests compare the counts with what autograd saves.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib import resources
from typing import Any, Literal

import gymnasium

from skillc_gym.errors import MissingDataError
from skillc_gym.wrappers import ActionFormat, ChatPrompt, SkillInjection
from skillc_lab.agents.shown import expert_replies
from trainers.config import TrainConfig
from trainers.models import load_plain_config
from trainers.rollout import chat_format

KNOWN: Mapping[str, Mapping[str, Any]] = json.loads(
    (resources.files("skillc_lab.planning") / "models.json").read_text(encoding="utf-8")
)
"""Configurations of published models that can be planned for without asking a hub."""

Arithmetic = Literal["float32", "autocast", "bfloat16"]
"""How numbers are held: float32 throughout, bfloat16 under autocast over float32 weights, or bfloat16 weights."""


@dataclass(frozen=True)
class ModelShape:
    """A decoder of equal layers with grouped-query attention and a gated feed-forward part, in numbers.

    ``parameters`` are the whole model's, tied weights once, ``layer`` those of one layer, ``embedding`` those of the
    input embedding and of the output layer alike. ``queries`` and ``keys`` are widths of all heads together.
    """

    parameters: int
    layer: int
    embedding: int
    width: int
    layers: int
    heads: int
    kv_heads: int
    queries: int
    keys: int
    feed_forward: int
    vocabulary: int
    linears: Sequence[tuple[int, int]]
    """(inputs, outputs) of one layer's linear maps."""
    norms_heads: bool = False
    """Whether queries and keys are normalised head by head."""
    max_positions: int | None = None
    """Longest row that the model takes."""

    @property
    def maps(self) -> int:
        """Weights of all layers' linear maps."""
        return self.layers * sum(inputs * outputs for inputs, outputs in self.linears)

    def adapters(self, rank: int) -> int:
        """Parameters of LoRA adapters of this rank on all linear maps of all layers."""
        return self.layers * sum(rank * (inputs + outputs) for inputs, outputs in self.linears)


def config_of(config: TrainConfig) -> Any:
    """The transformers configuration of the run's model: a known one, or as of :func:`load_plain_config`."""
    if config.model not in KNOWN:
        return load_plain_config(config)
    from transformers import AutoConfig

    return AutoConfig.for_model(**KNOWN[config.model])


def shape_of(model_config: Any) -> ModelShape:
    """Builds the model of a transformers configuration on the meta device and counts."""
    import torch
    from transformers import AutoModelForCausalLM

    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(model_config)
    text = model.config.get_text_config()
    count, heads = int(text.num_hidden_layers), int(text.num_attention_heads)
    first = next(m for m in model.modules() if isinstance(m, torch.nn.ModuleList) and len(m) == count)[0]
    kv_heads = int(getattr(text, "num_key_value_heads", None) or heads)
    head_width = int(getattr(text, "head_dim", None) or text.hidden_size // heads)
    return ModelShape(
        parameters=sum(p.numel() for p in model.parameters()),
        layer=sum(p.numel() for p in first.parameters()),
        embedding=model.get_input_embeddings().weight.numel(),
        width=int(text.hidden_size),
        layers=count,
        heads=heads,
        kv_heads=kv_heads,
        queries=heads * head_width,
        keys=kv_heads * head_width,
        feed_forward=int(getattr(text, "intermediate_size", None) or 4 * text.hidden_size),
        vocabulary=int(text.vocab_size),
        linears=[(m.in_features, m.out_features) for m in first.modules() if isinstance(m, torch.nn.Linear)],
        norms_heads=any(name.endswith("q_norm") for name, _ in first.named_modules()),
        max_positions=getattr(text, "max_position_embeddings", None),
    )


def layer_bytes(shape: ModelShape, kind: Arithmetic, lora_rank: int) -> int:
    """All that one layer keeps of one token; with a rank weights are frozen, and adapters on all maps are trained."""
    compute = 4 if kind == "float32" else 2
    # Queries, keys, values, the result, and a float32 per head; the feed-forward part's gate, product and activation.
    attention = compute * 2 * (shape.queries + shape.keys) + 4 * shape.heads
    gated = compute * 3 * shape.feed_forward
    return _norms(shape, kind, lora_rank) + _inputs(shape, kind, lora_rank) + attention + gated


def _norms(shape: ModelShape, kind: Arithmetic, lora_rank: int) -> int:
    """Input and normed input, in float32, of both norms; a frozen norm needs no normed input. Scales are float32."""
    normed = 0 if lora_rank else 2 if kind == "bfloat16" else 4
    found = 2 * (shape.width * (4 + normed) + 4)
    if shape.norms_heads:
        in_heads = 0 if lora_rank else 4 if kind == "float32" else 2
        found += (shape.queries + shape.keys) * (4 + in_heads) + 4 * (shape.heads + shape.kv_heads)
    return found


def _inputs(shape: ModelShape, kind: Arithmetic, lora_rank: int) -> int:
    """Inputs of the linear maps: autocast casts anew for each of them, adapters in float32 too."""
    width, product = shape.width, shape.feed_forward
    outputs = 7 * lora_rank * 4
    if kind == "float32":
        return 4 * (2 * width + product) + outputs
    if kind == "autocast":
        return 2 * (5 * width + product + (shape.queries if lora_rank else 0)) + outputs
    if lora_rank:
        return 4 * (5 * width + shape.queries + product) + outputs
    return 2 * (2 * width + product)


# How long episodes are ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class EpisodeLength:
    """Tokens of one episode with its skill, as the trainers prompt it."""

    first: int
    """Of the first prompt; in the window form of the longest one."""
    per_turn: float
    """By which the conversation grows with each turn; 0 in the window form."""
    steps: int
    """Step limit of an episode."""

    @property
    def longest(self) -> int:
        """Of an episode that runs to its step limit."""
        return round(self.first + self.steps * self.per_turn)

    def steps_within(self, limit: int) -> int:
        """Turns that fit into a limit."""
        if self.longest <= limit:
            return self.steps
        return max(0, int((limit - self.first) / self.per_turn)) if self.per_turn else 0


def episode_length(config: TrainConfig, prompt: Callable[[Sequence[Any]], Sequence[int]]) -> EpisodeLength:
    """Counts a model's tokens of one episode that the environment's expert plays, its skill in the prompt.

    ``prompt`` turns a chat into the model's tokens.
    """
    spec = config.env_spec
    assert spec.warm_start, f"{spec.id} has no expert"
    injected = SkillInjection(_open(config), library=str(config.skill_library), where="info")
    wording = chat_format(config)
    with closing(ChatPrompt(ActionFormat(injected, tail=wording.reply_tail), chat_format=wording)) as env:
        _, info = begun = env.reset(seed=config.seed, options={"skill": True})
        played = expert_replies(env, begun, spec.warm_start.demonstrator(info, False))
        counts = [len(prompt(each["messages"])) for each in (info, *(outcome[4] for _, outcome in played))]
    steps = config.max_episode_steps or spec.max_episode_steps or len(counts)
    if wording.form != "conversation" or len(counts) < 2:
        return EpisodeLength(max(counts), 0.0, steps)
    return EpisodeLength(counts[0], (counts[-1] - counts[0]) / (len(counts) - 1), steps)


def _open(config: TrainConfig) -> gymnasium.Env[Any, Any]:
    """The environment on its data, or on generated ones where none was named and none is found."""
    try:
        return gymnasium.make(config.env_id, **config.env_kwargs)
    except MissingDataError:
        if config.data is not None:
            raise
        return gymnasium.make(config.env_id, **{**config.env_kwargs, "data": "generated"})
