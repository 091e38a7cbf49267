"""Ablation: stream 2 normalises both branches of a task together."""

from __future__ import annotations

from trainers.recipes.recipe import Preset

__all__ = ["PRESET"]

PRESET = Preset(
    name="mixed_norm",
    summary="SkillC with stream 2 normalised over the task's whole group instead of per condition.",
    branch="mixed",
)
