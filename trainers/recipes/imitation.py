"""Won episodes are imitated behind the prompt without the skill, with a policy gradient or alone."""

from __future__ import annotations

from dataclasses import replace

from trainers.advantages.group_baselines import Grpo
from trainers.losses.policy_gradient import ClippedPolicyGradient
from trainers.losses.relabelling import Relabelling
from trainers.recipes.parts.adaptive_allocation import ByContrast
from trainers.recipes.parts.allocation import Never
from trainers.recipes.parts.rows import RelabelledRows, WonRows
from trainers.recipes.policy_gradient import SKILL_GRPO
from trainers.recipes.recipe import Recipe

__all__ = ["RECIPES"]

# Imitate without the skill what only the skill made possible, and let it fade with the gap; derived in
# docs/contrastive-relabelling.md.
CONTRASTIVE_RELABELLING = Recipe(
    name="contrastive_relabelling",
    summary="GRPO per condition; won episodes with the skill are imitated without it, by the contrast's weight.",
    allocation=ByContrast(),
    advantage=Grpo(group_by="condition"),
    losses=(ClippedPolicyGradient(), Relabelling()),
    rows=(RelabelledRows(discounted=False),),
)

# Guarded imitation: every rollout sees the skill. The clipped policy gradient acts behind the prompt that was played,
# and keeps what works with the skill; each won episode is also imitated behind the prompt without the skill, -(1/N)
# sum_{R=1} (1/T) sum_t log pi(a | h0). There are no pairs, no curriculum and no contrast. The nearest published
# methods are hint-guided training with the hint removed (arXiv 2510.01375) and pi-Distill (arXiv 2602.04942).
GUARDED_IMITATION = replace(
    SKILL_GRPO,
    name="guarded_imitation",
    summary="GRPO with the skill in every prompt; won episodes are imitated without it.",
    losses=(ClippedPolicyGradient(), Relabelling()),
    rows=(WonRows(),),
)

# Distilling a prompt into the weights by its own samples (Askell et al. 2021, arXiv 2112.00861; Snell et al. 2022,
# arXiv 2209.15189), kept to episodes that succeed. A control: what is left of contrastive relabelling without policy
# gradient, without pairs and without a weight by contrast.
CONTEXT_DISTILLATION = replace(
    SKILL_GRPO,
    name="context_distillation",
    summary="Won episodes with the skill are imitated without it; no policy gradient.",
    losses=(Relabelling(),),
    rows=(WonRows(),),
)

# RAFT, reward-ranked fine-tuning (Dong et al. 2023, arXiv 2304.06767), in the form of Xiong et al. 2025 (arXiv
# 2504.11343) with a reward of 0 or 1: the control that differs from context distillation in the skill alone.
RAFT = replace(
    CONTEXT_DISTILLATION,
    name="raft",
    summary="Won episodes are imitated, no skill in any prompt; no policy gradient.",
    allocation=Never(),
)

RECIPES = (CONTRASTIVE_RELABELLING, GUARDED_IMITATION, CONTEXT_DISTILLATION, RAFT)
