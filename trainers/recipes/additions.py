"""What can be added to any recipe by name: ``preset=skillc+relabelling``, ``preset=skillc+allocation+baseline``.

These are the study's variants, each with its own formula: relabelling (:mod:`trainers.losses.relabelling`),
forward_distillation (:mod:`trainers.losses.distribution_distillation`), entropy
(:mod:`trainers.losses.value`), baseline
(:mod:`trainers.advantages.group_baselines`), allocation (:mod:`trainers.allocation.signal`) and gate
(:mod:`trainers.allocation.need`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from skillc_gym.errors import unknown_name
from trainers.advantages.group_baselines import RaisedBaseline
from trainers.losses.distribution_distillation import ForwardDistillation
from trainers.losses.relabelling import Relabelling
from trainers.losses.value import EntropyBonus
from trainers.recipes.parts.adaptive_allocation import ByNeed, BySignal
from trainers.recipes.parts.relabelled_rows import RelabelledRows
from trainers.recipes.recipe import Recipe

__all__ = ["ADDITIONS", "add"]

Addition = Callable[[Recipe], Recipe]


def _relabelling(recipe: Recipe) -> Recipe:
    return replace(recipe, losses=(*recipe.losses, Relabelling()), rows=(*recipe.rows, RelabelledRows()))


def _forward_distillation(recipe: Recipe) -> Recipe:
    return replace(recipe, losses=(*recipe.losses, ForwardDistillation()))


def _entropy(recipe: Recipe) -> Recipe:
    return replace(recipe, losses=(*recipe.losses, EntropyBonus()))


def _baseline(recipe: Recipe) -> Recipe:
    return replace(recipe, advantage=RaisedBaseline())


def _allocation(recipe: Recipe) -> Recipe:
    return replace(recipe, allocation=BySignal())


def _gate(recipe: Recipe) -> Recipe:
    return replace(recipe, allocation=ByNeed())


ADDITIONS: Mapping[str, Addition] = {
    "relabelling": _relabelling,
    "forward_distillation": _forward_distillation,
    "entropy": _entropy,
    "baseline": _baseline,
    "allocation": _allocation,
    "gate": _gate,
}
"""By the names that follow a plus sign."""

_ALLOCATIONS = ("allocation", "gate")


def add(recipe: Recipe, names: list[str]) -> Recipe:
    """Adds to a recipe, in order.

    Args:
        recipe: What is added to.
        names: Of the additions.

    Returns:
        A recipe named ``<recipe>+<name>+...``.

    Raises:
        UnknownNameError: No such addition.
        ConfigError: Two of them do not go together.
    """
    for name in names:
        if name not in ADDITIONS:
            raise unknown_name("addition to a recipe", name, ADDITIONS)
    recipe = replace(recipe, name="+".join([recipe.name, *names]))
    # Who sees the skill comes first: other additions are refused where it would leave them without effect.
    for name in sorted(names, key=lambda name: name not in _ALLOCATIONS):
        recipe = replace(ADDITIONS[name](recipe), summary=f"{recipe.summary} With {name}.")
    return recipe
