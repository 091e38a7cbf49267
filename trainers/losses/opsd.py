"""On-policy self-distillation in its sampled-token form (OPSD, arXiv 2601.18734, as in SDAR's released code)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainers.losses.base import LossInputs
from trainers.losses.self_distillation import SelfDistillation
from trainers.losses.shapes import require_equal_shapes

if TYPE_CHECKING:
    import torch

__all__ = ["GrpoOpsd", "Opsd", "grpo_opsd", "opsd"]


@dataclass(frozen=True)
class Opsd(SelfDistillation):
    """:func:`trainers.losses.opsd`."""

    def formula(self, inputs: LossInputs, teacher: torch.Tensor) -> torch.Tensor:
        """The gap itself."""
        return opsd(inputs.logprobs, teacher)


@dataclass(frozen=True)
class GrpoOpsd(SelfDistillation):
    """:func:`trainers.losses.grpo_opsd`."""

    def formula(self, inputs: LossInputs, teacher: torch.Tensor) -> torch.Tensor:
        """Half of the gap."""
        return grpo_opsd(inputs.logprobs, teacher)


def opsd(student: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
    """``sg(log p_T) - log p_S`` per sampled token.

    Its expectation under the student is minus the reverse Kullback-Leibler divergence, but its gradient is
    ``-grad log p_S``: it raises every sampled token alike, whatever the teacher thinks of it. The form over the whole
    vocabulary is :func:`trainers.losses.generalised_jsd`; which of the two the published tables used is unsure.

    Args:
        student: Log-probabilities of the sampled tokens without the skill, any shape.
        teacher: The same with the skill in the prompt; carries no gradient.

    Returns:
        A loss to be minimised, without its coefficient (0.01 in the released code), of the same shape.

    Raises:
        ConfigError: An argument is no tensor, or the shapes differ.
    """
    require_equal_shapes(student=student, teacher=teacher)
    return teacher.detach() - student


def grpo_opsd(student: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
    """Half of :func:`opsd`, as it is added to GRPO's loss: :func:`trainers.losses.sdar` with a gate of beta 0."""
    return 0.5 * opsd(student, teacher)
