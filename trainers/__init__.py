"""Trainers of agents that are to do without the skill in their prompt.

``from trainers import TrainConfig, evaluate, get_recipe, train``; every other name is exported by its room. What is
exported is imported when it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillc_gym.lazy import lazy_exports

if TYPE_CHECKING:
    from trainers.config import TrainConfig
    from trainers.evaluation.policy import evaluate_policy as evaluate
    from trainers.recipes import get_recipe
    from trainers.training import run as train
else:
    __getattr__, __dir__ = lazy_exports(__name__)

__all__ = ["TrainConfig", "evaluate", "get_recipe", "train"]
