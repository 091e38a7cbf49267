"""RLSD's credit per token (arXiv 2604.03128): the reward gives the direction, the teacher the size."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from skillc_gym.errors import ConfigError
from trainers.losses.base import LossInputs, Teacher, TokenLoss
from trainers.losses.policy_gradient import ClippedPolicyGradient
from trainers.losses.shapes import require_equal_shapes, spread

if TYPE_CHECKING:
    import torch

__all__ = ["TeacherSizedPolicyGradient", "rlsd_mixing", "rlsd_weight"]


@dataclass(frozen=True)
class TeacherSizedPolicyGradient(ClippedPolicyGradient):
    """RLSD (arXiv 2604.03128): :func:`trainers.losses.rlsd_weight` times the advantage, inside the clipped objective.

    Attributes:
        start: Weight of the teacher in the first update.
        mixing_steps: Updates after which the teacher has no weight.
        width: Half width of the range of the teacher's factor.
        teacher_weights: Whose weights teach: the live policy's, a moving average of them, or those of the start.
    """

    start: float = 0.5
    mixing_steps: int = 100
    width: float = 0.2
    teacher_weights: Literal["policy", "average", "reference"] = "policy"

    @property
    def inputs(self) -> frozenset[str]:
        """The teacher's log-probabilities too."""
        return super().inputs | {"teacher_logprobs"}

    @property
    def teacher(self) -> Teacher:
        """The policy with the skill of the task's type in its prompt."""
        return Teacher("with_skill", self.teacher_weights)

    def __call__(self, inputs: LossInputs) -> TokenLoss:
        """As the clipped objective; logs ``teacher_weight`` too."""
        lam = rlsd_mixing(inputs.update - 1, self.start, self.mixing_steps)
        weight = rlsd_weight(inputs.old_logprobs, inputs["teacher_logprobs"], inputs.advantages, lam, self.width)
        result = super().__call__(inputs.with_(advantages=inputs.advantages * weight))
        return replace(result, log={**result.log, "teacher_weight": weight})


def rlsd_weight(
    student: torch.Tensor, teacher: torch.Tensor, advantages: torch.Tensor, lam: float, clip: float = 0.2
) -> torch.Tensor:
    """``(1 - lam) + lam clip(exp(sign(A) (log p_T - log p_S)), 1 - clip, 1 + clip)``, the factor on A per token.

    Args:
        student: Log-probabilities of the sampled tokens without the skill, any shape.
        teacher: The same with the skill in the prompt.
        advantages: A per token, or anything that broadcasts to that shape; only the sign counts, and 0 gives the
            factor 1.
        lam: Weight of the teacher, in [0, 1]; see :func:`rlsd_mixing`.
        clip: Half width of the range of the teacher's factor.

    Returns:
        Same shape, without gradient, within ``1 - lam clip`` and ``1 + lam clip``.

    Raises:
        ConfigError: ``lam`` lies outside [0, 1], ``student`` or ``teacher`` is no tensor, or the shapes do not fit.
    """
    if not 0.0 <= lam <= 1.0:
        raise ConfigError(f"lam lies in [0, 1], got {lam}")
    require_equal_shapes(student=student, teacher=teacher)
    size = (spread("advantages", advantages, student).sign() * (teacher - student)).exp().clamp(1 - clip, 1 + clip)
    return ((1 - lam) + lam * size).detach()


def rlsd_mixing(update: int, start: float = 0.5, steps: int = 100) -> float:
    """``lam`` of an update: from ``start`` linearly to 0 over ``steps`` updates.

    Args:
        update: Updates done before this one.
        start: ``lam`` of the first.
        steps: After how many it is 0.
    """
    return start * max(0.0, 1.0 - update / steps)
