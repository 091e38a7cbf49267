"""Ablation: no type ever retires, neither by its gap nor by the budget."""

from __future__ import annotations

from trainers.recipes.recipe import Preset

__all__ = ["PRESET"]

PRESET = Preset(
    name="no_pruning",
    summary="SkillC without retirement.",
    retire_by=(),
)
