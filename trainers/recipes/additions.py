"""What can be added to any recipe by name: ``method=skillc+relabelling``, ``method=skillc+allocation+baseline``.

These are the study's variants, each with its own formula: relabelling (:mod:`trainers.losses.relabelling`),
forward_distillation (:mod:`trainers.losses.distribution_distillation`), entropy (:mod:`trainers.losses.value`),
baseline (:func:`trainers.advantages.raised_baseline`), allocation and need (:mod:`trainers.allocation`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from skillc_gym.errors import ConfigError, unknown_name
from trainers.advantages.csca import Csca
from trainers.advantages.group_baselines import Grpo, RaisedBaseline
from trainers.base import current_names
from trainers.losses.distribution_distillation import ForwardDistillation
from trainers.losses.self_distillation import Relabelling
from trainers.losses.value import EntropyBonus
from trainers.recipes.parts.allocation import ByNeed, BySignal
from trainers.recipes.parts.rows import RelabelledRows
from trainers.recipes.recipe import Recipe

Addition = Callable[[Recipe], Recipe]


def _relabelling(recipe: Recipe) -> Recipe:
    return replace(recipe, losses=(*recipe.losses, Relabelling()), rows=(*recipe.rows, RelabelledRows()))


def _baseline(recipe: Recipe) -> Recipe:
    if type(recipe.advantage) not in (Grpo, Csca):
        raise ConfigError(
            f"{recipe.name}: the addition baseline would take the place of advantage={recipe.advantage.name!r}, which "
            "makes the method what it is; leave it out, or add it to grpo, half_skill_grpo or skillc"
        )
    return replace(recipe, advantage=RaisedBaseline())


ADDITIONS: Mapping[str, Addition] = {
    "relabelling": _relabelling,
    "forward_distillation": lambda recipe: replace(recipe, losses=(*recipe.losses, ForwardDistillation())),
    "entropy": lambda recipe: replace(recipe, losses=(*recipe.losses, EntropyBonus())),
    "baseline": _baseline,
    "allocation": lambda recipe: replace(recipe, allocation=BySignal()),
    "need": lambda recipe: replace(recipe, allocation=ByNeed()),
}
"""By the names that follow a plus sign."""

_ALLOCATIONS = ("allocation", "need")
_RENAMED: Mapping[str, str] = {"gate": "need"}


def current_name(name: str, *, quietly: bool = False) -> str:
    """The name of a method whose additions may have old names."""
    base, *additions = name.split("+")
    return "+".join([base, *(next(iter(current_names({each: 0}, _RENAMED, quietly=quietly))) for each in additions)])


def add(recipe: Recipe, names: list[str]) -> Recipe:
    """Adds to a recipe, in order.

    Args:
        recipe: What is added to.
        names: Of the additions.

    Returns:
        A recipe named ``<recipe>+<name>+...``.

    Raises:
        UnknownNameError: No such addition.
        ConfigError: One does not go with the recipe, or two of them not with each other.
    """
    for name in names:
        if name not in ADDITIONS:
            raise unknown_name("addition to a recipe", name, ADDITIONS)
    recipe = replace(recipe, name="+".join([recipe.name, *names]))
    chosen = [name for name in names if name in _ALLOCATIONS]
    if len(chosen) > 1 or len(set(names)) < len(names):
        raise ConfigError(
            f"{recipe.name}: each addition is named once, and one of {' and '.join(_ALLOCATIONS)} says who sees the "
            "skill; leave the others out"
        )
    # Who sees the skill comes first: other additions are refused where it would leave them without effect.
    for name in sorted(names, key=lambda name: name not in _ALLOCATIONS):
        recipe = replace(ADDITIONS[name](recipe), summary=f"{recipe.summary} With {name}.")
    return recipe
