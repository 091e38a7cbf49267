"""The plain group advantage of GRPO."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from numpy.typing import ArrayLike

from skillc_gym.errors import ConfigError
from trainers.advantages.grouping import FloatArray, finite_vector, normalise_groups

__all__ = ["grpo"]


def grpo(returns: ArrayLike, task: Sequence[Hashable], *, eps: float = 1e-6) -> FloatArray:
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
    if len(task) != values.size:
        raise ConfigError(f"task must name {values.size} tasks, one per return; got {len(task)}")
    return normalise_groups(values, task, eps)
