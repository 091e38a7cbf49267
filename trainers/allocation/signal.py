"""Rollouts where they tell most: the study's variant ``allocation``."""

from __future__ import annotations

import math

from skillc_gym.errors import ConfigError

__all__ = ["signal_allocation"]


def signal_allocation(p_with: float, p_without: float, group_size: int, kappa: float = 1.0) -> int:
    """``n+ = clip(G kappa s1 / (kappa s1 + s0), 1, G - 1)`` with ``s = sqrt(p (1 - p))``, rounded half up.

    A branch that always wins or always loses has no gradient; the branch whose outcome varies gets the rollouts
    (Neyman's allocation). Where neither varies the group is split by ``kappa`` alone.

    Args:
        p_with: Success with the skill in training rollouts, in [0, 1].
        p_without: Success without it, in [0, 1].
        group_size: Rollouts per group, at least 2.
        kappa: How much practice with the skill is worth to the policy without it; 1 treats the branches alike.

    Returns:
        Number of skill-injected rollouts, 1 to ``group_size - 1``.

    Raises:
        ConfigError: A value lies out of range.
    """
    if not (0.0 <= p_with <= 1.0 and 0.0 <= p_without <= 1.0 and kappa > 0.0 and group_size >= 2):
        raise ConfigError(
            "signal_allocation needs rates in [0, 1], kappa > 0 and at least 2 rollouts per group; got "
            f"p_with={p_with}, p_without={p_without}, kappa={kappa}, group_size={group_size}"
        )
    s1, s0 = (math.sqrt(p * (1.0 - p)) for p in (p_with, p_without))
    share = kappa * s1 / (kappa * s1 + s0) if s1 + s0 > 0.0 else kappa / (kappa + 1.0)
    return min(max(math.floor(group_size * share + 0.5), 1), group_size - 1)
