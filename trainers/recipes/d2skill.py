"""D2Skill (arXiv 2603.28716): half of each group sees skills whose utility is measured against the other half.

The paper keeps three task and three step skills in a prompt; here there are task skills alone, as many as
``preset.show``. The hindsight bonus, an episode's success minus the skill-free half's, is added to every return, as in
the released code. Where returns are successes that is a shift and a scale within a group, which GRPO's normalisation
takes out again; with graded returns it counts, and with ``preset.hindsight_for=injected``, too.
"""

from __future__ import annotations

from dataclasses import replace

from trainers.memory import D2SkillMemory
from trainers.recipes.half_skill_grpo import RECIPE as HALF_SKILL_GRPO

__all__ = ["RECIPE"]

RECIPE = replace(
    HALF_SKILL_GRPO,
    name="d2skill",
    summary="D2Skill: paired groups, a bank written from failures, utilities measured in pairs.",
    memory=D2SkillMemory(),
)
