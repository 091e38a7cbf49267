"""A word tokenizer for household and shopping text, saved in Hugging Face's own format."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from skillc_gym.errors import missing_extra

if TYPE_CHECKING:
    from tokenizers import Tokenizer
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

# Articles and punctuation carry nothing in this language and cost a third of the context.
_PUNCTUATION = r"[^a-z0-9<>|/]"
_ARTICLES = r"\b(?:a|an|the|and)\b"
_WORD = re.compile(r"[a-z0-9]+")


def words(text: str) -> list[str]:
    """Splits a text the way the tokenizer does, tags and roles left out."""
    bare = re.sub("|".join(map(re.escape, SPECIAL)), " ", text).lower()
    return _WORD.findall(re.sub(_ARTICLES, " ", re.sub(_PUNCTUATION, " ", bare)))


def vocabulary(texts: Iterable[str], *, min_count: int = 1) -> list[str]:
    """Counts the words of a corpus.

    Returns:
        The words that occur at least ``min_count`` times, most frequent first, ties in alphabetical order.
    """
    counts = Counter(word for text in texts for word in words(text))
    kept = [word for word, count in counts.items() if count >= min_count]
    return sorted(kept, key=lambda word: (-counts[word], word))


def _core(vocab: dict[str, int]) -> Tokenizer:
    from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

    core = Tokenizer(models.WordLevel(vocab, unk_token=UNKNOWN))
    dropped = [normalizers.Replace(Regex(pattern), " ") for pattern in (_PUNCTUATION, _ARTICLES)]
    core.normalizer = normalizers.Sequence([normalizers.Lowercase(), *dropped])
    core.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Split(Regex(r"[<>|/]"), "removed")]
    )
    core.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in SPECIAL[:6]])
    core.add_tokens([AddedToken(token, normalized=False) for token in TAGS])
    return core


def build_tokenizer(vocab_words: Iterable[str], *, max_length: int = 4096) -> PreTrainedTokenizerFast:
    """Builds the tokenizer: one token a word, one a tag, one a role.

    Text is lower-cased and loses punctuation and articles on the way in; nothing reads those tokens back, since
    transcripts keep the text itself. Replies decode to words joined by single spaces.

    Args:
        vocab_words: The words, in the order of their ids.
        max_length: Longest context in tokens that the tokenizer claims to serve.

    Raises:
        MissingExtraError: If transformers is not installed.
    """
    try:
        from transformers import PreTrainedTokenizerFast
    except ImportError as error:
        raise missing_extra("transformers", "train") from error
    vocab = {token: index for index, token in enumerate([*SPECIAL, *vocab_words])}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=_core(vocab), pad_token=PAD, unk_token=UNKNOWN, eos_token=END, model_max_length=max_length
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer
