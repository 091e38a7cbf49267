"""SkillRL (arXiv 2602.08234): GRPO with a bank of skills that grows where training keeps failing.

The paper starts from a bank that a large language model wrote and from a fine-tuned policy, and sends failures of
validation tasks to that model. Here the bank starts with the library's skills, the policy is whatever ``model`` names,
and failures of training tasks alone are looked at.
"""

from __future__ import annotations

from dataclasses import replace

from trainers.memory import SkillRLMemory
from trainers.recipes.skill_grpo import RECIPE as SKILL_GRPO

__all__ = ["RECIPE"]

RECIPE = replace(
    SKILL_GRPO,
    name="skillrl",
    summary="SkillRL: GRPO with a growing skill bank in every prompt.",
    memory=SkillRLMemory(),
)
