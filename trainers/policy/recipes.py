"""The recipes of the warm-started policies: the one that ships with the package, and one for any folder of games."""

from __future__ import annotations

from pathlib import Path

from trainers.policy.demonstrations import DemonstrationConfig
from trainers.policy.make import PolicyRecipe

__all__ = ["GENERATOR", "SHIPPED_POLICY", "games_recipe", "shipped_recipe"]

SHIPPED_POLICY = Path(__file__).parent / "checkpoint"
"""The warm-started policy that comes with the package."""

GENERATOR = {"seed": 0, "games_per_type": 400, "size": "small"}
"""The family of generated houses of the shipped policy and of the demonstration: 2,400 games to train on."""


def shipped_recipe() -> PolicyRecipe:
    """The recipe of the policy that ships with the package."""
    games = {"data": "generated", "split": "train", "generator": GENERATOR}
    return PolicyRecipe(demonstrations=DemonstrationConfig(env_kwargs=games))


def games_recipe(data: str) -> PolicyRecipe:
    """A recipe for a policy warm-started on the training split of a folder or archive of ALFWorld games."""
    games = {"data": data, "split": "train"}
    return PolicyRecipe(demonstrations=DemonstrationConfig(env_kwargs=games))
