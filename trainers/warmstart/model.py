"""The shape of the tiny policy: Qwen3, with rotary positions set for short contexts.

Qwen3 rather than Qwen2, because transformers replaces the tokenizer of any folder whose model type is ``qwen2`` by
Qwen's own byte-level one, whatever the folder says; a Qwen3 folder keeps the tokenizer that lies in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillc_gym.errors import missing_extra

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM


@dataclass(frozen=True)
class PolicySize:
    """Dimensions of a small Qwen3-shaped policy."""

    layers: int = 4
    """Transformer blocks."""
    width: int = 128
    """Hidden size."""
    heads: int = 4
    """Attention heads; keys and values have as many."""
    feed_forward: int = 352
    """Width of the gated feed-forward part."""
    rope_base: float = 1000.0
    """Base of the rotary positions. A small base lets a small model learn to copy names over short contexts."""


TINY = PolicySize()
SMALL = PolicySize(layers=8, width=512, heads=8, feed_forward=1408)
"""About 28 million parameters: for a GPU, where the tiny one measures only overhead."""


def build_model(tokenizer: PreTrainedTokenizerFast, size: PolicySize = TINY, *, seed: int = 0) -> Qwen3ForCausalLM:
    """Builds a randomly initialised policy for a tokenizer; embeddings are not tied.

    Args:
        tokenizer: Gives the vocabulary, the padding and the end token, and the longest context.
        size: Dimensions.
        seed: Seed of the initial weights; the caller's random state is left as it was.
    """
    try:
        import torch
        from transformers import Qwen3Config, Qwen3ForCausalLM
    except ImportError as error:
        raise missing_extra("transformers and torch", "train") from error
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=size.width,
        intermediate_size=size.feed_forward,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        num_key_value_heads=size.heads,
        head_dim=size.width // size.heads,
        max_position_embeddings=tokenizer.model_max_length,
        rope_parameters={"rope_type": "default", "rope_theta": size.rope_base},
        tie_word_embeddings=False,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Qwen3ForCausalLM(config)
