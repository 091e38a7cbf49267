"""GRPO without skills: the baseline that never sees one."""

from __future__ import annotations

from trainers.advantages import Grpo
from trainers.recipes.parts.allocation import Never
from trainers.recipes.parts.curriculum import Internalization, Pruning
from trainers.recipes.recipe import Recipe

__all__ = ["RECIPE"]

RECIPE = Recipe(
    name="grpo",
    summary="GRPO, no skill in any prompt.",
    allocation=Never(),
    curriculum=Internalization(pruning=Pruning(retire_by=())),
    advantage=Grpo(),
)
