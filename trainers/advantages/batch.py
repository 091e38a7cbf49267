"""What a credit-assignment scheme gets to see of one update's rollouts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from skillc_gym.errors import ConfigError
from trainers.advantages.grouping import FloatArray, finite_vector, flag_vector

__all__ = ["AdvantageBatch", "EpisodeLike"]


class EpisodeLike(Protocol):
    """The fields of :class:`skillc_gym.episodes.Episode` that the method reads."""

    @property
    def task_id(self) -> str:
        """Identity of the task, the same in every update."""

    @property
    def task_type(self) -> str:
        """Type of the task."""

    @property
    def condition(self) -> int:
        """1 with the skill, 0 without."""

    @property
    def won(self) -> float:
        """1.0 on success, else 0.0."""

    @property
    def turns(self) -> Sequence[object]:
        """One entry per step."""


@dataclass(frozen=True)
class AdvantageBatch:
    """The rollouts of one update, one entry per rollout in every field.

    Attributes:
        returns: Returns on the success scale [0, 1]; a learner's reward scale stays outside. float64[N].
        task: Task ids, the same string for the same task in every update.
        task_type: Type of each task.
        condition: True with the skill. bool[N].
        success: True where the episode succeeded. bool[N].
        length: Steps of each episode. float64[N].
    """

    returns: FloatArray
    task: tuple[str, ...]
    task_type: tuple[str, ...]
    condition: np.ndarray
    success: np.ndarray
    length: FloatArray

    @classmethod
    def build(
        cls,
        *,
        returns: Sequence[float],
        task: Sequence[str],
        task_type: Sequence[str],
        condition: Sequence[int],
        success: Sequence[bool] | None = None,
        length: Sequence[float] | None = None,
    ) -> AdvantageBatch:
        """Reads and checks plain sequences.

        Args:
            returns: Returns in [0, 1].
            task: Task ids.
            task_type: One type per rollout.
            condition: 0 or 1 per rollout.
            success: By default, where the return is 1.
            length: By default 0.

        Raises:
            ConfigError: Lengths differ, a return lies outside [0, 1], a flag is not 0 or 1, or a task has two types.
        """
        values = finite_vector("returns", returns)
        size = values.size
        if size == 0:
            raise ConfigError("An update needs at least one rollout, got none")
        if values.min() < 0 or values.max() > 1:
            raise ConfigError(
                f"returns are on the success scale [0, 1], got {values.min()} to {values.max()}; "
                "apply a reward scale outside of the method"
            )
        if len(task) != size or len(task_type) != size:
            raise ConfigError(f"task and task_type need {size} entries, got {len(task)} and {len(task_type)}")
        if len(set(zip(task, task_type, strict=True))) != len(set(task)):
            raise ConfigError("A task appears under two task types; task ids name one task each")
        return cls(
            returns=values,
            task=tuple(task),
            task_type=tuple(task_type),
            condition=flag_vector("condition", condition, size),
            success=values >= 1.0 if success is None else flag_vector("success", success, size),
            length=np.zeros(size) if length is None else finite_vector("length", length, size),
        )

    @classmethod
    def from_episodes(cls, episodes: Sequence[EpisodeLike]) -> AdvantageBatch:
        """Reads finished episodes; the return is ``won``."""
        return cls.build(
            returns=[float(episode.won) for episode in episodes],
            task=[episode.task_id for episode in episodes],
            task_type=[episode.task_type for episode in episodes],
            condition=[int(episode.condition) for episode in episodes],
            success=[episode.won >= 1.0 for episode in episodes],
            length=[float(len(episode.turns)) for episode in episodes],
        )

    @cached_property
    def type_of(self) -> dict[str, str]:
        """Each task's type, in order of first appearance."""
        return dict(zip(self.task, self.task_type, strict=True))
