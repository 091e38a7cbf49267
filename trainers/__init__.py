"""Trainers that turn the contrast between skill-injected and skill-free rollouts into learning.

``from trainers import TrainConfig, evaluate, get_recipe, train``; every other name is reached by its module. What is
exported is imported when it is asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainers.config import TrainConfig
    from trainers.evaluation.policy import evaluate_policy as evaluate
    from trainers.recipes import get_recipe
    from trainers.training import run as train

__all__ = ["TrainConfig", "evaluate", "get_recipe", "train"]

_PLACES = {
    "TrainConfig": ("trainers.config", "TrainConfig"),
    "evaluate": ("trainers.evaluation.policy", "evaluate_policy"),
    "get_recipe": ("trainers.recipes", "get_recipe"),
    "train": ("trainers.training", "run"),
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _PLACES[name]
    return getattr(importlib.import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
