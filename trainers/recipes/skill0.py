"""Skill0 after its description: a shrinking budget of skills, ranked by the unsmoothed gap, plain GRPO advantages."""

from __future__ import annotations

from trainers.recipes.recipe import Preset

__all__ = ["PRESET"]

PRESET = Preset(
    name="skill0",
    summary="Skill0: whole groups with the skill while it helps and the budget lasts, GRPO advantages.",
    allocation="whole",
    advantage="grpo",
    # No smoothing: the gap of the last validation alone ranks and drops.
    alpha_val=0.0,
)
