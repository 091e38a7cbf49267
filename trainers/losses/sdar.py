"""SDAR's gated self-distillation (arXiv 2605.15155)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainers.losses.base import LossInputs
from trainers.losses.self_distillation import SelfDistillation
from trainers.losses.shapes import require_equal_shapes

if TYPE_CHECKING:
    import torch

__all__ = ["Sdar", "sdar"]


@dataclass(frozen=True)
class Sdar(SelfDistillation):
    """:func:`trainers.losses.sdar`.

    Attributes:
        sharpness: Of the gate (the paper's beta).
    """

    sharpness: float = 5.0

    def formula(self, inputs: LossInputs, teacher: torch.Tensor) -> torch.Tensor:
        """The gated gap."""
        return sdar(inputs.logprobs, teacher, self.sharpness)


def sdar(student: torch.Tensor, teacher: torch.Tensor, beta: float = 5.0) -> torch.Tensor:
    """``g (log p_T - log p_S)`` per sampled token with the gate ``g = sg sigmoid(beta (log p_T - log p_S))``.

    The gradient is ``-g grad log p_S``: every sampled token is raised, the more the better the teacher likes it.

    Args:
        student: Log-probabilities of the sampled tokens without the skill, any shape.
        teacher: The same with the skill in the prompt; carries no gradient.
        beta: Sharpness of the gate; 0 gives :func:`trainers.losses.grpo_opsd`.

    Returns:
        A loss to be minimised, without its coefficient (0.01 in the released code), of the same shape.

    Raises:
        ConfigError: An argument is no tensor, or the shapes differ.
    """
    require_equal_shapes(student=student, teacher=teacher)
    gap = teacher.detach() - student
    return (beta * gap).sigmoid().detach() * gap
