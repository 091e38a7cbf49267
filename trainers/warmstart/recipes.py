"""The recipes of the warm-started policies: those that ship with the package, and one for any data."""

from __future__ import annotations

from typing import Any

from skillc_gym.envs.registry import warm_started
from trainers.warmstart.demonstrations import DemonstrationConfig
from trainers.warmstart.make import PolicyRecipe

__all__ = ["data_recipe", "shipped_recipe"]


def shipped_recipe(env: str = "alfworld") -> PolicyRecipe:
    """The recipe of a policy that ships with the package."""
    return _recipe(env, "generated", generator=dict(warm_started(env)[1].generator))


def data_recipe(data: str, env: str = "alfworld") -> PolicyRecipe:
    """A recipe for a policy warm-started on the training split of a folder or archive."""
    return _recipe(env, data)


def _recipe(env: str, data: str, **options: Any) -> PolicyRecipe:
    shown = {"data": data, "split": "train", **options}
    rates = dict(warm_started(env)[1].error_rates)
    return PolicyRecipe(demonstrations=DemonstrationConfig(env=env, env_kwargs=shown, careless_without=rates))
