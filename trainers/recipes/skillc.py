"""SkillC to the letter of its equations, its six ablations, and schedules that take the skill away by other rules.

``no_pairing`` leaves the correction as it is: C(x) follows the contrast between a type's injected and skill-free groups
of an update. The paper names the ablation without saying what becomes of C(x) where no task has both branches; with
``correction_weight=0`` the correction is 0 as well. ``no_pruning`` is SkillC itself where SkillC never prunes, as in
WebShop.
"""

from __future__ import annotations

from dataclasses import replace

from trainers.advantages.csca import Csca
from trainers.advantages.group_baselines import Grpo
from trainers.losses.policy_gradient import ClippedPolicyGradient
from trainers.recipes.parts.allocation import Paired, Whole
from trainers.recipes.parts.curriculum import ContrastAverage, Internalization, Pruning, SkillBudget
from trainers.recipes.recipe import Recipe

__all__ = ["RECIPES", "SKILLC"]

SKILLC = Recipe(
    name="skillc",
    summary="SkillC: paired groups, contrastive skill credit assignment, internalisation curriculum.",
    allocation=Paired(),
    curriculum=Internalization(),
    contrast=ContrastAverage(),
    advantage=Csca(),
    losses=(ClippedPolicyGradient(),),
)

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
    name="skill0",
    summary="Skill0: whole groups with the skill while it helps and the budget lasts, GRPO advantages.",
    allocation=Whole(),
    curriculum=SkillBudget(pruning=Pruning(alpha_val=0.0)),
    advantage=Grpo(),
)

# A control for schedules that ask the policy: the skills go with the second half of training (capacity: its stages).
STATIC_WITHDRAWAL = replace(
    SKILL0,
    name="static_withdrawal",
    summary="GRPO with the skill in every prompt, and after half of training in none.",
    curriculum=SkillBudget(pruning=Pruning(capacity=(1_000, 0), retire_by=("budget",))),
)

RECIPES = (SKILLC, *ABLATIONS, SKILL0, STATIC_WITHDRAWAL)
