"""Skill1 (arXiv 2605.06130): one policy selects, uses and distils skills.

The paper rewards the selection and the distillation too (weights 0.3 each; the ranking reward's form is unsure). Here
both follow rules, and only the use is trained.
"""

from __future__ import annotations

from dataclasses import replace

from trainers.memory import Skill1Memory
from trainers.recipes.skill_grpo import RECIPE as SKILL_GRPO

__all__ = ["RECIPE"]

RECIPE = replace(
    SKILL_GRPO,
    name="skill1",
    summary="Skill1: one selected skill in every prompt, new ones distilled from what worked.",
    memory=Skill1Memory(),
)
