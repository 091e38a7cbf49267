"""Training with TRL; nothing else in the project imports it."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from skillc_gym.errors import ConfigError, needs_extra
from trainers.backends import BackendSpec

if TYPE_CHECKING:
    from trainers.config import TrainConfig
    from trainers.learner import Backend, Objective
    from trainers.tracking import Progress

__all__ = ["BACKEND"]


def _require() -> None:
    with needs_extra("trl, with torch and transformers,", "train"):
        for package in ("torch", "transformers", "trl"):
            importlib.import_module(package)


def _make(config: TrainConfig, objective: Objective, tokenizer: Any, progress: Progress) -> Backend:
    from trainers.backends.trl.backend import TrlBackend

    return TrlBackend(config, objective, tokenizer, progress)


def _chat_template(tokenizer: Any) -> None:
    with needs_extra("trl", "train"):
        from trl.chat_template_utils import get_training_chat_template
    try:
        tokenizer.chat_template = get_training_chat_template(tokenizer) or tokenizer.chat_template
    except ValueError as error:
        raise ConfigError(f"TRL has no training template for this tokenizer's: {error}") from error


BACKEND = BackendSpec("trl", _require, _make, _chat_template)
