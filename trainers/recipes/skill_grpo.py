"""GRPO with the skills in every training prompt, and no curriculum."""

from __future__ import annotations

from trainers.recipes.recipe import Preset

__all__ = ["PRESET"]

PRESET = Preset(
    name="skill_grpo",
    summary="GRPO with the skills in every training prompt.",
    allocation="always",
    advantage="grpo",
    retire_by=(),
)
