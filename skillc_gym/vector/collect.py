"""Collecting groups to completion with a policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skillc_gym.episodes import Episode, EpisodeRecorder
from skillc_gym.errors import ConfigError
from skillc_gym.vector.paired import PairedVectorEnv

Policy = Callable[[Sequence[Any], Sequence[dict[str, Any]]], Sequence[Any]]
"""Observations and infos of the members that need an action -> their actions."""


@dataclass(frozen=True)
class FinishedGroup:
    """A group, by its number in the vector, whose members have all finished; episodes with the skill come first."""

    group_id: int
    episodes: tuple[Episode, ...]

    @property
    def with_skill(self) -> tuple[Episode, ...]:
        """The episodes of condition 1."""
        return tuple(episode for episode in self.episodes if episode.condition)

    @property
    def without_skill(self) -> tuple[Episode, ...]:
        """The episodes of condition 0."""
        return tuple(episode for episode in self.episodes if not episode.condition)


def collect(groups: PairedVectorEnv, policy: Policy) -> Iterator[FinishedGroup]:
    """Plays every group to its end, from a fresh reset on.

    Args:
        groups: The vector, just reset. Its members need a step limit, or a policy that ends.
        policy: Chooses the actions of all members that need one, at once.

    Yields:
        Groups in the order in which they finish, ties by number.

    Raises:
        ConfigError: Episodes are under way, or the policy gives another number of actions.

    Examples:
        >>> groups = PairedVectorEnv("skillc/ALFWorld-v0", 2, 2, library="alfworld", data="generated")
        >>> _ = groups.reset(seed=0)
        >>> for group in collect(groups, lambda observations, infos: ["look"] * len(infos)):
        ...     print(group.group_id, [len(episode) for episode in group.episodes])
        0 [50, 50]
        1 [50, 50]
    """
    if groups.episode_lengths.any() or not groups.active.all():
        raise ConfigError("collect() plays whole episodes: call groups.reset(...) right before it")
    infos = map(groups.member_info, range(groups.num_envs))
    recorders = [
        EpisodeRecorder(observation, info, seed=info["episode_seed"], group_id=info["group_id"])
        for observation, info in zip(groups.observations, infos, strict=True)
    ]
    unfinished = list(range(groups.num_groups))
    while unfinished:
        _round(groups, policy, recorders)
        active = groups.active
        for group in [g for g in unfinished if not active[list(groups.members(g))].any()]:
            unfinished.remove(group)
            yield FinishedGroup(group, tuple(recorders[member].episode() for member in groups.members(group)))


def _round(groups: PairedVectorEnv, policy: Policy, recorders: Sequence[EpisodeRecorder]) -> None:
    ready = np.flatnonzero(groups.active).tolist()
    observations = groups.observations
    actions = list(policy([observations[i] for i in ready], [groups.member_info(i) for i in ready]))
    if len(actions) != len(ready):
        raise ConfigError(f"The policy was asked for {len(ready)} actions and gave {len(actions)}")
    answers, rewards, terminations, truncations, _ = groups.advance(list(zip(ready, actions, strict=True)))
    for i, action in zip(ready, actions, strict=True):
        outcome = (answers[i], rewards[i], terminations[i], truncations[i], groups.member_info(i))
        recorders[i].add(action, outcome)
