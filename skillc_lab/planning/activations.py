"""What a pass keeps for its backward pass, in bytes per token.

Counted tensor by tensor for transformers' decoders with RMS norms, SDPA or flash attention and a gated feed-forward
part (Llama, Qwen2, Qwen3, Mistral, SmolLM2); the tests hold the counts against what autograd saves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from skillc_lab.planning.shapes import ModelShape

__all__ = ["Arithmetic", "Kind", "layer_bytes", "residual_bytes"]

Kind = Literal["float32", "autocast", "bfloat16"]


@dataclass(frozen=True)
class Arithmetic:
    """How numbers are held: float32 throughout, bfloat16 under autocast over float32 weights, or bfloat16 weights.

    Attributes:
        kind: Which of them.
    """

    kind: Kind

    @property
    def weight(self) -> int:
        """Bytes of a weight."""
        return 2 if self.kind == "bfloat16" else 4

    @property
    def compute(self) -> int:
        """Bytes of a number within linear maps and attention."""
        return 4 if self.kind == "float32" else 2


def residual_bytes(shape: ModelShape, arithmetic: Arithmetic) -> int:
    """One token's hidden state between two layers: what checkpointing keeps of a layer."""
    return shape.width * arithmetic.weight


def layer_bytes(shape: ModelShape, arithmetic: Arithmetic, lora_rank: int = 0) -> int:
    """All that one layer keeps of one token.

    Args:
        shape: The model.
        arithmetic: How numbers are held.
        lora_rank: Of adapters on all linear maps, while the weights themselves are frozen; 0 trains the weights.
    """
    return (
        _norms(shape, arithmetic, frozen=lora_rank > 0)
        + _inputs(shape, arithmetic, lora_rank)
        + _attention(shape, arithmetic)
        + 3 * shape.feed_forward * arithmetic.compute
    )


def _norms(shape: ModelShape, arithmetic: Arithmetic, *, frozen: bool) -> int:
    """Input and normed input, in float32, of both norms; a frozen norm needs no normed input. Scales are float32."""
    normed = 0 if frozen else arithmetic.weight
    found = 2 * (shape.width * (4 + normed) + 4)
    if shape.norms_heads:
        in_heads = 0 if frozen else arithmetic.compute
        found += (shape.queries + shape.keys) * (4 + in_heads) + 4 * (shape.heads + shape.kv_heads)
    return found


def _inputs(shape: ModelShape, arithmetic: Arithmetic, lora_rank: int) -> int:
    """Inputs of the linear maps: autocast casts anew for each of them, adapters in float32 too."""
    width, product = shape.width, shape.feed_forward
    outputs = 7 * lora_rank * 4
    if arithmetic.kind == "float32":
        return 4 * (2 * width + product) + outputs
    if arithmetic.kind == "autocast":
        return 2 * (5 * width + product + (shape.queries if lora_rank else 0)) + outputs
    if lora_rank:
        return 4 * (5 * width + shape.queries + product) + outputs
    return 2 * (2 * width + product)


def _attention(shape: ModelShape, arithmetic: Arithmetic) -> int:
    """Queries, keys, values, the result, and a float32 per head."""
    return arithmetic.compute * 2 * (shape.queries + shape.keys) + 4 * shape.heads
