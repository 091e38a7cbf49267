"""Skills that go: SkillC as published, its ablations, schedules, and imitation without the skill."""

from __future__ import annotations

from trainers.advantages.csca import Csca
from trainers.advantages.group_baselines import Grpo
from trainers.losses.policy_gradient import ClippedPolicyGradient
from trainers.losses.self_distillation import Relabelling
from trainers.recipes.parts.allocation import Always, ByContrast, Paired, Whole
from trainers.recipes.parts.curriculum import ContrastAverage, Internalization, Pruning, SkillBudget
from trainers.recipes.parts.rows import RelabelledRows, WonRows
from trainers.recipes.recipe import Recipe

SKILLC = Recipe(
    "skillc",
    "SkillC: paired groups, contrastive skill credit assignment, internalisation curriculum.",
    allocation=Paired(),
    curriculum=Internalization(),
    contrast=ContrastAverage(),
    advantage=Csca(),
)

# no_pairing leaves the correction as it is: C(x) follows the contrast between a type's injected and skill-free groups;
# the paper does not say what becomes of it there, and with correction_weight=0 it is 0. no_pruning is SkillC itself
# where SkillC never prunes, as in WebShop.
ABLATIONS = (
    SKILLC.variant(
        "no_pairing",
        "SkillC without pairs: whole groups draw one condition, in the share the gate asks for.",
        allocation="drawn",
    ),
    SKILLC.variant(
        "mixed_norm",
        "SkillC with stream 2 normalised over the task's whole group instead of per condition.",
        branch="mixed",
    ),
    SKILLC.variant("fixed_gate", "SkillC with the gate fixed at 0.5.", gate=0.5),
    SKILLC.variant("no_pruning", "SkillC without retirement.", retire_by=()),
    SKILLC.variant("fixed_rho", "SkillC with half of each active group skill-injected.", rho=0.5),
    SKILLC.variant("high_init", "SkillC with every smoothed gap starting at 0.3.", initial_gap=0.3),
)

# Skill0 after its description: a shrinking budget of skills, ranked by the gap of the last validation alone, which is
# not smoothed.
SKILL0 = Recipe(
    "skill0",
    "Skill0: whole groups with the skill while it helps and the budget lasts, GRPO advantages.",
    allocation=Whole(),
    curriculum=SkillBudget(pruning=Pruning(alpha_val=0.0)),
)

# A control for schedules that ask the policy: the skills go with the second half of training (capacity: its stages).
STATIC_WITHDRAWAL = Recipe(
    "static_withdrawal",
    "GRPO with the skill in every prompt, and after half of training in none.",
    allocation=Whole(),
    curriculum=SkillBudget(pruning=Pruning(capacity=(1_000, 0), retire_by=("budget",))),
)

# Imitate without the skill what only the skill made possible, and let it fade with the gap; derived in
# docs/contrastive-relabelling.md.
CONTRASTIVE_RELABELLING = Recipe(
    "contrastive_relabelling",
    "GRPO per condition; won episodes with the skill are imitated without it, by the contrast's weight.",
    allocation=ByContrast(),
    advantage=Grpo(group_by="condition"),
    losses=(ClippedPolicyGradient(), Relabelling()),
    rows=(RelabelledRows(discounted=False),),
)

# Guarded imitation: every rollout sees the skill. The clipped policy gradient acts behind the prompt that was played,
# and keeps what works with the skill; each won episode is also imitated behind the prompt without the skill, -(1/N)
# sum_{R=1} (1/T) sum_t log pi(a | h0). There are no pairs, no curriculum and no contrast. The nearest published
# methods are hint-guided training with the hint removed (arXiv 2510.01375) and pi-Distill (arXiv 2602.04942).
GUARDED_IMITATION = Recipe(
    "guarded_imitation",
    "GRPO with the skill in every prompt; won episodes are imitated without it.",
    allocation=Always(),
    losses=(ClippedPolicyGradient(), Relabelling()),
    rows=(WonRows(),),
)

# Distilling a prompt into the weights by its own samples (Askell et al. 2021, arXiv 2112.00861; Snell et al. 2022,
# arXiv 2209.15189), kept to episodes that succeed. A control: what is left of contrastive relabelling without policy
# gradient, without pairs and without a weight by contrast.
CONTEXT_DISTILLATION = Recipe(
    "context_distillation",
    "Won episodes with the skill are imitated without it; no policy gradient.",
    allocation=Always(),
    losses=(Relabelling(),),
    rows=(WonRows(),),
)

# RAFT, reward-ranked fine-tuning (Dong et al. 2023, arXiv 2304.06767), in the form of Xiong et al. 2025 (arXiv
# 2504.11343) with a reward of 0 or 1: the control that differs from context distillation in the skill alone.
RAFT = Recipe(
    "raft",
    "Won episodes are imitated, no skill in any prompt; no policy gradient.",
    losses=(Relabelling(),),
    rows=(WonRows(),),
)

IMITATION = (CONTRASTIVE_RELABELLING, GUARDED_IMITATION, CONTEXT_DISTILLATION, RAFT)
RECIPES = (SKILLC, *ABLATIONS, SKILL0, STATIC_WITHDRAWAL, *IMITATION)
