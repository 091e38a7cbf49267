"""GRPO over groups of which half see the skill: the common ground of methods that compare both halves."""

from __future__ import annotations

from dataclasses import replace

from trainers.recipes.grpo import RECIPE as GRPO
from trainers.recipes.parts.allocation import Paired
from trainers.recipes.parts.curriculum import Gating, Internalization, Pruning

__all__ = ["RECIPE"]

RECIPE = replace(
    GRPO,
    name="half_skill_grpo",
    summary="GRPO with the skills in half of each group's prompts.",
    allocation=Paired(),
    curriculum=Internalization(gating=Gating(rho=0.5), pruning=Pruning(retire_by=())),
)
