"""The policy with the skill, or with a lesson, teaches the policy without: by sampled token or by distribution."""

from __future__ import annotations

from dataclasses import replace

from trainers.losses.distribution_distillation import DistributionDistillation
from trainers.losses.policy_gradient import ClippedPolicyGradient, HindsightPolicyGradient, TeacherSizedPolicyGradient
from trainers.losses.self_distillation import GrpoOpsd, Opsd, Sdar, SkillSd
from trainers.recipes.parts.rows import HindsightRows
from trainers.recipes.policy_gradient import GRPO

__all__ = ["RECIPES"]

# OPSD (arXiv 2601.18734) in its sampled-token form: no reward. The loss per token is 0.01 times the gap, as in SDAR's
# released code. Its expected gradient on the policy's own samples is zero but for the 1/T weighting.
OPSD = replace(
    GRPO,
    name="opsd",
    summary="OPSD: self-distillation of sampled tokens alone, no policy gradient.",
    losses=(Opsd(),),
)

# The same beside GRPO, as in the comparison of SDAR (arXiv 2605.15155).
GRPO_OPSD = replace(
    GRPO,
    name="grpo_opsd",
    summary="GRPO and self-distillation of sampled tokens.",
    losses=(ClippedPolicyGradient(), GrpoOpsd()),
)

# OPSD over whole distributions: the generalised Jensen-Shannon divergence on sampled tokens.
OPSD_JSD = replace(
    GRPO,
    name="opsd_jsd",
    summary="OPSD: Jensen-Shannon self-distillation of whole distributions, no policy gradient.",
    losses=(DistributionDistillation(coefficient=1.0),),
)

# SDAR (arXiv 2605.15155): gated by how much the policy with the skill likes a token.
SDAR = replace(
    GRPO,
    name="sdar",
    summary="SDAR: GRPO and gated self-distillation.",
    losses=(ClippedPolicyGradient(), Sdar()),
)

# Skill-SD (arXiv 2604.10674). The paper writes its skills from the policy's own trajectories and chooses among them
# by a bandit; here, as in SDAR's re-implementation, the skills are the library's.
SKILL_SD = replace(
    GRPO,
    name="skill_sd",
    summary="Skill-SD: GRPO and reverse-divergence self-distillation.",
    losses=(ClippedPolicyGradient(), SkillSd()),
)

# RLSD (arXiv 2604.03128): the reward gives an advantage its direction, the policy with the skill its size.
RLSD = replace(
    GRPO,
    name="rlsd",
    summary="RLSD: GRPO advantages sized per token by the policy with the skill.",
    losses=(TeacherSizedPolicyGradient(),),
)

# OPID (arXiv 2606.26790). The paper's language model writes one skill per episode and up to five for single steps,
# the released code letting a step's skill take the episode's place; here one lesson per episode is abstracted from
# the commands. Whether the paper divides the group's advantage by its standard deviation is unsure; here it is
# GRPO's.
OPID = replace(
    GRPO,
    name="opid",
    summary="OPID: GRPO with a hindsight teacher in the advantage.",
    losses=(HindsightPolicyGradient(),),
    rows=(HindsightRows(),),
)

RECIPES = (OPSD, GRPO_OPSD, OPSD_JSD, SDAR, SKILL_SD, RLSD, OPID)
