"""OPID (arXiv 2606.26790): GRPO, and in each token's advantage what a teacher who read the episode's lesson adds.

The paper's language model writes one skill per episode and up to five for single steps, the released code letting a
step's skill take the episode's place; here one lesson per episode is abstracted from the commands. Whether the paper
divides the group's advantage by its standard deviation is unsure, its scripts differ; here it is GRPO's.
"""

from __future__ import annotations

from dataclasses import replace

from trainers.losses.policy_gradient import HindsightPolicyGradient
from trainers.recipes.grpo import RECIPE as GRPO
from trainers.recipes.parts.hindsight_rows import HindsightRows

__all__ = ["RECIPE"]

RECIPE = replace(
    GRPO,
    name="opid",
    summary="OPID: GRPO with a hindsight teacher in the advantage.",
    losses=(HindsightPolicyGradient(),),
    rows=(HindsightRows(),),
)
