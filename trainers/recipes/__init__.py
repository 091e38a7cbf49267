"""Methods by name, composed of parts."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from typing import Any

from skillc_gym.envs.registry import env_spec
from skillc_gym.errors import ConfigError
from trainers.base import Registry, flat_options, instance_of
from trainers.config import RECOMMENDED
from trainers.recipes.method import Credit, Method
from trainers.recipes.parts.allocation import (
    Allocation,
    Allocator,
    Always,
    ByContrast,
    ByDifficulty,
    ByNeed,
    BySignal,
    ByValue,
    Half,
    Never,
    Paired,
    Whole,
    WholeShare,
)
from trainers.recipes.parts.curriculum import (
    ContrastAverage,
    Gating,
    Internalization,
    NoCurriculum,
    Pruning,
    SkillBudget,
)
from trainers.recipes.parts.rows import RowMaker, UpdateView, quoting_turns
from trainers.recipes.recipe import ADDITIONS, ALLOCATIONS, SCHEMES, Recipe, add, current_name

__all__ = ["ADDITIONS", "ALLOCATIONS", "RECIPES", "RECOMMENDED", "SCHEMES", "Allocation", "Allocator", "Always"]
__all__ += ["ByContrast", "ByDifficulty", "ByNeed", "BySignal", "ByValue", "ContrastAverage", "Credit", "Gating"]
__all__ += ["Half", "Internalization", "Method", "Never", "NoCurriculum", "Paired", "Pruning", "Recipe", "RowMaker"]
__all__ += ["SkillBudget", "UpdateView", "Whole", "WholeShare"]
__all__ += ["get_recipe", "quoting_turns", "recipe_in", "recipe_names"]

RECIPES = Registry("method", "trainers.recipes", "RECIPE", "skillc_gym.recipes", instance_of(Recipe))
"""Built-in recipes, entry points, and ``module:RECIPE``."""

_RETIRES_BY = {"capacity": "budget", "tau_retire": "gap", "margin": "gap", "min_validations": "gap"}
"""Options of retirement, and the reason without which each has no effect."""


def recipe_names() -> tuple[str, ...]:
    """The names that :func:`get_recipe` knows."""
    return RECIPES.names()


def get_recipe(name: str, **overrides: Any) -> Recipe:
    """Looks a method up by name or ``module:NAME``, with options of its parts changed, which its ``overrides`` record.

    ``+NAME`` behind it adds one of :data:`trainers.recipes.recipe.ADDITIONS`, as in ``skillc+relabelling``. Errors name
    the nearest recipe, option or value.

    Examples:
        >>> get_recipe("skillc", correction_mask="success").overrides
        {'correction_mask': 'success'}
    """
    head, _, option = name.partition(":")
    if "=" in option and head.partition("+")[0] in RECIPES.names():
        raise ConfigError(f"{name}: a method's options stand apart here, as --method.{option.replace('=', ' ')}.")
    base, *additions = current_name(name).split("+")
    recipe = add(RECIPES.get(base), additions)
    return recipe.overridden(**overrides) if overrides else recipe


def recipe_in(env: str, name: str, options: Mapping[str, Any]) -> Recipe:
    """A method in an environment, with the curriculum that this implies if it may; the chosen options come last.

    Errors are those of :func:`get_recipe`. An option of a curriculum has no effect where a method has none, nor has one
    of retirement where the environment implies another ``retire_by``, nor ``rho`` where no share is asked for; a
    UserWarning says so, and no error, since runs and studies give several methods the same options.
    """
    recipe, spec = get_recipe(name), env_spec(env)
    implied = {} if recipe.curriculum.own_schedule else spec.curriculum
    unused = set() if recipe.curriculum.steers else set(flat_options(Internalization())) - set(recipe.options)
    # A demonstration's settings, which runs record and studies hash, are those of all methods alike.
    shared = spec.warm_start.demo.preset_options if spec.warm_start else {}
    idle = [f"{key}={value!r}" for key, value in options.items() if key in unused and value != shared.get(key)]
    if idle:
        warnings.warn(f"{', '.join(idle)} has no effect: the method {name} has no curriculum.", stacklevel=2)
    found = get_recipe(name, **{**implied, **{key: value for key, value in options.items() if key not in unused}})
    if "retire_by" in implied and "retire_by" not in options:
        missing = {key: why for key, why in _RETIRES_BY.items() if why not in implied["retire_by"]}
        idle = [key for key in missing if key in options and options[key] != shared.get(key)]
        if idle:
            reasons = json.dumps(sorted({missing[key] for key in idle}))
            told = f"{', '.join(idle)} of {name} has no effect, since no skill of {env} is retired so"
            warnings.warn(f"{told}; add method.retire_by='{reasons}'.", stacklevel=2)
    if options.get("rho") is not None and recipe.curriculum.steers and not found.allocation.follows_curriculum:
        asks = f"allocation={found.allocation.name!r} asks for no share"
        warnings.warn(f"rho={options['rho']!r} has no effect: {asks}.", stacklevel=2)
    return found
