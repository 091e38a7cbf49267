"""Every rollout sees the skill until a fixed moment, none afterwards: a control for schedules that ask the policy."""

from __future__ import annotations

from dataclasses import replace

from trainers.recipes.parts.curriculum import Pruning, SkillBudget
from trainers.recipes.skill0 import RECIPE as SKILL0

__all__ = ["RECIPE"]

RECIPE = replace(
    SKILL0,
    name="static_withdrawal",
    summary="GRPO with the skill in every prompt, and after half of training in none.",
    curriculum=SkillBudget(pruning=Pruning(capacity=(1_000, 0), retire_by=("budget",))),
)
"""The skills go at the first validation of the second half (``capacity``: stages of training)."""
