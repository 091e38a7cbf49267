"""The base of losses in which the policy with the skill teaches the policy without it, token by sampled token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from trainers.advantages import FloatArray, RolloutBatch
from trainers.losses.base import Loss, LossInputs, Teacher, TokenLoss

if TYPE_CHECKING:
    import torch

__all__ = ["SelfDistillation"]


@dataclass(frozen=True)
class SelfDistillation(Loss):
    """Base of the losses on sampled tokens; acts on the skill-free rollouts.

    Attributes:
        coefficient: Weight in the sum of losses.
        teacher_weights: Whose weights teach: the live policy's, a moving average of them, or those of the start.
    """

    name: ClassVar[str] = "distillation"
    coefficient: float = 0.01
    teacher_weights: Literal["policy", "average", "reference"] = "policy"

    @property
    def inputs(self) -> frozenset[str]:
        """What the teacher says of the sampled tokens."""
        return frozenset({"teacher_logprobs"})

    @property
    def teacher(self) -> Teacher:
        """The policy with the skill of the task's type in its prompt."""
        return Teacher("with_skill", self.teacher_weights)

    def on_rollouts(self, batch: RolloutBatch) -> FloatArray:
        """On those without the skill."""
        return (~batch.condition).astype(np.float64)

    def __call__(self, inputs: LossInputs) -> TokenLoss:
        """The formula; logs ``teacher_gap``, the mean of ``log p_T - log p_S``."""
        teacher = inputs["teacher_logprobs"]
        gap = (teacher - inputs.logprobs).detach()
        return TokenLoss(self.formula(inputs, teacher), {"teacher_gap": gap})

    def formula(self, inputs: LossInputs, teacher: torch.Tensor) -> torch.Tensor:
        """The loss per token, (rows, tokens)."""
        raise NotImplementedError
