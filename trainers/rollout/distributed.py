"""Collections that several training processes share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from trainers.engines.types import Sampling
from trainers.rollout.collect import GroupRollouts, Rollout

__all__ = ["SharedRollouts", "gather_objects"]

T = TypeVar("T")


def gather_objects(accelerator: Any, objects: list[T]) -> list[T]:
    """All processes' objects, process by process, on every process."""
    if accelerator.num_processes == 1:
        return objects
    from accelerate.utils import gather_object

    gathered: list[T] = gather_object(objects)
    return gathered


class SharedRollouts:
    """Deals groups to the training processes; a group's result does not depend on how many there are.

    Args:
        rollouts: This process's environments and engine.
        accelerator: Accelerate's, of the trainer.
    """

    def __init__(self, rollouts: GroupRollouts, accelerator: Any) -> None:
        self.rollouts = rollouts
        self.accelerator = accelerator

    def collect_own(
        self, task_ids: Sequence[str], n_plus: Sequence[int], group_size: int, *, seed: int, sampling: Sampling
    ) -> list[Rollout]:
        """Plays this process's groups of a collection that all processes know."""
        own = range(self.accelerator.process_index, len(task_ids), self.accelerator.num_processes)
        return self.rollouts.collect(
            [task_ids[g] for g in own], [n_plus[g] for g in own], group_size, seed=seed, sampling=sampling, numbers=own
        )

    def collect(
        self, task_ids: Sequence[str], n_plus: Sequence[int], group_size: int, *, seed: int, sampling: Sampling
    ) -> list[Rollout]:
        """Plays a collection together; every process gets all of it, ordered by group, then by member."""
        own = self.collect_own(task_ids, n_plus, group_size, seed=seed, sampling=sampling)
        return sorted(gather_objects(self.accelerator, own), key=lambda rollout: rollout.group)
