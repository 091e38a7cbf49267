"""Guarded imitation: act with the skill, learn with it by policy gradient, and imitate without it what was won.

Every rollout sees the skill. The clipped policy gradient acts behind the prompt that was played, and keeps what works
with the skill; each won episode is also imitated behind the prompt without the skill,
``-(1/N) sum_{R=1} (1/T) sum_t log pi(a | h0)``. There are no pairs, no curriculum and no contrast. The nearest
published methods are hint-guided training with the hint removed (arXiv 2510.01375) and pi-Distill (arXiv 2602.04942).
"""

from __future__ import annotations

from dataclasses import replace

from trainers.losses import ClippedPolicyGradient
from trainers.losses.relabelling import Relabelling
from trainers.recipes.parts.relabelled_rows import WonRows
from trainers.recipes.skill_grpo import RECIPE as SKILL_GRPO

__all__ = ["RECIPE"]

RECIPE = replace(
    SKILL_GRPO,
    name="guarded_imitation",
    summary="GRPO with the skill in every prompt; won episodes are imitated without it.",
    losses=(ClippedPolicyGradient(), Relabelling()),
    rows=(WonRows(),),
)
