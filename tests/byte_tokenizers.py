"""Tokenizers of single bytes with the control tokens and the chat template of a model family."""

from collections.abc import Sequence
from typing import Any


def byte_tokenizer(
    template: str, control: Sequence[str], added: Sequence[str] = (), *, rstrip: Sequence[str] = (), **roles: str
) -> Any:
    """Bytes, control tokens, and added tokens that are not special, as tags of thoughts often are.

    Tokens in `rstrip` take the blanks behind them along. Of the control tokens the first pads and the last ends a turn,
    unless `roles` names others.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    core = Tokenizer(models.BPE({letter: i for i, letter in enumerate(alphabet)}, []))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    core.decoder = decoders.ByteLevel()
    for token in (*control, *added):
        how = {"special": token in control, "rstrip": token in rstrip}
        core.add_tokens([AddedToken(token, normalized=False, **how)])
    roles = {"pad_token": control[0], "eos_token": control[-1], **roles}
    options = {"chat_template": template, "clean_up_tokenization_spaces": False}
    return PreTrainedTokenizerFast(tokenizer_object=core, **roles, **options)
