"""Imitation alone: every rollout sees the skill, and the won ones are imitated without it.

Distilling a prompt into the weights by its own samples (Askell et al. 2021, arXiv 2112.00861; Snell et al. 2022, arXiv
2209.15189), kept to episodes that succeed. A control: what is left of contrastive relabelling without policy gradient,
without pairs and without a weight by contrast.
"""

from __future__ import annotations

from dataclasses import replace

from trainers.losses.relabelling import Relabelling
from trainers.recipes.parts.relabelled_rows import WonRows
from trainers.recipes.skill_grpo import RECIPE as SKILL_GRPO

__all__ = ["RECIPE"]

RECIPE = replace(
    SKILL_GRPO,
    name="context_distillation",
    summary="Won episodes with the skill are imitated without it; no policy gradient.",
    losses=(Relabelling(),),
    rows=(WonRows(),),
)
