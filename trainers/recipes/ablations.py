"""SkillC's six ablations; each changes one thing.

``no_pairing`` leaves the correction as it is: C(x) follows the contrast between a type's injected and skill-free groups
of an update. The paper names the ablation without saying what becomes of C(x) where no task has both branches; with
``lam=0`` the correction is 0 as well. ``no_pruning`` is SkillC itself where SkillC never prunes, as in WebShop.
"""

from __future__ import annotations

from trainers.recipes.skillc import RECIPE as SKILLC

__all__ = ["RECIPES"]

RECIPES = (
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
