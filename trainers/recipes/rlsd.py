"""RLSD (arXiv 2604.03128): the reward gives an advantage its direction, the policy with the skill its size."""

from __future__ import annotations

from dataclasses import replace

from trainers.losses.policy_gradient import TeacherSizedPolicyGradient
from trainers.recipes.grpo import RECIPE as GRPO

__all__ = ["RECIPE"]

RECIPE = replace(
    GRPO,
    name="rlsd",
    summary="RLSD: GRPO advantages sized per token by the policy with the skill.",
    losses=(TeacherSizedPolicyGradient(),),
)
