"""The built-in methods: policy gradients, self-distillation, skills that go, and memories of skills."""

from __future__ import annotations

from trainers.advantages.csca import Csca
from trainers.advantages.group_baselines import Grpo, Rloo, Utilisation
from trainers.advantages.per_step import Gigpo, Ppo
from trainers.losses.distillation import (
    DistributionDistillation,
    GrpoOpsd,
    GuidedDistillation,
    Opsd,
    Relabelling,
    Sdar,
    SkillSd,
)
from trainers.losses.policy_gradient import (
    ClippedPolicyGradient,
    HindsightPolicyGradient,
    PrivilegedStudent,
    PrivilegedTeacher,
    TeacherSizedPolicyGradient,
    Value,
)
from trainers.memory import D2SkillMemory, EvolveRMemory, GuidedLibrary, RetroAgentMemory, Skill1Memory, SkillRLMemory
from trainers.recipes.parts.allocation import Always, Annealed, ByContrast, ByDifficulty, Half, Paired, Whole
from trainers.recipes.parts.curriculum import ContrastAverage, Internalization, Pruning, SkillBudget
from trainers.recipes.parts.rows import GuidedRows, HindsightRows, PlainRows, RelabelledRows, WonRows
from trainers.recipes.recipe import Recipe

# Policy gradients, without a teacher and with one: GRPO and its relatives, and self-distillation ----------------------

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

_POLICY_GRADIENTS = (GRPO, SKILL_GRPO, HALF_SKILL_GRPO, RLOO, GIGPO, PPO)
_SELF_DISTILLATION = (OPSD, GRPO_OPSD, OPSD_JSD, SDAR, SKILL_SD, RLSD, OPID)

