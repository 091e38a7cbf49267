"""Skill0 after its description: a shrinking budget of skills, ranked by the unsmoothed gap, plain GRPO advantages."""

from __future__ import annotations

from trainers.advantages import Grpo
from trainers.recipes.parts.allocation import Whole
from trainers.recipes.parts.curriculum import Pruning, SkillBudget
from trainers.recipes.recipe import Recipe

__all__ = ["RECIPE"]

RECIPE = Recipe(
    name="skill0",
    summary="Skill0: whole groups with the skill while it helps and the budget lasts, GRPO advantages.",
    allocation=Whole(),
    # No smoothing: the gap of the last validation alone ranks and drops.
    curriculum=SkillBudget(pruning=Pruning(alpha_val=0.0)),
    advantage=Grpo(),
)
