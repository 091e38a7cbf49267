"""Which episodes to play: tasks, seeds and conditions as rows that any data set or queue can carry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from skillc_gym.errors import ConfigError

__all__ = ["EpisodeRequest", "paired_requests"]


@dataclass(frozen=True)
class EpisodeRequest:
    """One episode to play."""

    task_id: str
    """The task."""
    seed: int
    """Seed of the environment; equal within a group."""
    condition: int
    """1 with the skill in the prompt, 0 without."""
    group_id: int
    """Number of the group; its episodes share task and seed."""

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> EpisodeRequest:
        """Reads a request from a row that may have other columns too.

        Raises:
            ConfigError: A column is missing or of another type.
        """
        try:
            return cls(str(row["task_id"]), int(row["seed"]), int(row["condition"]), int(row["group_id"]))
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigError(
                f"A row needs task_id (text), seed, condition and group_id (integers); got {dict(row)!r:.200}. "
                "Make rows with paired_requests(...)"
            ) from error

    def to_row(self) -> dict[str, Any]:
        """The request as JSON-able columns."""
        return asdict(self)


def paired_requests(
    task_ids: Iterable[str], *, seed: int = 0, group_size: int = 2, n_plus: int | None = None
) -> list[EpisodeRequest]:
    """One group of episodes per task: the first ``n_plus`` with the skill, the others without, side by side.

    Args:
        task_ids: The tasks; a task named twice is played from another seed the second time.
        seed: With a group's number it decides the group's seed (31 bits).
        group_size: Episodes per group.
        n_plus: How many of them see the skill; half of them by default.

    Returns:
        ``len(task_ids) * group_size`` requests, group by group.

    Raises:
        ConfigError: A group without members, or more with the skill than there are.
    """
    with_skill = group_size // 2 if n_plus is None else n_plus
    if group_size < 1 or not 0 <= with_skill <= group_size:
        raise ConfigError(f"Expected group_size >= 1 and 0 <= n_plus <= group_size, got {group_size=} and {n_plus=}")
    return [
        EpisodeRequest(task_id, _group_seed(seed, group), int(member < with_skill), group)
        for group, task_id in enumerate(task_ids)
        for member in range(group_size)
    ]


def _group_seed(seed: int, group: int) -> int:
    # Environments take seeds of 31 bits.
    return int(np.random.SeedSequence((seed, group)).generate_state(1)[0] >> 1)
