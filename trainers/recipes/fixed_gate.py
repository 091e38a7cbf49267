"""Ablation: the gate is 0.5 whatever the gap, so n_plus stays at its minimum and the correction at half weight."""

from __future__ import annotations

from trainers.recipes.recipe import Preset

__all__ = ["PRESET"]

PRESET = Preset(
    name="fixed_gate",
    summary="SkillC with the gate fixed at 0.5.",
    gate=0.5,
)
