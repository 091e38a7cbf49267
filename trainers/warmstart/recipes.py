"""The recipes of the warm-started policies: those that ship with the package, and one for any data."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from skillc_gym.envs.registry import warm_started
from trainers.warmstart.demonstrations import DemonstrationConfig
from trainers.warmstart.make import PolicyRecipe

__all__ = ["data_recipe", "set_error_rate", "shipped_recipe"]


def shipped_recipe(env: str = "alfworld") -> PolicyRecipe:
    """The recipe of a policy that ships with the package."""
    return _recipe(env, "generated", generator=dict(warm_started(env)[1].generator))


def data_recipe(data: str, env: str = "alfworld") -> PolicyRecipe:
    """A recipe for a policy warm-started on the training split of a folder or archive."""
    return _recipe(env, data)


def _recipe(env: str, data: str, **options: Any) -> PolicyRecipe:
    shown = {"data": data, "split": "train", **options}
    rates = dict(warm_started(env)[1].error_rates)
    return PolicyRecipe(demonstrations=DemonstrationConfig(env=env, env_kwargs=shown, error_rates_without_skill=rates))


def set_error_rate(recipe: PolicyRecipe, without_skill: float) -> PolicyRecipe:
    """A recipe whose skill-free demonstrations leave out the essential step equally often for every task type.

    At 1.0 a policy cloned from it never sees the step without the skill: success without it becomes rare.

    Args:
        recipe: The recipe to change.
        without_skill: Probability of leaving the step out.
    """
    rates = dict.fromkeys(warm_started(recipe.demonstrations.env)[1].error_rates, without_skill)
    return replace(recipe, demonstrations=replace(recipe.demonstrations, error_rates_without_skill=rates))
