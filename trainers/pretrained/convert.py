"""GGUF files as transformers checkpoints, weights in float32, with a tokenizer that was compared with the file's."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from skillc_gym.errors import CheckpointError, missing_extra
from trainers.models import without_bars
from trainers.pretrained.byte_pairs import BytePairs

__all__ = ["SAMPLES", "compare", "convert", "split_digits"]

SAMPLES = (
    "You are in the middle of a room. Looking quickly around you, you see a cabinet 12, a fridge 1 and 3 apples.",
    "<think>Let's see...</think><action>go to drawer 10</action>\n\n  Steps taken so far:   7 of 50\t(14 %)",
    "Price: $1,299.00 -- 100% cotton, size x-large; color: café crème  2024",
)
"""Texts on which a rebuilt tokenizer must agree with the file's own vocabulary and merges."""


def convert(gguf: Path, folder: Path, *, splits_digits: bool = False) -> None:
    """Writes a checkpoint.

    Args:
        gguf: The file.
        folder: Made.
        splits_digits: Whether its tokenizer takes every digit as a token of its own.

    Raises:
        MissingExtraError: If torch, transformers or gguf is not installed.
        CheckpointError: If the rebuilt tokenizer does not agree with the file.
    """
    try:
        importlib.import_module("gguf")  # transformers would name it without its extra
        from transformers import AutoModelForCausalLM, AutoTokenizer
    except ImportError as error:
        raise missing_extra("gguf, with torch and transformers,", "gguf") from error
    with without_bars():
        tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name, local_files_only=True)
        if splits_digits:
            split_digits(tokenizer)
        compare(tokenizer, BytePairs.of_gguf(gguf, splits_digits=splits_digits))
        model = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, local_files_only=True)
        _plain(model).save_pretrained(folder)
        tokenizer.save_pretrained(folder)


def _plain(model: Any) -> Any:
    """The same weights in a model that knows nothing of its origin, so that it can be saved and trained."""
    values = model.config.to_dict()
    values.pop("quantization_config", None)
    # The file holds it as a 32-bit number.
    values["rms_norm_eps"] = round(values["rms_norm_eps"], 12)
    plain = type(model)(type(model.config).from_dict(values))
    plain.load_state_dict(model.state_dict())
    return plain


def split_digits(tokenizer: Any) -> None:
    """Puts the split of digits back that GGUF does not record, before the bytes."""
    from tokenizers import pre_tokenizers

    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )


def compare(tokenizer: Any, reference: BytePairs) -> None:
    """Holds a rebuilt tokenizer against a file's vocabulary and merges.

    Raises:
        CheckpointError: A token has another number, or a text other tokens.
    """
    vocabulary = tokenizer.get_vocab()
    for number, token in enumerate(reference.tokens):
        if vocabulary.get(token) != number:
            raise CheckpointError(
                f"The rebuilt tokenizer has {token!r} at {vocabulary.get(token)}, the file at {number}."
            )
    for text in SAMPLES:
        ids = tokenizer.encode(text, add_special_tokens=False)
        if ids != reference.encode(text) or tokenizer.decode(ids) != text:
            raise CheckpointError(f"The rebuilt tokenizer encodes {text!r} otherwise than the file's merges do.")
