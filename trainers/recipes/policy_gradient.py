"""Policy gradients, without a teacher and with one: GRPO and its relatives, and self-distillation."""

from __future__ import annotations

from trainers.advantages.group_baselines import Rloo
from trainers.advantages.per_step import Gigpo, Ppo
from trainers.losses.distribution_distillation import DistributionDistillation
from trainers.losses.policy_gradient import ClippedPolicyGradient, HindsightPolicyGradient, TeacherSizedPolicyGradient
from trainers.losses.self_distillation import GrpoOpsd, Opsd, Sdar, SkillSd
from trainers.losses.value import Value
from trainers.recipes.parts.allocation import Always, Half
from trainers.recipes.parts.rows import HindsightRows
from trainers.recipes.recipe import Recipe

GRPO = Recipe("grpo", "GRPO, no skill in any prompt.")
SKILL_GRPO = Recipe("skill_grpo", "GRPO with the skills in every training prompt.", allocation=Always())
HALF_SKILL_GRPO = Recipe("half_skill_grpo", "GRPO with the skills in half of each group's prompts.", allocation=Half())

# RLOO (Ahmadian et al. 2024, arXiv 2402.14740): the mean return of the task's other rollouts as a baseline. The
# released code of the agents' line takes the mean over step samples; here it is over trajectories.
RLOO = Recipe("rloo", "RLOO: leave-one-out baseline, no skill in any prompt.", advantage=Rloo())

# GiGPO (Feng et al. 2025, arXiv 2505.10978): groups of episodes, and in them of steps at the same observation.
GIGPO = Recipe("gigpo", "GiGPO: advantages of episodes and of steps, no skill in any prompt.", advantage=Gigpo())

# PPO (Schulman et al. 2017, arXiv 1707.06347) with a critic on the policy's own hidden states. The published runs
# play many tasks once each (tasks_per_step=64 group_size=1) and give the critic a backbone and a learning rate of its
# own; here both share the backbone, and the head learns at the policy's rate.
PPO = Recipe(
    "ppo",
    "PPO: a critic, GAE and a clipped value loss, no skill in any prompt.",
    advantage=Ppo(),
    losses=(ClippedPolicyGradient(), Value()),
)

# OPSD (arXiv 2601.18734) in its sampled-token form without a gate: no reward. The loss per token is 0.01 times the gap.
# Its expected gradient on the policy's own samples is zero but for the 1/T weighting. SDAR's scripts for OPSD are
# another method: its gated loss (sharpness 5), no policy gradient, and a KL penalty of 0.01 or 0.001.
OPSD = Recipe("opsd", "OPSD: self-distillation of sampled tokens alone, no policy gradient.", losses=(Opsd(),))

# The same beside GRPO, as in the comparison of SDAR (arXiv 2605.15155).
GRPO_OPSD = Recipe(
    "grpo_opsd", "GRPO and self-distillation of sampled tokens.", losses=(ClippedPolicyGradient(), GrpoOpsd())
)

# OPSD over whole distributions: the generalised Jensen-Shannon divergence on sampled tokens.
OPSD_JSD = Recipe(
    "opsd_jsd",
    "OPSD: Jensen-Shannon self-distillation of whole distributions, no policy gradient.",
    losses=(DistributionDistillation(coefficient=1.0),),
)

# SDAR (arXiv 2605.15155): gated by how much the policy with the skill likes a token.
SDAR = Recipe("sdar", "SDAR: GRPO and gated self-distillation.", losses=(ClippedPolicyGradient(), Sdar()))

# Skill-SD (arXiv 2604.10674). The paper writes its skills from the policy's own trajectories and chooses among them
# by a bandit; here, as in SDAR's re-implementation, the skills are the library's.
SKILL_SD = Recipe(
    "skill_sd",
    "Skill-SD: GRPO and reverse-divergence self-distillation.",
    losses=(ClippedPolicyGradient(), SkillSd()),
)

# RLSD (arXiv 2604.03128): the reward gives an advantage its direction, the policy with the skill its size.
RLSD = Recipe(
    "rlsd",
    "RLSD: GRPO advantages sized per token by the policy with the skill.",
    losses=(TeacherSizedPolicyGradient(),),
)

# OPID (arXiv 2606.26790). The paper's language model writes one skill per episode and up to five for single steps,
# the released code letting a step's skill take the episode's place; here one lesson per episode is abstracted from
# the commands. Whether the paper divides the group's advantage by its standard deviation is unsure; here it is
# GRPO's.
OPID = Recipe(
    "opid",
    "OPID: GRPO with a hindsight teacher in the advantage.",
    losses=(HindsightPolicyGradient(),),
    rows=(HindsightRows(),),
)

SELF_DISTILLATION = (OPSD, GRPO_OPSD, OPSD_JSD, SDAR, SKILL_SD, RLSD, OPID)
RECIPES = (GRPO, SKILL_GRPO, HALF_SKILL_GRPO, RLOO, GIGPO, PPO, *SELF_DISTILLATION)
