"""Contrastive relabelling: imitate without the skill what only the skill made possible, and let it fade with the gap.

See ``docs/contrastive-relabelling.md`` for the derivation.
"""

from __future__ import annotations

from trainers.advantages import Grpo
from trainers.losses import ClippedPolicyGradient
from trainers.losses.relabelling import Relabelling
from trainers.recipes.parts.adaptive_allocation import ByContrast
from trainers.recipes.parts.curriculum import Internalization, Pruning
from trainers.recipes.parts.relabelled_rows import RelabelledRows
from trainers.recipes.recipe import Recipe

__all__ = ["RECIPE"]

RECIPE = Recipe(
    name="contrastive_relabelling",
    summary="GRPO per condition; won episodes with the skill are imitated without it, by the contrast's weight.",
    allocation=ByContrast(),
    curriculum=Internalization(pruning=Pruning(retire_by=())),
    advantage=Grpo(group_by="condition"),
    losses=(ClippedPolicyGradient(), Relabelling()),
    rows=(RelabelledRows(discounted=False),),
)
