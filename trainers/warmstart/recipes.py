"""The recipes of the warm-started policies: those that ship with the package, and one for any data."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from skillc_gym.envs.registry import warm_started
from skillc_gym.errors import ConfigError
from trainers.warmstart.demonstrations import DemonstrationConfig
from trainers.warmstart.make import PolicyRecipe

__all__ = ["data_recipe", "generated_mixture", "set_error_rate", "shipped_recipe"]


def shipped_recipe(env: str = "alfworld") -> PolicyRecipe:
    """The recipe of a policy that ships with the package."""
    return _recipe(env, "generated", generator=dict(warm_started(env)[1].generator))


def data_recipe(data: str, env: str = "alfworld") -> PolicyRecipe:
    """A recipe for a policy warm-started on the training split of a folder or archive."""
    return _recipe(env, data)


def generated_mixture(recipe: PolicyRecipe) -> DemonstrationConfig:
    """What a recipe demonstrates of a data set's tasks, demonstrated of generated ones as large.

    Args:
        recipe: The recipe for the data set.

    Raises:
        ConfigError: The recipe's tasks are generated, or the environment generates none as large as a data set's.
    """
    shown = recipe.demonstrations
    mixture = warm_started(shown.env)[1].mixture
    if not mixture or shown.env_kwargs["data"] == "generated":
        raise ConfigError(
            f"Generated tasks are mixed into those of a data set; got data={shown.env_kwargs['data']!r} of "
            f"{shown.env}. Name a folder or archive of alfworld's games, or leave the generated share at 0."
        )
    return replace(shown, env_kwargs={**shown.env_kwargs, "data": "generated", "generator": dict(mixture)})


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
