"""The plain group advantage of GRPO."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from trainers.advantages.base import Advantages, Scheme
from trainers.advantages.batch import RolloutBatch
from trainers.advantages.grouping import FloatArray, finite_vector, group_keys, normalise_groups

__all__ = ["Grpo", "grpo"]


@dataclass(frozen=True)
class Grpo(Scheme):
    """The group advantage as a scheme.

    Attributes:
        eps: Added to every standard deviation.
        group_by: What makes a group: the rollouts of a task, or those of a task and condition. The latter never
            compares a rollout with the skill to one without; where no rollout sees a skill, both are the same.
    """

    name: ClassVar[str] = "grpo"
    eps: float = 1e-6
    group_by: Literal["task", "condition"] = "task"

    def __call__(self, batch: RolloutBatch) -> Advantages:
        """The advantage; its parts bear the names of SkillC's, so that the records of both lie side by side."""
        values = grpo(batch.returns, self._groups(batch), eps=self.eps)
        nothing = np.zeros_like(values)
        return Advantages(values, parts={"outcome": values, "conditional": nothing, "correction": nothing})

    def _groups(self, batch: RolloutBatch) -> Sequence[Hashable]:
        if self.group_by == "task":
            return batch.task
        return [(task, bool(z)) for task, z in zip(batch.task, batch.condition, strict=True)]


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


SCHEME = Grpo
