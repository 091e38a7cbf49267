"""RetroAgent (arXiv 2603.08561): lessons from every episode, and a reward for going further than before.

Half of each group sees lessons. The paper trains the reflection turn too in one of its variants; here it is not.
"""

from __future__ import annotations

from dataclasses import replace

from trainers.memory import RetroAgentMemory
from trainers.recipes.half_skill_grpo import RECIPE as HALF_SKILL_GRPO

__all__ = ["RECIPE"]

RECIPE = replace(
    HALF_SKILL_GRPO,
    name="retroagent",
    summary="RetroAgent: lessons from every episode for half of a group, an intrinsic reward.",
    memory=RetroAgentMemory(),
)
