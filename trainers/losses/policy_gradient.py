"""The clipped objective with a KL penalty (method, section 5)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from trainers.losses.base import Loss, LossInputs, TokenLoss

if TYPE_CHECKING:
    import torch

__all__ = ["ClippedPolicyGradient", "clipped_policy_gradient", "k3"]


@dataclass(frozen=True)
class ClippedPolicyGradient(Loss):
    """PPO's clipped surrogate, with the k3 penalty to the starting policy.

    Attributes:
        coefficient: Weight in the sum of losses.
        clip: Half width of the trust region; the run's (``clip=``) if None.
        beta: Weight of the penalty; the run's (``beta=``) if None.
    """

    name: ClassVar[str] = "policy"
    coefficient: float = 1.0
    clip: float | None = None
    beta: float | None = None

    @property
    def inputs(self) -> frozenset[str]:
        """The old log-probabilities, and the reference's with a penalty."""
        return frozenset({"old_logprobs", "ref_logprobs"} if self.beta else {"old_logprobs"})

    @property
    def needs_advantages(self) -> bool:
        """Without a penalty, rows without advantages have no gradient."""
        return not self.beta

    def configured(self, *, clip: float, beta: float) -> ClippedPolicyGradient:
        """Takes the run's clip and beta where its own are open."""
        return replace(
            self, clip=clip if self.clip is None else self.clip, beta=beta if self.beta is None else self.beta
        )

    def __call__(self, inputs: LossInputs) -> TokenLoss:
        """See :func:`clipped_policy_gradient`; logs ``kl`` and ``clip_fraction``."""
        values, clipped = clipped_policy_gradient(
            inputs.logprobs,
            inputs.advantages,
            old_logprobs=inputs.old_logprobs,
            sampling_ratio=inputs.optional.get("sampling_ratio"),
            clip=0.2 if self.clip is None else self.clip,
        )
        kl = inputs.logprobs.new_zeros(inputs.logprobs.shape)
        if self.beta:
            kl = k3(inputs.logprobs, inputs["ref_logprobs"])
            values = values + self.beta * kl
        return TokenLoss(values, {"kl": kl.detach(), "clip_fraction": clipped})


def clipped_policy_gradient(
    logprobs: torch.Tensor,
    advantages: torch.Tensor,
    *,
    old_logprobs: torch.Tensor,
    sampling_ratio: torch.Tensor | None = None,
    clip: float = 0.2,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Computes ``-min(r A, clip(r, 1 - clip, 1 + clip) A)`` per token, with ``r = exp(logprobs - old_logprobs)``.

    Args:
        logprobs: Of the tokens under the trained weights, shape (rows, tokens).
        advantages: Same shape.
        old_logprobs: Under the weights that generated, without gradient.
        sampling_ratio: Factor per token for the difference between generating and training engine.
        clip: Half width of the trust region of the ratio.

    Returns:
        The values, and 1 where the ratio was clipped; both (rows, tokens).
    """
    import torch

    ratio = torch.exp(logprobs - old_logprobs)
    gain = advantages.to(logprobs.dtype)
    values = -torch.min(ratio * gain, ratio.clamp(1 - clip, 1 + clip) * gain)
    if sampling_ratio is not None:
        values = values * sampling_ratio
    clipped = ((ratio < 1 - clip) & (gain < 0)) | ((ratio > 1 + clip) & (gain > 0))
    return values, clipped


def k3(logprobs: torch.Tensor, ref_logprobs: torch.Tensor) -> torch.Tensor:
    """Schulman's estimate of KL(policy, reference) per token: ``exp(d) - d - 1`` with ``d = ref - log p``."""
    import torch

    difference = ref_logprobs - logprobs
    return torch.exp(difference) - difference - 1
