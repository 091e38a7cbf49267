"""What of a model's shape decides how much memory it takes, counted on the meta device: no weights are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skillc_gym.errors import missing_extra
from trainers.config import TrainConfig
from trainers.models import load_plain_config

__all__ = ["KNOWN", "ModelShape", "config_of", "shape_of"]

_QWEN2 = {"model_type": "qwen2", "max_position_embeddings": 32768}
KNOWN: Mapping[str, Mapping[str, Any]] = {
    "Qwen/Qwen2.5-0.5B-Instruct": {
        **_QWEN2,
        **{"hidden_size": 896, "num_hidden_layers": 24, "num_attention_heads": 14, "num_key_value_heads": 2},
        **{"intermediate_size": 4864, "vocab_size": 151936, "tie_word_embeddings": True},
    },
    "Qwen/Qwen2.5-1.5B-Instruct": {
        **_QWEN2,
        **{"hidden_size": 1536, "num_hidden_layers": 28, "num_attention_heads": 12, "num_key_value_heads": 2},
        **{"intermediate_size": 8960, "vocab_size": 151936, "tie_word_embeddings": True},
    },
    "Qwen/Qwen2.5-7B-Instruct": {
        **_QWEN2,
        **{"hidden_size": 3584, "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4},
        **{"intermediate_size": 18944, "vocab_size": 152064, "tie_word_embeddings": False},
    },
}
"""Shapes of published models that can be planned for without asking a hub."""


@dataclass(frozen=True)
class ModelShape:
    """A decoder of equal layers with grouped-query attention and a gated feed-forward part.

    Attributes:
        parameters: Of the whole model, tied weights once.
        layer: Of one layer.
        embedding: Of the input embedding; the output layer has as many.
        width: Of the hidden states.
        layers: Number of layers.
        heads: Query heads.
        kv_heads: Heads of keys and values.
        head_dim: Width of a head.
        feed_forward: Width of the feed-forward part.
        vocabulary: Number of tokens.
        linears: (inputs, outputs) of one layer's linear maps.
        norms_heads: Whether queries and keys are normalised head by head.
        max_positions: Longest row that the model takes.
    """

    parameters: int
    layer: int
    embedding: int
    width: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    feed_forward: int
    vocabulary: int
    linears: Sequence[tuple[int, int]]
    norms_heads: bool = False
    max_positions: int | None = None

    @property
    def queries(self) -> int:
        """Width of all query heads."""
        return self.heads * self.head_dim

    @property
    def keys(self) -> int:
        """Width of all key heads; values have the same."""
        return self.kv_heads * self.head_dim

    def adapters(self, rank: int) -> int:
        """Parameters of LoRA adapters of this rank on all linear maps of all layers."""
        return self.layers * sum(rank * (inputs + outputs) for inputs, outputs in self.linears)


def config_of(config: TrainConfig) -> Any:
    """The transformers configuration of the run's model: a known one, or a folder's, or a hub's.

    Raises:
        MissingDataError: If there is no such checkpoint.
        MissingExtraError: If transformers is not installed.
    """
    if config.model in KNOWN:
        try:
            from transformers import AutoConfig
        except ImportError as error:
            raise missing_extra("transformers", "train") from error
        fields = dict(KNOWN[config.model])
        return AutoConfig.for_model(fields.pop("model_type"), **fields)
    return load_plain_config(config)


def shape_of(model_config: Any) -> ModelShape:
    """Builds the model on the meta device and counts.

    Args:
        model_config: A transformers configuration.
    """
    import torch
    from transformers import AutoModelForCausalLM

    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(model_config)
    text = model.config.get_text_config()
    first = _layers(model, text.num_hidden_layers)[0]
    heads = int(text.num_attention_heads)
    return ModelShape(
        parameters=sum(p.numel() for p in model.parameters()),
        layer=sum(p.numel() for p in first.parameters()),
        embedding=model.get_input_embeddings().weight.numel(),
        width=int(text.hidden_size),
        layers=int(text.num_hidden_layers),
        heads=heads,
        kv_heads=int(getattr(text, "num_key_value_heads", None) or heads),
        head_dim=int(getattr(text, "head_dim", None) or text.hidden_size // heads),
        feed_forward=int(getattr(text, "intermediate_size", None) or 4 * text.hidden_size),
        vocabulary=int(text.vocab_size),
        linears=[(m.in_features, m.out_features) for m in first.modules() if isinstance(m, torch.nn.Linear)],
        norms_heads=any(name.endswith("q_norm") for name, _ in first.named_modules()),
        max_positions=getattr(text, "max_position_embeddings", None),
    )


def _layers(model: Any, count: int) -> Any:
    import torch

    found = [m for m in model.modules() if isinstance(m, torch.nn.ModuleList) and len(m) == count]
    return found[0]
