"""Learning from a skill-injected episode behind the prompt without the skill: the study's variant ``relabelling``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

__all__ = ["relabelling"]


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
    """
    ratio = (student.detach() - old.detach()).exp().clamp(max=cap)
    return -(ratio**alpha) * student
