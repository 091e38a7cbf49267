"""RLOO (Ahmadian et al. 2024, arXiv 2402.14740): the mean return of the task's other rollouts as a baseline.

The released code of the agents' line takes the mean over step samples; here it is over trajectories.
"""

from __future__ import annotations

from dataclasses import replace

from trainers.advantages.group_baselines import Rloo
from trainers.recipes.grpo import RECIPE as GRPO

__all__ = ["RECIPE"]

RECIPE = replace(
    GRPO,
    name="rloo",
    summary="RLOO: leave-one-out baseline, no skill in any prompt.",
    advantage=Rloo(),
)
