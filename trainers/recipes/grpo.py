"""GRPO without skills: the baseline that never sees one."""

from __future__ import annotations

from trainers.recipes.recipe import Preset

__all__ = ["PRESET"]

PRESET = Preset(
    name="grpo",
    summary="GRPO, no skill in any prompt.",
    allocation="never",
    advantage="grpo",
    retire_by=(),
)
