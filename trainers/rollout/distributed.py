"""Collections that several training processes share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from trainers.base import Sampling, Trajectory
from trainers.rollout.collect import GroupRollouts

__all__ = ["Processes", "SharedRollouts"]

T = TypeVar("T")


class Processes(Protocol):
    """The processes that train together."""

    @property
    def process_index(self) -> int:
        """Which one this is."""

    @property
    def num_processes(self) -> int:
        """How many there are."""

    def gather(self, objects: list[T]) -> list[T]:
        """All processes' objects, process by process, on every process."""


class SharedRollouts:
    """Deals groups to the training processes; a group's result does not depend on how many there are.

    Args:
        rollouts: This process's environments and engine.
        processes: All processes.
    """

    def __init__(self, rollouts: GroupRollouts, processes: Processes) -> None:
        self.rollouts = rollouts
        self.processes = processes

    def collect_own(
        self,
        task_ids: Sequence[str],
        n_plus: Sequence[int],
        group_size: int,
        *,
        seed: int,
        sampling: Sampling,
        skills: Sequence[Any] | None = None,
        shared_draws: bool = True,
    ) -> list[Trajectory]:
        """Plays this process's groups of a collection that all processes know; see :meth:`GroupRollouts.collect`."""
        own = range(self.processes.process_index, len(task_ids), self.processes.num_processes)
        return self.rollouts.collect(
            [task_ids[g] for g in own],
            [n_plus[g] for g in own],
            group_size,
            seed=seed,
            sampling=sampling,
            numbers=own,
            skills=None if skills is None else [skills[g] for g in own],
            shared_draws=shared_draws,
        )

    def collect(
        self,
        task_ids: Sequence[str],
        n_plus: Sequence[int],
        group_size: int,
        *,
        seed: int,
        sampling: Sampling,
        skills: Sequence[Any] | None = None,
    ) -> list[Trajectory]:
        """Plays a collection together; every process gets all of it, ordered by group, then by member."""
        own = self.collect_own(task_ids, n_plus, group_size, seed=seed, sampling=sampling, skills=skills)
        return sorted(self.processes.gather(own), key=lambda trajectory: trajectory.group)
