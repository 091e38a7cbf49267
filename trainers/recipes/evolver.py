"""EvolveR (arXiv 2510.16079): principles distilled from the policy's own episodes, kept while they help.

The published code is for question answering; its prompts, its fine-tuned start and its rewards for format and
retrieval are left out. Figures for ALFWorld and WebShop are second-hand.
"""

from __future__ import annotations

from dataclasses import replace

from trainers.memory import EvolveRMemory
from trainers.recipes.skill_grpo import RECIPE as SKILL_GRPO

__all__ = ["RECIPE"]

RECIPE = replace(
    SKILL_GRPO,
    name="evolver",
    summary="EvolveR: scored principles in every prompt.",
    memory=EvolveRMemory(),
)
