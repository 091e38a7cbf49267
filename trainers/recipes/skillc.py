"""SkillC to the letter of its equations."""

from __future__ import annotations

from trainers.recipes.recipe import Preset

__all__ = ["PRESET"]

PRESET = Preset(
    name="skillc",
    summary="SkillC: paired groups, contrastive skill credit assignment, internalisation curriculum.",
)
