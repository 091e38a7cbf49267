"""Skill0.5 (arXiv 2605.28424): general skills are internalised, specific ones stay in the prompt.

Hard types get guided rollouts with the general skills too, whose successes are distilled behind the usual prompt; easy
types get skill-free probes, and credit for doing better than those. The paper routes single tasks, plays the guided
rollouts after the plain ones, retrieves specific skills by embedding and starts from a fine-tuned policy.
"""

from __future__ import annotations

from dataclasses import replace

from trainers.advantages.group_baselines import Utilisation
from trainers.losses import ClippedPolicyGradient
from trainers.losses.distribution_distillation import GuidedDistillation
from trainers.memory import GuidedLibrary
from trainers.recipes.grpo import RECIPE as GRPO
from trainers.recipes.parts.difficulty_allocation import ByDifficulty
from trainers.recipes.parts.guided_rows import GuidedRows

__all__ = ["RECIPE"]

RECIPE = replace(
    GRPO,
    name="skill05",
    summary="Skill0.5: general skills distilled, specific ones kept and credited.",
    allocation=ByDifficulty(),
    advantage=Utilisation(),
    losses=(ClippedPolicyGradient(), GuidedDistillation()),
    rows=(GuidedRows(),),
    memory=GuidedLibrary(),
)
