"""OPSD (arXiv 2601.18734) in its sampled-token form: no reward, the policy with the skill teaches the one without.

The loss per token is 0.01 times the gap, as in SDAR's released code. Its expected gradient on the policy's own samples
is zero but for the 1/T weighting, see :func:`trainers.losses.opsd`.
"""

from __future__ import annotations

from dataclasses import replace

from trainers.losses.self_distillation import Opsd
from trainers.recipes.grpo import RECIPE as GRPO

__all__ = ["RECIPE"]

RECIPE = replace(
    GRPO,
    name="opsd",
    summary="OPSD: self-distillation of sampled tokens alone, no policy gradient.",
    losses=(Opsd(),),
)
