"""GRPO with the skills in every training prompt, and no curriculum."""

from __future__ import annotations

from trainers.advantages import Grpo
from trainers.recipes.parts.allocation import Always
from trainers.recipes.parts.curriculum import Internalization, Pruning
from trainers.recipes.recipe import Recipe

__all__ = ["RECIPE"]

RECIPE = Recipe(
    name="skill_grpo",
    summary="GRPO with the skills in every training prompt.",
    allocation=Always(),
    curriculum=Internalization(pruning=Pruning(retire_by=())),
    advantage=Grpo(),
)
