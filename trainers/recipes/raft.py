"""Imitation of what was won without a skill: rejection sampling and fine-tuning, update by update.

RAFT, reward-ranked fine-tuning (Dong et al. 2023, arXiv 2304.06767), in the form of Xiong et al. 2025 (arXiv
2504.11343) with a reward of 0 or 1: every won rollout of the update is imitated. The control beside
``context_distillation``, which differs from it in the skill alone.
"""

from __future__ import annotations

from dataclasses import replace

from trainers.recipes.context_distillation import RECIPE as CONTEXT_DISTILLATION
from trainers.recipes.parts.allocation import Never

__all__ = ["RECIPE"]

RECIPE = replace(
    CONTEXT_DISTILLATION,
    name="raft",
    summary="Won episodes are imitated, no skill in any prompt; no policy gradient.",
    allocation=Never(),
)
