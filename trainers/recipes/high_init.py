"""Ablation: the smoothed gaps start at 0.3, so training begins with wide-open gates."""

from __future__ import annotations

from trainers.recipes.recipe import Preset

__all__ = ["PRESET"]

PRESET = Preset(
    name="high_init",
    summary="SkillC with every smoothed gap starting at 0.3.",
    initial_gap=0.3,
)
