"""The clipped objective with a KL penalty (method, section 5)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from trainers.base import RatioLevel
from trainers.losses.base import Loss, LossInputs, TokenLoss

if TYPE_CHECKING:
    import torch

__all__ = ["ClippedPolicyGradient", "RatioLevel", "clipped_policy_gradient", "k3"]


@dataclass(frozen=True)
class ClippedPolicyGradient(Loss):
    """PPO's clipped surrogate, with the k3 penalty to the starting policy.

    Attributes:
        coefficient: Weight in the sum of losses.
        clip: Half width of the trust region; the run's (``clip=``) if None.
        beta: Weight of the penalty; the run's (``beta=``) if None.
        clip_high: Width of the trust region above 1; the run's (``clip_high=``) if None, and if that is None too, clip.
        ratio: A probability ratio per token or per row; the run's (``ratio=``) if None.
    """

    name: ClassVar[str] = "policy"
    coefficient: float = 1.0
    clip: float | None = None
    beta: float | None = None
    clip_high: float | None = None
    ratio: RatioLevel | None = None

    @property
    def inputs(self) -> frozenset[str]:
        """The old log-probabilities, and the reference's with a penalty."""
        return frozenset({"old_logprobs", "ref_logprobs"} if self.beta else {"old_logprobs"})

    @property
    def needs_advantages(self) -> bool:
        """Without a penalty, rows without advantages have no gradient."""
        return not self.beta

    def configured(
        self, *, clip: float, beta: float, clip_high: float | None = None, ratio: RatioLevel = "token"
    ) -> ClippedPolicyGradient:
        """Takes the run's settings where its own are open."""
        return replace(
            self,
            clip=clip if self.clip is None else self.clip,
            beta=beta if self.beta is None else self.beta,
            clip_high=clip_high if self.clip_high is None else self.clip_high,
            ratio=self.ratio or ratio,
        )

    def __call__(self, inputs: LossInputs) -> TokenLoss:
        """See :func:`clipped_policy_gradient`; logs ``kl`` and ``clip_fraction``."""
        values, clipped = clipped_policy_gradient(
            inputs.logprobs,
            inputs.advantages,
            old_logprobs=inputs.old_logprobs,
            sampling_ratio=inputs.optional.get("sampling_ratio"),
            clip=0.2 if self.clip is None else self.clip,
            clip_high=self.clip_high,
            sequences=inputs.mask if self.ratio == "sequence" else None,
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
    clip_high: float | None = None,
    sequences: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Computes ``-min(r A, clip(r, 1 - clip, 1 + clip_high) A)`` per token, with ``r = exp(logprobs - old_logprobs)``.

    An upper width of its own is DAPO's (arXiv:2503.14476), a ratio per sequence GSPO's (arXiv:2507.18071).

    Args:
        logprobs: Of the tokens under the trained weights, shape (rows, tokens).
        advantages: Same shape.
        old_logprobs: Under the weights that generated, without gradient.
        sampling_ratio: Factor per token for the difference between generating and training engine.
        clip: Half width of the trust region of the ratio.
        clip_high: Its width above 1, if that is another.
        sequences: 1 for the tokens over whose mean log-ratio a row's ratio is taken; None for a ratio per token.

    Returns:
        The values, and 1 where the ratio was clipped; both (rows, tokens).
    """
    import torch

    log_ratio, high = logprobs - old_logprobs, clip if clip_high is None else clip_high
    if sequences is not None:
        log_ratio = (log_ratio * sequences).sum(-1, keepdim=True) / sequences.sum(-1, keepdim=True).clamp(min=1)
        log_ratio = log_ratio.expand_as(logprobs)
    ratio = torch.exp(log_ratio)
    gain = advantages.to(logprobs.dtype)
    values = -torch.min(ratio * gain, ratio.clamp(1 - clip, 1 + high) * gain)
    if sampling_ratio is not None:
        values = values * sampling_ratio
    clipped = ((ratio < 1 - clip) & (gain < 0)) | ((ratio > 1 + high) & (gain > 0))
    return values, clipped


def k3(logprobs: torch.Tensor, ref_logprobs: torch.Tensor) -> torch.Tensor:
    """Schulman's estimate of KL(policy, reference) per token: ``exp(d) - d - 1`` with ``d = ref - log p``."""
    import torch

    difference = ref_logprobs - logprobs
    return torch.exp(difference) - difference - 1
