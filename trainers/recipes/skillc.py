"""SkillC to the letter of its equations."""

from __future__ import annotations

from trainers.recipes.recipe import Recipe

__all__ = ["RECIPE"]

RECIPE = Recipe(
    name="skillc",
    summary="SkillC: paired groups, contrastive skill credit assignment, internalisation curriculum.",
)
