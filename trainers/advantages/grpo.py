"""The plain group advantage of GRPO."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from numpy.typing import ArrayLike

from trainers.advantages.grouping import FloatArray, finite_vector, group_keys, normalise_groups

__all__ = ["grpo"]


def grpo(returns: ArrayLike, task: Sequence[Hashable], eps: float = 1e-6) -> FloatArray:
    """``(R_i - mean) / (std + eps)`` within the rollouts of each task, population standard deviation.

    Args:
        returns: Episode returns, float[N].
        task: Which task each rollout belongs to, N keys.
        eps: Added to the standard deviation.

    Returns:
        float64[N]; exactly 0 for tasks with one rollout or equal returns.

    Raises:
        ConfigError: Lengths differ or a return is not finite.
    """
    values = finite_vector("returns", returns)
    return normalise_groups(values, group_keys(task, values.size), eps)
