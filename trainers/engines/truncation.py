"""Cutting the tail of a distribution before a token is drawn: top-k, min-p, top-p, in that order."""

from __future__ import annotations

import math

import torch

from trainers.base import Sampling

__all__ = ["likely"]


def likely(logprobs: torch.Tensor, sampling: Sampling) -> torch.Tensor:
    """Which tokens may be drawn; the most probable one always may.

    Args:
        logprobs: Of all tokens, shape (n, vocabulary).
        sampling: ``top_k``: the k most probable; ``min_p``: those at least so probable as that share of the most
            probable one; ``top_p``: the most probable of these that together reach the share.

    Returns:
        Bool, same shape.
    """
    kept = torch.ones_like(logprobs, dtype=torch.bool)
    if sampling.top_k:
        least = logprobs.topk(min(sampling.top_k, logprobs.shape[-1]), dim=-1).values[:, -1:]
        kept &= logprobs >= least
    if sampling.min_p:
        kept &= logprobs >= logprobs.max(dim=-1, keepdim=True).values + math.log(sampling.min_p)
    if sampling.top_p < 1:
        kept &= _nucleus(logprobs.masked_fill(~kept, -math.inf), sampling.top_p)
    return kept


def _nucleus(logprobs: torch.Tensor, share: float) -> torch.Tensor:
    ordered, places = logprobs.softmax(dim=-1).sort(dim=-1, descending=True, stable=True)
    # A token is in while what stands before it has not reached the share.
    inside = ordered.cumsum(dim=-1) - ordered < share
    return torch.zeros_like(inside).scatter(-1, places, inside)