# Skills that go: SkillC as published, its ablations, schedules, and imitation without the skill -----------------------

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
_ABLATIONS = (
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

# Imitate without the skill what only the skill made possible, and let it fade with the gap: guarded imitation's paired
# form (docs/guarded-imitation.md).
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
# sum_{R=1} (1/T) sum_t log pi(a | h0). Derived in docs/guarded-imitation.md. The nearest published methods are
# hint-guided training with the hint removed (arXiv 2510.01375) and pi-Distill (arXiv 2602.04942).
GUARDED_IMITATION = Recipe(
    "guarded_imitation",
    "GRPO with the skill in every prompt; won episodes are imitated without it.",
    allocation=Always(),
    losses=(ClippedPolicyGradient(), Relabelling()),
    rows=(WonRows(),),
)

# Guarded imitation with practice without the skill, more of it as the gap closes; rollouts compete within a task and
# condition. Study files call it guarded_imitation+annealed with group_by=condition.
ANNEALED_IMITATION = Recipe(
    "annealed_imitation",
    "guarded_imitation with ever fewer rollouts that see the skill, GRPO per condition.",
    allocation=Annealed(),
    advantage=Grpo(group_by="condition"),
    losses=GUARDED_IMITATION.losses,
    rows=GUARDED_IMITATION.rows,
)

# pi-Distill (arXiv 2602.04942), the nearest published method: the policy with the skill plays, and learns for itself
# and for the policy without, alpha J_T + (1 - alpha) J_S (the losses' coefficients); J_S weighs by the ratio of both
# where guarded imitation imitates what was won. After the authors' own summary of the objective; how they credit a
# rollout, whether they clip, and their b are not known here: GRPO's advantages and clipping, a truncated ratio, the
# divergences token by token, and b = 0.25 as a later implementation has it.
PI_DISTILL = Recipe(
    "pi_distill",
    "pi-Distill: the policy with the skill and the one without learn from the former's rollouts.",
    allocation=Always(),
    losses=(PrivilegedTeacher(), PrivilegedStudent()),
    rows=(PlainRows(),),
)

# Distilling a prompt into the weights by its own samples (Askell et al. 2021, arXiv 2112.00861; Snell et al. 2022,
# arXiv 2209.15189), kept to episodes that succeed. A control: what is left of guarded imitation without its
# policy gradient.
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

_IMITATION = (CONTRASTIVE_RELABELLING, GUARDED_IMITATION, ANNEALED_IMITATION, PI_DISTILL, CONTEXT_DISTILLATION, RAFT)

# Skills that are chosen, written or routed while the policy trains ----------------------------------------------------

# SkillRL (arXiv 2602.08234). The paper starts from a bank that a large language model wrote and from a fine-tuned
# policy, and sends failures of validation tasks to that model. Here the bank starts with the library's skills, the
# policy is whatever model names, and failures of training tasks alone are looked at.
SKILLRL = Recipe(
    "skillrl",
    "SkillRL: GRPO with a growing skill bank in every prompt.",
    allocation=Always(),
    memory=SkillRLMemory(),
)

# EvolveR (arXiv 2510.16079): principles distilled from the policy's own episodes, kept while they help. The published
# code is for question answering; its prompts, its fine-tuned start and its rewards for format and retrieval are left
# out. Figures for ALFWorld and WebShop are second-hand.
EVOLVER = Recipe(
    "evolver",
    "EvolveR: scored principles in every prompt.",
    allocation=Always(),
    memory=EvolveRMemory(),
)

# D2Skill (arXiv 2603.28716): half of each group sees skills whose utility is measured against the other half. The
# paper keeps three task and three step skills in a prompt; here there are task skills alone, as many as method.show.
# The hindsight bonus, an episode's success minus the skill-free half's, is added to every return, as in the released
# code. Where returns are successes that is a shift and a scale within a group, which GRPO's normalisation takes out
# again; with graded returns it counts, and with method.hindsight_for=injected, too.
D2SKILL = Recipe(
    "d2skill",
    "D2Skill: paired groups, a bank written from failures, utilities measured in pairs.",
    allocation=Half(),
    memory=D2SkillMemory(),
)

# RetroAgent (arXiv 2603.08561): lessons from every episode, and a reward for going further than before. The paper
# trains the reflection turn too in one of its variants; here it is not.
RETROAGENT = Recipe(
    "retroagent",
    "RetroAgent: lessons from every episode for half of a group, an intrinsic reward.",
    allocation=Half(),
    memory=RetroAgentMemory(),
)

# Skill1 (arXiv 2605.06130): one policy selects, uses and distils skills. The paper rewards the selection and the
# distillation too (weights 0.3 each; the ranking reward's form is unsure). Here both follow rules, and only the use
# is trained.
SKILL1 = Recipe(
    "skill1",
    "Skill1: one selected skill in every prompt, new ones distilled from what worked.",
    allocation=Always(),
    memory=Skill1Memory(),
)

# Skill0.5 (arXiv 2605.28424): general skills are internalised, specific ones stay in the prompt. Hard types get
# guided rollouts with the general skills too, whose successes are distilled behind the usual prompt; easy types get
# skill-free probes, and credit for doing better than those. The paper routes single tasks, plays the guided rollouts
# after the plain ones, retrieves specific skills by embedding and starts from a fine-tuned policy. Its code compares
# that credit with the last five updates' instead of the update's own, leaves probes and guided rollouts out of the KL
# penalty, and distils in an optimiser step of its own, where here the distilled rows are a share of the update's.
SKILL05 = Recipe(
    "skill05",
    "Skill0.5: general skills distilled, specific ones kept and credited.",
    allocation=ByDifficulty(),
    advantage=Utilisation(),
    losses=(ClippedPolicyGradient(), GuidedDistillation()),
    rows=(GuidedRows(),),
    memory=GuidedLibrary(),
)

_MEMORIES = (SKILLRL, EVOLVER, D2SKILL, RETROAGENT, SKILL1, SKILL05)
_INTERNALISATION = (SKILLC, *_ABLATIONS, SKILL0, STATIC_WITHDRAWAL, *_IMITATION)
RECIPES = (*_POLICY_GRADIENTS, *_SELF_DISTILLATION, *_INTERNALISATION, *_MEMORIES)
