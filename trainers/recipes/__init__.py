"""Methods by name, one small file each, composed of parts."""

from __future__ import annotations

from typing import Any

from skillc_gym.errors import ConfigError
from trainers.recipes.additions import add
from trainers.recipes.recipe import Recipe
from trainers.registry import Registry

__all__ = ["RECIPES", "Recipe", "get_recipe", "recipe_names"]

RECIPES = Registry("preset", "trainers.recipes", "RECIPE", "skillc_gym.recipes")
"""Built-in recipes, entry points, and ``module:RECIPE``."""


def recipe_names() -> tuple[str, ...]:
    """The names that :func:`get_recipe` knows."""
    return RECIPES.names()


def get_recipe(name: str, **overrides: Any) -> Recipe:
    """Looks a method up by name, with some of its options changed.

    Args:
        name: One of :func:`recipe_names`, or ``module:NAME`` of a :class:`Recipe`; ``+NAME`` behind it adds one of
            :data:`trainers.recipes.additions.ADDITIONS`, as in ``grpo+relabelling``.
        **overrides: Options of the recipe's parts; recorded in its ``overrides``.

    Raises:
        UnknownNameError: No such recipe, option or value; the message names the nearest.
        ConfigError: A value out of range, or something that is no recipe.

    Example:
        >>> get_recipe("skillc", correction_mask="success").overrides
        {'correction_mask': 'success'}
    """
    base, *additions = name.split("+")
    recipe = RECIPES.get(base)
    if not isinstance(recipe, Recipe):
        raise ConfigError(f"preset={name!r} names a {type(recipe).__name__}, not a trainers.recipes.Recipe")
    recipe = add(recipe, additions)
    return recipe.overridden(**overrides) if overrides else recipe
