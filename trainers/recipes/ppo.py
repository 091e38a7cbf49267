"""PPO (Schulman et al. 2017, arXiv 1707.06347) with a critic on the policy's own hidden states.

The published runs play many tasks once each (``tasks_per_step=64 group_size=1``) and give the critic a backbone and a
learning rate of its own; here both share the backbone, and the head learns at the policy's rate.
"""

from __future__ import annotations

from dataclasses import replace

from trainers.advantages.critic import Ppo
from trainers.losses import ClippedPolicyGradient
from trainers.losses.value import Value
from trainers.recipes.grpo import RECIPE as GRPO

__all__ = ["RECIPE"]

RECIPE = replace(
    GRPO,
    name="ppo",
    summary="PPO: a critic, GAE and a clipped value loss, no skill in any prompt.",
    advantage=Ppo(),
    losses=(ClippedPolicyGradient(), Value()),
)
