"""Ablation: a group is wholly with or wholly without the skill, so the contrast compares different tasks."""

from __future__ import annotations

from trainers.recipes.recipe import Preset

__all__ = ["PRESET"]

PRESET = Preset(
    name="no_pairing",
    summary="SkillC without pairs: whole groups draw one condition, in the share the gate asks for.",
    allocation="drawn",
)
