"""Ablation: half of every active group sees the skill (4 + 4 of 8)."""

from __future__ import annotations

from trainers.recipes.recipe import Preset

__all__ = ["PRESET"]

PRESET = Preset(
    name="fixed_rho",
    summary="SkillC with half of each active group skill-injected.",
    rho=0.5,
)
