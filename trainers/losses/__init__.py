"""Losses: named tensors in, one value per token out; an update sums them.

A formula is a pure function of tensors, without averaging or a coefficient, to be minimised; a :class:`Loss` is the
same formula with its options.
"""

from __future__ import annotations

from trainers.losses.base import Loss, LossInputs, Teacher, TokenLoss
from trainers.losses.distillation import generalised_jsd, grpo_opsd, opsd, relabelling, sdar, skill_sd
from trainers.losses.policy_gradient import (
    ClippedPolicyGradient,
    clipped_policy_gradient,
    clipped_value_loss,
    k3,
    rlsd_mixing,
    rlsd_weight,
)

__all__ = ["ClippedPolicyGradient", "Loss", "LossInputs", "Teacher", "TokenLoss", "clipped_policy_gradient"]
__all__ += ["clipped_value_loss", "generalised_jsd", "grpo_opsd", "k3", "opsd", "relabelling"]
__all__ += ["rlsd_mixing", "rlsd_weight", "sdar", "skill_sd"]
