"""The recipes of the warm-started policies: those that ship with the package, and one for any data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trainers.warmstart.demonstrations import DemonstrationConfig
from trainers.warmstart.make import PolicyRecipe
from trainers.warmstart.worlds import world

__all__ = ["CATALOGUE", "GENERATOR", "SHIPPED_POLICY", "SHIPPED_SHOPPER", "data_recipe", "shipped_recipe"]

SHIPPED_POLICY = Path(__file__).parent / "checkpoint"
"""The warm-started policy for houses that comes with the package."""

SHIPPED_SHOPPER = Path(__file__).parent / "checkpoint_webshop"
"""The warm-started policy for the shop that comes with the package."""

GENERATOR = {"seed": 0, "games_per_type": 400, "size": "small"}
"""The family of generated houses of the shipped policy and of the demonstration: 2,400 games to train on."""

CATALOGUE = {"seed": 0, "size": 1000}
"""The generated catalogue of the shipped shopper and of the demonstration: 1,996 goals to train on, 500 to test."""


def shipped_recipe(env: str = "alfworld") -> PolicyRecipe:
    """The recipe of a policy that ships with the package."""
    return _recipe(env, "generated", generator=GENERATOR if env == "alfworld" else CATALOGUE)


def data_recipe(data: str, env: str = "alfworld") -> PolicyRecipe:
    """A recipe for a policy warm-started on the training split of a folder or archive."""
    return _recipe(env, data)


def _recipe(env: str, data: str, **options: Any) -> PolicyRecipe:
    shown = {"data": data, "split": "train", **options}
    careless = dict(world(env).careless)
    return PolicyRecipe(demonstrations=DemonstrationConfig(env=env, env_kwargs=shown, careless_without=careless))
