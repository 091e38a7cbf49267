"""GiGPO (Feng et al. 2025, arXiv 2505.10978): groups of episodes, and within them of steps at the same observation."""

from __future__ import annotations

from dataclasses import replace

from trainers.advantages.gigpo import Gigpo
from trainers.recipes.grpo import RECIPE as GRPO

__all__ = ["RECIPE"]

RECIPE = replace(
    GRPO,
    name="gigpo",
    summary="GiGPO: advantages of episodes and of steps, no skill in any prompt.",
    advantage=Gigpo(),
)
