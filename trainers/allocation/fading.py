"""Half of a group sees the skill while it matters, ever fewer as the gap closes."""

from __future__ import annotations

import math

from skillc_gym.errors import ConfigError

__all__ = ["fading_allocation"]


def fading_allocation(gap: float, group_size: int, full_gap: float = 0.2) -> int:
    """``n+ = max(1, round(G / 2 * clip(gap / full_gap, 0, 1)))``, halves rounded up.

    One rollout always sees the skill, so that the gap stays known and following the skill stays practised.

    Args:
        gap: Success with the skill minus success without.
        group_size: Rollouts per group, G; at least 2.
        full_gap: Gap from which on half of the group sees the skill.

    Returns:
        Between 1 and ``G // 2``.

    Raises:
        ConfigError: A group of fewer than two, or ``full_gap`` not positive.
    """
    if group_size < 2 or not full_gap > 0.0:
        raise ConfigError(
            f"A fading allocation needs group_size >= 2 and full_gap > 0, got {group_size} and {full_gap}."
        )
    half = group_size // 2
    return min(half, max(1, math.floor(half * min(max(gap / full_gap, 0.0), 1.0) + 0.5)))
