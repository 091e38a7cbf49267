"""OPSD (arXiv 2601.18734) over whole distributions: the generalised Jensen-Shannon divergence on sampled tokens."""

from __future__ import annotations

from dataclasses import replace

from trainers.losses.distribution_distillation import DistributionDistillation
from trainers.recipes.grpo import RECIPE as GRPO

__all__ = ["RECIPE"]

RECIPE = replace(
    GRPO,
    name="opsd_jsd",
    summary="OPSD: Jensen-Shannon self-distillation of whole distributions, no policy gradient.",
    losses=(DistributionDistillation(coefficient=1.0),),
)
