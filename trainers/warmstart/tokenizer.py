"""A word tokenizer for household and shopping text, saved in Hugging Face's own format."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from skillc_gym.envs.warm_start import PLAIN_WORDS, Spelling
from skillc_gym.errors import missing_extra

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from tokenizers.decoders import Decoder
    from tokenizers.normalizers import Normalizer
    from tokenizers.pre_tokenizers import PreTokenizer
    from transformers import PreTrainedTokenizerFast

END = "<|end|>"
PAD = "<|pad|>"
UNKNOWN = "<|unknown|>"
ROLES = ("<|system|>", "<|user|>", "<|assistant|>")
TAGS = ("<think>", "</think>", "<action>", "</action>")
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
    """Counts the words of a corpus.

    Args:
        texts: The corpus.
        spelling: What its words are.
        min_count: Rarer words are left out.

    Returns:
        The words that occur at least ``min_count`` times, most frequent first, ties in alphabetical order.
    """
    counts = Counter(word for text in texts for word in words(text, spelling))
    kept = [word for word, count in counts.items() if count >= min_count]
    return sorted(kept, key=lambda word: (-counts[word], word))


def _core(vocab: dict[str, int], spelling: Spelling) -> Tokenizer:
    from tokenizers import AddedToken, Tokenizer, models

    core = Tokenizer(models.WordLevel(vocab, unk_token=UNKNOWN))
    core.normalizer, core.pre_tokenizer = _splitting(spelling)
    if spelling.glued:
        core.decoder = _decoder(spelling)
    core.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in SPECIAL[:6]])
    core.add_tokens([AddedToken(token, normalized=False) for token in (*TAGS, *spelling.kept)])
    return core


def _decoder(spelling: Spelling) -> Decoder:
    from tokenizers import Regex, decoders

    spaced = decoders.Replace(Regex("^"), " ")
    replaced = [decoders.Replace(found, meant) for found, meant in spelling.glued]
    return decoders.Sequence([spaced, decoders.Fuse(), *replaced, decoders.Strip(" ", 1, 0)])


def build_tokenizer(
    vocab_words: Iterable[str], spelling: Spelling = PLAIN_WORDS, *, max_length: int = 4096
) -> PreTrainedTokenizerFast:
    """Builds the tokenizer: one token a word, one a tag, one a role.

    Text is lower-cased and loses what the spelling drops on the way in; nothing reads those tokens back, since
    transcripts keep the text itself. Replies decode to words joined by single spaces, but for what the spelling glues.

    Args:
        vocab_words: The words, in the order of their ids.
        spelling: What the language's words are.
        max_length: Longest context in tokens that the tokenizer claims to serve.

    Raises:
        MissingExtraError: If transformers is not installed.
    """
    try:
        from transformers import PreTrainedTokenizerFast
    except ImportError as error:
        raise missing_extra("transformers", "train") from error
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
