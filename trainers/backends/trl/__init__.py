"""Training with TRL; nothing else in the project imports it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skillc_gym.errors import ConfigError, missing_extra
from trainers.backends import BackendSpec

if TYPE_CHECKING:
    from trainers.learner import Backend, Objective, Setup

__all__ = ["BACKEND"]


def _require() -> None:
    try:
        import torch  # noqa: F401
        import transformers  # noqa: F401
        import trl  # noqa: F401
    except ImportError as error:
        raise missing_extra("trl, with torch and transformers,", "train") from error


def _make(setup: Setup, objective: Objective, tokenizer: Any) -> Backend:
    from trainers.backends.trl.backend import TrlBackend

    return TrlBackend(setup, objective, tokenizer)


def _chat_template(tokenizer: Any) -> None:
    try:
        from trl.chat_template_utils import get_training_chat_template
    except ImportError as error:
        raise missing_extra("trl", "train") from error
    try:
        tokenizer.chat_template = get_training_chat_template(tokenizer) or tokenizer.chat_template
    except ValueError as error:
        raise ConfigError(f"TRL has no training template for this tokenizer's: {error}") from error


BACKEND = BackendSpec("trl", _require, _make, _chat_template)
