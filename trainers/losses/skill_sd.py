"""Skill-SD's importance-weighted reverse divergence (arXiv 2604.10674, as re-implemented in SDAR's released code)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainers.losses.base import LossInputs
from trainers.losses.self_distillation import SelfDistillation
from trainers.losses.shapes import require_equal_shapes

if TYPE_CHECKING:
    import torch

__all__ = ["SkillSd", "skill_sd"]


@dataclass(frozen=True)
class SkillSd(SelfDistillation):
    """:func:`trainers.losses.skill_sd`."""

    coefficient: float = 0.001

    @property
    def inputs(self) -> frozenset[str]:
        """The teacher's and the old log-probabilities."""
        return frozenset({"teacher_logprobs", "old_logprobs"})

    def formula(self, inputs: LossInputs, teacher: torch.Tensor) -> torch.Tensor:
        """The importance-weighted divergence."""
        return skill_sd(inputs.logprobs, teacher, inputs.old_logprobs)


_LOWEST_DIFFERENCE = -20.0
_HIGHEST_LOG_RATIO = 10.0


def skill_sd(student: torch.Tensor, teacher: torch.Tensor, old: torch.Tensor) -> torch.Tensor:
    """``rho k3(d)`` per sampled token: ``k3 = exp(-d) - 1 + d``, ``d = log p_S - log p_T``, ``rho = p_S / p_old``.

    ``rho`` carries gradient, which makes the gradient that of the reverse Kullback-Leibler divergence. ``d`` is cut at
    -20 from below and ``log rho`` at 10 from above.

    Args:
        student: Log-probabilities of the sampled tokens without the skill, any shape.
        teacher: The same with the skill in the prompt; carries no gradient.
        old: Under the weights that sampled; carries no gradient.

    Returns:
        A loss to be minimised, without its coefficient (0.001 in the released code), of the same shape; never negative.

    Raises:
        ConfigError: An argument is no tensor, or the shapes differ.
    """
    require_equal_shapes(student=student, teacher=teacher, old=old)
    difference = (student - teacher.detach()).clamp(min=_LOWEST_DIFFERENCE)
    ratio = (student - old.detach()).clamp(max=_HIGHEST_LOG_RATIO).exp()
    return ratio * ((-difference).exp() - 1 + difference)
