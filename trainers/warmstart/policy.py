"""The small policy: a word tokenizer for household and shopping text, and a model of Qwen3's shape for short contexts.

Qwen3 rather than Qwen2, because transformers replaces the tokenizer of any folder whose model type is ``qwen2`` by
Qwen's own byte-level one, whatever the folder says; a Qwen3 folder keeps the tokenizer that lies in it.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillc_gym.envs.warm_start import PLAIN_WORDS, Spelling
from skillc_gym.errors import ConfigError, needs_extra
from trainers.base import Count, Positive, check_values

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from tokenizers.normalizers import Normalizer
    from tokenizers.pre_tokenizers import PreTokenizer
    from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

END = "<|end|>"
PAD = "<|pad|>"
UNKNOWN = "<|unknown|>"
ROLES = ("<|system|>", "<|user|>", "<|assistant|>")
TAGS = ("<think>", "</think>", "<action>", "</action>")
_COMMAND = re.compile(r"<action> (.*?) </action>")
SPECIAL = (PAD, UNKNOWN, END, *ROLES, *TAGS)

CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] + '" + END + "' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)


def words(text: str, spelling: Spelling = PLAIN_WORDS) -> list[str]:
    """Splits a text the way the tokenizer does, without tags, roles and what the spelling keeps."""
    bare = re.sub("|".join(map(re.escape, (*SPECIAL, *spelling.kept))), " ", text)
    normalizer, splitter = _splitting(spelling)
    found = [word for word, _ in splitter.pre_tokenize_str(normalizer.normalize_str(bare))]
    # Lower-casing can make a role of what was none: <|USER|>.
    return [word for word in found if word not in SPECIAL]


@functools.cache
def _splitting(spelling: Spelling) -> tuple[Normalizer, PreTokenizer]:
    from tokenizers import Regex, normalizers, pre_tokenizers

    dropped = [normalizers.Replace(Regex(pattern), " ") for pattern in spelling.blanked]
    splits = [pre_tokenizers.Split(Regex(pattern), how) for pattern, how in spelling.split]
    return (
        normalizers.Sequence([normalizers.Lowercase(), *dropped]),
        pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), *splits]),
    )


def vocabulary(texts: Iterable[str], spelling: Spelling = PLAIN_WORDS, *, min_count: int = 1) -> list[str]:
    """The words of a corpus that occur at least ``min_count`` times, most frequent first, ties by the alphabet."""
    counts = Counter(word for text in texts for word in words(text, spelling))
    kept = [word for word, count in counts.items() if count >= min_count]
    return sorted(kept, key=lambda word: (-counts[word], word))


def require_sayable(replies: Iterable[str]) -> None:
    """Refuses (ConfigError) a demonstrated command that the default spelling does not bring back as it was."""
    for command in sorted({command for reply in replies for command in _COMMAND.findall(reply)}):
        said = " ".join(words(command))
        if said != command:
            raise ConfigError(
                f"Demonstrations give the command {command!r}, which the policy could only say as {said!r}: the "
                "default spelling has lower-case words without articles and punctuation. Describe the environment "
                "with WarmStart(spelling=Spelling(...)), or name its commands so"
            )


def _core(vocab: dict[str, int], spelling: Spelling) -> Tokenizer:
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models

    core = Tokenizer(models.WordLevel(vocab, unk_token=UNKNOWN))
    core.normalizer, core.pre_tokenizer = _splitting(spelling)
    if spelling.glued:
        replaced = [decoders.Replace(found, meant) for found, meant in spelling.glued]
        spaced, trimmed = decoders.Replace(Regex("^"), " "), decoders.Strip(" ", 1, 0)
        core.decoder = decoders.Sequence([spaced, decoders.Fuse(), *replaced, trimmed])
    core.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in SPECIAL[:6]])
    core.add_tokens([AddedToken(token, normalized=False) for token in (*TAGS, *spelling.kept)])
    return core


def build_tokenizer(
    vocab_words: Iterable[str], spelling: Spelling = PLAIN_WORDS, *, max_length: int = 4096
) -> PreTrainedTokenizerFast:
    """Builds the tokenizer: one token a word, in the order of their ids, one a tag, one a role.

    Text is lower-cased and loses what the spelling drops on the way in; nothing reads those tokens back, since
    transcripts keep the text itself. Replies decode to words joined by single spaces, but for what the spelling glues.
    """
    with needs_extra("transformers", "train"):
        from transformers import PreTrainedTokenizerFast
    vocab = {token: index for index, token in enumerate([*SPECIAL, *spelling.kept, *vocab_words])}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=_core(vocab, spelling),
        pad_token=PAD,
        unk_token=UNKNOWN,
        eos_token=END,
        model_max_length=max_length,
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


# The model -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PolicySize:
    """Dimensions of a small Qwen3-shaped policy."""

    layers: Count = 4
    """Transformer blocks."""
    width: Count = 128
    """Hidden size."""
    heads: Count = 4
    """Attention heads; keys and values have as many."""
    feed_forward: Count = 352
    """Width of the gated feed-forward part."""
    rope_base: Positive = 1000.0
    """Base of the rotary positions. A small base lets a small model learn to copy names over short contexts."""

    def check(self) -> None:
        """Refuses dimensions that no model has, by a ConfigError."""
        check_values(self, prefix="size.")
        if self.width % (2 * self.heads):
            # Every head has an equal share of the width, and rotary positions pair its halves.
            raise ConfigError(f"size.width is a multiple of twice size.heads, got {self.width} and {self.heads}")


TINY = PolicySize()
SMALL = PolicySize(layers=8, width=512, heads=8, feed_forward=1408)
"""About 28 million parameters: for a GPU, where the tiny one measures only overhead."""


def build_model(tokenizer: PreTrainedTokenizerFast, size: PolicySize = TINY, *, seed: int = 0) -> Qwen3ForCausalLM:
    """Builds a Qwen3-shaped policy for a tokenizer, embeddings not tied, initialised by the seed alone."""
    with needs_extra("transformers and torch", "train"):
        import torch
        from transformers import Qwen3Config, Qwen3ForCausalLM
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
        torch.manual_seed(seed % 2**63)
        return Qwen3ForCausalLM(config)
