"""GRPO with OPSD's sampled-token loss beside it, as in the comparison of SDAR (arXiv 2605.15155)."""

from __future__ import annotations

from dataclasses import replace

from trainers.losses import ClippedPolicyGradient
from trainers.losses.self_distillation import GrpoOpsd
from trainers.recipes.grpo import RECIPE as GRPO

__all__ = ["RECIPE"]

RECIPE = replace(
    GRPO,
    name="grpo_opsd",
    summary="GRPO and self-distillation of sampled tokens.",
    losses=(ClippedPolicyGradient(), GrpoOpsd()),
)
