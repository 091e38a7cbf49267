"""Methods whose skills are chosen, written or routed while the policy trains."""

from __future__ import annotations

from trainers.advantages.group_baselines import Utilisation
from trainers.losses.distribution_distillation import GuidedDistillation
from trainers.losses.policy_gradient import ClippedPolicyGradient
from trainers.memory import D2SkillMemory, EvolveRMemory, GuidedLibrary, RetroAgentMemory, Skill1Memory, SkillRLMemory
from trainers.recipes.parts.allocation import Always, ByDifficulty, Half
from trainers.recipes.parts.rows import GuidedRows
from trainers.recipes.recipe import Recipe

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

RECIPES = (SKILLRL, EVOLVER, D2SKILL, RETROAGENT, SKILL1, SKILL05)
