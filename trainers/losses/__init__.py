"""Losses: small objects with named inputs, and the published formulas as pure functions of tensors.

The functions give one value per token, before any averaging and without a coefficient, each to be minimised.
"""

from __future__ import annotations

from trainers.losses.clipped_value import clipped_value_loss
from trainers.losses.divergence import forward_kl, generalised_jsd
from trainers.losses.opsd import grpo_opsd, opsd
from trainers.losses.relabelling import relabelling
from trainers.losses.rlsd import rlsd_mixing, rlsd_weight
from trainers.losses.sdar import sdar
from trainers.losses.skill_sd import skill_sd

__all__ = [
    "clipped_value_loss",
    "forward_kl",
    "generalised_jsd",
    "grpo_opsd",
    "opsd",
    "relabelling",
    "rlsd_mixing",
    "rlsd_weight",
    "sdar",
    "skill_sd",
]
