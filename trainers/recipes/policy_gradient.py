"""Policy gradients without a teacher: GRPO, with no skill, with skills, with skills in half, and its relatives."""

from __future__ import annotations

from dataclasses import replace

from trainers.advantages.critic import Ppo
from trainers.advantages.gigpo import Gigpo
from trainers.advantages.group_baselines import Grpo, Rloo
from trainers.losses.policy_gradient import ClippedPolicyGradient
from trainers.losses.value import Value
from trainers.recipes.parts.allocation import Always, Half, Never
from trainers.recipes.recipe import Recipe

__all__ = ["GRPO", "HALF_SKILL_GRPO", "RECIPES", "SKILL_GRPO"]

GRPO = Recipe(
    name="grpo",
    summary="GRPO, no skill in any prompt.",
    allocation=Never(),
    advantage=Grpo(),
)

SKILL_GRPO = replace(
    GRPO,
    name="skill_grpo",
    summary="GRPO with the skills in every training prompt.",
    allocation=Always(),
)

HALF_SKILL_GRPO = replace(
    GRPO,
    name="half_skill_grpo",
    summary="GRPO with the skills in half of each group's prompts.",
    allocation=Half(),
)

# RLOO (Ahmadian et al. 2024, arXiv 2402.14740): the mean return of the task's other rollouts as a baseline. The
# released code of the agents' line takes the mean over step samples; here it is over trajectories.
RLOO = replace(
    GRPO,
    name="rloo",
    summary="RLOO: leave-one-out baseline, no skill in any prompt.",
    advantage=Rloo(),
)

# GiGPO (Feng et al. 2025, arXiv 2505.10978): groups of episodes, and in them of steps at the same observation.
GIGPO = replace(
    GRPO,
    name="gigpo",
    summary="GiGPO: advantages of episodes and of steps, no skill in any prompt.",
    advantage=Gigpo(),
)

# PPO (Schulman et al. 2017, arXiv 1707.06347) with a critic on the policy's own hidden states. The published runs
# play many tasks once each (tasks_per_step=64 group_size=1) and give the critic a backbone and a learning rate of its
# own; here both share the backbone, and the head learns at the policy's rate.
PPO = replace(
    GRPO,
    name="ppo",
    summary="PPO: a critic, GAE and a clipped value loss, no skill in any prompt.",
    advantage=Ppo(),
    losses=(ClippedPolicyGradient(), Value()),
)

RECIPES = (GRPO, SKILL_GRPO, HALF_SKILL_GRPO, RLOO, GIGPO, PPO)
