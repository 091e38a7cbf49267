"""Groups of episodes of the configured environments: from task ids to episodes and token-exact training rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from typing import Any, Protocol, TypeVar

from skillc_gym.errors import ConfigError
from skillc_gym.vector import PairedVectorEnv
from trainers.base import Sampling, Trajectory
from trainers.rollout.loop import Plan, RolloutLoop
from trainers.rollout.policies import Policy

T = TypeVar("T")


class GroupRollouts:
    """Plays groups of episodes that share a task, some members with the skill and some without.

    ``policy`` answers; ``make`` gives environments, whose infos follow the suite's contract, for so many groups of so
    many members. At most ``max_parallel`` episodes are played at once; more groups in turn, with the same result.
    """

    def __init__(self, policy: Policy, make: Callable[[int, int], PairedVectorEnv], max_parallel: int) -> None:
        self.policy, self.max_parallel = policy, max_parallel
        self.on_progress: Callable[[int, int], object] | None = None
        """Told how many episodes of a collection are done, and how many there are."""
        self.choose_skills: Callable[[Sequence[int], int], Sequence[Any] | None] | None = None
        """Gives, for n_plus and group size, ``skills`` of collections that name none; None for the library's text."""
        self._make = make
        self._envs: dict[int, PairedVectorEnv] = {}

    def collect(
        self,
        task_ids: Sequence[str],
        n_plus: Sequence[int],
        group_size: int,
        *,
        seed: int,
        sampling: Sampling,
        numbers: Sequence[int] | None = None,
        skills: Sequence[Any] | None = None,
        first_attempt: int = 0,
        shared_draws: bool = True,
    ) -> list[Trajectory]:
        """Plays one group per task to its end; gives trajectories in the order of the tasks, then by member.

        Args:
            task_ids: The task of each group.
            n_plus: How many members of each group see the skill: the first ones.
            group_size: Members per group.
            seed: With the group's number and the member's number within its condition it determines every draw, so the
                first member with the skill and the first without it draw the same random numbers.
            sampling: How tokens are drawn.
            numbers: The groups' numbers, where this is a part of a larger collection; 0, 1, ... otherwise.
            skills: What members see instead of the library's text, as in :class:`skillc_gym.vector.PairedVectorEnv`.
            first_attempt: Number of a group's first member within its condition: the same start, other draws.
            shared_draws: False where both conditions may be shown the same: then no member is a copy of another.
        """
        if len(n_plus) != len(task_ids):
            raise ConfigError(f"Every group needs its n_plus: {len(task_ids)} tasks, {len(n_plus)} numbers.")
        if skills is None and self.choose_skills is not None:
            skills = self.choose_skills(n_plus, group_size)
        plan = Plan(
            tuple(task_ids),
            tuple(int(n) for n in n_plus),
            tuple(range(len(task_ids)) if numbers is None else numbers),
            group_size,
            seed,
            sampling,
            None if skills is None else tuple(skills),
            first_attempt,
            shared_draws,
        )
        try:
            return RolloutLoop(self.policy, plan, self.vector, self.max_parallel, self.on_progress).run()
        except BaseException:
            # Groups whose start was interrupted could not be left out of what is played next.
            with suppress(Exception):  # not to hide what went wrong first
                self.close()
            raise

    def close(self) -> None:
        """Closes the environments; they are made again when needed."""
        there, self._envs = self._envs, {}
        with ExitStack() as stack:  # closes them all, also where one cannot be closed
            for env in there.values():
                stack.callback(env.close)

    def vector(self, groups: int, group_size: int) -> PairedVectorEnv:
        """Environments for so many groups or more: the most that were asked for so far, which serve fewer as well."""
        there = self._envs.get(group_size)
        if there is None or there.num_groups < groups:
            if there is not None:
                there.close()
            self._envs[group_size] = self._make(groups, group_size)
        return self._envs[group_size]


class Processes(Protocol):
    """The processes that train together."""

    @property
    def process_index(self) -> int:
        """Which one this is; the first one writes files."""

    @property
    def num_processes(self) -> int:
        """How many there are."""

    def gather(self, objects: list[T]) -> list[T]:
        """All processes' objects, process by process, on every process."""


class SharedRollouts:
    """Gives each training process its groups; a group's result does not depend on how many processes there are."""

    def __init__(self, rollouts: GroupRollouts, processes: Processes) -> None:
        self.rollouts, self.processes = rollouts, processes

    def collect_own(
        self,
        task_ids: Sequence[str],
        n_plus: Sequence[int],
        group_size: int,
        *,
        skills: Sequence[Any] | None = None,
        **options: Any,
    ) -> list[Trajectory]:
        """Plays this process's groups of a collection that all processes know; see :meth:`GroupRollouts.collect`."""
        own = range(self.processes.process_index, len(task_ids), self.processes.num_processes)
        shown = None if skills is None else [skills[g] for g in own]
        tasks, counts = [task_ids[g] for g in own], [n_plus[g] for g in own]
        return self.rollouts.collect(tasks, counts, group_size, numbers=own, skills=shown, **options)

    def collect(
        self, task_ids: Sequence[str], n_plus: Sequence[int], group_size: int, **options: Any
    ) -> list[Trajectory]:
        """Plays a collection together; every process gets all of it, ordered by group, then by member."""
        own = self.collect_own(task_ids, n_plus, group_size, **options)
        return sorted(self.processes.gather(own), key=lambda trajectory: trajectory.group)
