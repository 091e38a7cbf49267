"""Learning from a skill-injected episode behind the prompt without the skill: the study's variant ``relabelling``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from trainers.advantages import FloatArray, RolloutBatch
from trainers.losses.base import Loss, LossInputs, TokenLoss, require_equal_shapes

if TYPE_CHECKING:
    import torch

__all__ = ["Relabelling", "relabelling"]


@dataclass(frozen=True)
class Relabelling(Loss):
    """:func:`trainers.losses.relabelling`: the study's variant of that name, on relabelled rows alone.

    Attributes:
        coefficient: Weight in the sum of losses.
        alpha: Power of the truncated ratio; 0 imitates.
        cap: Where the ratio is truncated.
    """

    name: ClassVar[str] = "relabelling"
    coefficient: float = 1.0
    alpha: float = 0.0
    cap: float = 1.0

    def on_rollouts(self, batch: RolloutBatch) -> FloatArray:
        """Not at all."""
        return np.zeros(len(batch.task))

    def __call__(self, inputs: LossInputs) -> TokenLoss:
        """The loss; logs ``hint_reliance``, the mean of ``log pi_old(a | h) - log pi(a | h0)``."""
        old = inputs["sampling_logprobs"]
        values = relabelling(inputs.logprobs, old, self.alpha, self.cap)
        return TokenLoss(values, {"hint_reliance": (old - inputs.logprobs).detach()})


def relabelling(student: torch.Tensor, old: torch.Tensor, alpha: float = 0.0, cap: float = 1.0) -> torch.Tensor:
    """``-sg[min(cap, pi(a | h0) / pi_old(a | h))]^alpha log pi(a | h0)`` per sampled token.

    ``h`` is the history with the skill, behind which the token was sampled, ``h0`` the one without. ``alpha = 0``
    imitates: biased, but it works where the policy alone never takes the step. ``alpha = 1`` weighs by the truncated
    ratio of the token. The full estimator weighs each episode with
    :func:`trainers.advantages.relabelling_weights`.

    Args:
        student: ``log pi(a | h0)``, any shape.
        old: ``log pi_old(a | h)`` of the same tokens; carries no gradient.
        alpha: Power of the truncated ratio.
        cap: Where the ratio is truncated.

    Returns:
        A loss to be minimised, of the same shape, without the episode's weight.

    Raises:
        ConfigError: An argument is no tensor, or the shapes differ.
    """
    require_equal_shapes(student=student, old=old)
    ratio = (student.detach() - old.detach()).exp().clamp(max=cap)
    return -(ratio**alpha) * student
