"""Skill-SD (arXiv 2604.10674): GRPO and an importance-weighted reverse divergence to the policy with the skill.

The paper writes its skills from the policy's own trajectories and chooses among them by a bandit; here, as in SDAR's
re-implementation, the skills are the library's.
"""

from __future__ import annotations

from dataclasses import replace

from trainers.losses import ClippedPolicyGradient
from trainers.losses.self_distillation import SkillSd
from trainers.recipes.grpo import RECIPE as GRPO

__all__ = ["RECIPE"]

RECIPE = replace(
    GRPO,
    name="skill_sd",
    summary="Skill-SD: GRPO and reverse-divergence self-distillation.",
    losses=(ClippedPolicyGradient(), SkillSd()),
)
