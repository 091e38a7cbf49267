"""OPID: a policy gradient whose advantage per token a teacher adds to, who knows how the episode went."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from trainers.losses.base import LossInputs, Teacher, TokenLoss
from trainers.losses.policy_gradient import ClippedPolicyGradient

__all__ = ["HindsightPolicyGradient"]


@dataclass(frozen=True)
class HindsightPolicyGradient(ClippedPolicyGradient):
    """OPID (arXiv 2606.26790): ``A + w sg(log p_T - log p_old)`` per token, inside the clipped objective.

    The teacher is the same policy with a skill in its prompt that was written from the finished episode.

    Attributes:
        teacher_weight: w, the teacher's share in the advantage.
        teacher_weights: Whose weights teach: the live policy's, a moving average of them, or those of the start.
    """

    teacher_weight: float = 0.001
    teacher_weights: Literal["policy", "average", "reference"] = "policy"

    @property
    def inputs(self) -> frozenset[str]:
        """The teacher's log-probabilities too."""
        return super().inputs | {"teacher_logprobs"}

    @property
    def teacher(self) -> Teacher:
        """The policy; each row brings the text."""
        return Teacher("without_skill", self.teacher_weights)

    @property
    def needs_advantages(self) -> bool:
        """The teacher's part is there where all returns of a group are equal, too."""
        return False

    def __call__(self, inputs: LossInputs) -> TokenLoss:
        """As the clipped objective; logs ``teacher_gap`` too."""
        gap = (inputs["teacher_logprobs"] - inputs.old_logprobs).detach()
        result = super().__call__(inputs.with_(advantages=inputs.advantages + self.teacher_weight * gap))
        return replace(result, log={**result.log, "teacher_gap": gap})
