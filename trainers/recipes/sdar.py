"""SDAR (arXiv 2605.15155): GRPO and self-distillation gated by how much the policy with the skill likes a token."""

from __future__ import annotations

from dataclasses import replace

from trainers.losses import ClippedPolicyGradient
from trainers.losses.self_distillation import Sdar
from trainers.recipes.grpo import RECIPE as GRPO

__all__ = ["RECIPE"]

RECIPE = replace(
    GRPO,
    name="sdar",
    summary="SDAR: GRPO and gated self-distillation.",
    losses=(ClippedPolicyGradient(), Sdar()),
)
