"""The clipped objective with a KL penalty (method, section 5), as a pure function of tensors."""

from __future__ import annotations

from dataclasses import dataclass

import torch

__all__ = ["Objective", "objective"]


@dataclass(frozen=True)
class Objective:
    """A loss and what to log of it; all sums run over the tokens that carry loss."""

    loss: torch.Tensor
    """Scalar with gradient."""
    kl_sum: torch.Tensor
    """Sum of the k3 estimates, detached."""
    clipped: torch.Tensor
    """Number of tokens whose ratio was clipped, detached."""
    tokens: torch.Tensor
    """Number of tokens with weight."""


def objective(
    logprobs: torch.Tensor,
    advantages: torch.Tensor,
    mask: torch.Tensor,
    row_weights: torch.Tensor,
    *,
    old_logprobs: torch.Tensor | None = None,
    ref_logprobs: torch.Tensor | None = None,
    correction: torch.Tensor | None = None,
    clip: float = 0.2,
    beta: float = 0.0,
) -> Objective:
    """Computes ``-sum_rows w_row sum_t ( min(r A, clip(r, 1 - clip, 1 + clip) A) - beta KL_t )``.

    The weights hold all normalisation: with ``w_row = 1 / (N T_i)`` for the rows of trajectory i, of T_i own tokens,
    the sum over an update's micro-batches is the mean over trajectories of the mean over their tokens.

    Args:
        logprobs: Of the tokens under the trained weights, shape (rows, tokens).
        advantages: One per row, shape (rows,).
        mask: 1 for the model's own tokens, shape (rows, tokens).
        row_weights: Weight of each of a row's tokens, shape (rows,); padding rows have 0.
        old_logprobs: Under the weights that generated; the trained ones, without gradient, if None.
        ref_logprobs: Under the reference; needed if ``beta`` is not 0.
        correction: Factor per token for the difference between generating and training engine, shape (rows, tokens).
        clip: Half width of the trust region of the ratio.
        beta: Weight of the KL penalty, estimated by k3: ``exp(d) - d - 1`` with ``d = ref - log p``.
    """
    old = logprobs.detach() if old_logprobs is None else old_logprobs
    ratio = torch.exp(logprobs - old)
    gain = advantages[:, None].to(logprobs.dtype)
    per_token = -torch.min(ratio * gain, ratio.clamp(1 - clip, 1 + clip) * gain)
    if correction is not None:
        per_token = per_token * correction
    kl = torch.zeros_like(logprobs)
    if beta:
        assert ref_logprobs is not None
        difference = ref_logprobs - logprobs
        kl = torch.exp(difference) - difference - 1
        per_token = per_token + beta * kl
    weighted = mask * (row_weights > 0)[:, None]
    clipped = ((ratio < 1 - clip) & (gain < 0)) | ((ratio > 1 + clip) & (gain > 0))
    return Objective(
        loss=(row_weights[:, None] * mask * per_token).sum(),
        kl_sum=(kl * weighted).sum().detach(),
        clipped=(clipped * weighted).sum().detach(),
        tokens=weighted.sum().detach(),
    )
