"""The leave-one-out advantage of RLOO (Ahmadian et al. 2024, arXiv 2402.14740)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from trainers.advantages.base import Advantages, Scheme
from trainers.advantages.batch import RolloutBatch
from trainers.advantages.grouping import FloatArray, finite_vector, group_indices, group_keys, mean

__all__ = ["Rloo", "rloo"]


@dataclass(frozen=True)
class Rloo(Scheme):
    """The leave-one-out advantage as a scheme."""

    name: ClassVar[str] = "rloo"

    def __call__(self, batch: RolloutBatch) -> Advantages:
        """One number per rollout."""
        return Advantages(rloo(batch.returns, batch.task))


def rloo(returns: ArrayLike, task: Sequence[Hashable]) -> FloatArray:
    """``R_i - mean of the other returns`` within the rollouts of each task, per trajectory.

    Args:
        returns: Episode returns, float[N].
        task: Which task each rollout belongs to, N keys.

    Returns:
        float64[N]; sums to 0 within a task, exactly 0 for tasks with one rollout or equal returns.

    Raises:
        ConfigError: Lengths differ or a return is not finite.
    """
    values = finite_vector("returns", returns)
    advantage = np.zeros_like(values)
    for rows in group_indices(group_keys(task, values.size)):
        group = values[rows]
        if group.min() != group.max():
            # R_i minus the mean of the others is n / (n - 1) times R_i minus the mean of all.
            advantage[rows] = rows.size / (rows.size - 1) * (group - mean(group.tolist()))
    return advantage


SCHEME = Rloo
