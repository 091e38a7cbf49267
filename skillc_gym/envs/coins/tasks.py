"""Tasks of the coin collector: their names, and the mazes behind them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from skillc_gym.envs.coins.maze import DEAD_ENDS, MOST_MOVES, Maze, build_maze
from skillc_gym.errors import ConfigError, unknown_name

__all__ = ["SPLITS", "Family", "TaskSet"]

SPLITS = ("train", "valid", "test")


@dataclass(frozen=True)
class Family:
    """Which mazes there are.

    Raises:
        ConfigError: A number lies outside its range.
    """

    seed: int = 0
    """Another seed, other mazes."""
    tasks_per_type: int = 200
    """Tasks of each type in each split."""
    shortest: int = 2
    """Fewest moves to the coin."""
    longest: int = 6
    """Most moves to the coin."""

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if type(value) is not int or value < 0:
                raise ConfigError(f"generator: {name} is a whole number that is not negative, got {value!r}")
        if not 1 <= self.shortest <= self.longest <= MOST_MOVES or not 1 <= self.tasks_per_type <= 10_000:
            raise ConfigError(
                f"generator: expected 1 <= shortest <= longest <= {MOST_MOVES} and 1 <= tasks_per_type <= 10000, "
                f"got {self}"
            )

    @classmethod
    def of(cls, options: Mapping[str, Any] | None) -> Family:
        """Reads options.

        Raises:
            UnknownNameError: There is no option of that name.
        """
        options = dict(options or {})
        for name in options:
            if name not in cls.__dataclass_fields__:
                raise unknown_name("option of the generator", name, cls.__dataclass_fields__)
        return cls(**options)


class TaskSet:
    """The tasks of a split. Ids are ``<split>/<type>/<moves>-<number>``, such as ``train/hard/05-0017``.

    Args:
        split: One of `SPLITS`.
        task_types: "easy", "medium", "hard"; None for all.
        family: Which mazes.

    Raises:
        UnknownNameError: The split or a task type does not exist.
    """

    def __init__(self, split: str, task_types: Iterable[str] | str | None, family: Family) -> None:
        if split not in SPLITS:
            raise unknown_name("split", split, SPLITS)
        asked = [task_types] if isinstance(task_types, str) else list(DEAD_ENDS if task_types is None else task_types)
        for name in asked or [""]:
            if name not in DEAD_ENDS:
                raise unknown_name("task type", name, DEAD_ENDS, "Leave task_types out for all of them.")
        self.split, self.family = split, family
        self.task_types = tuple(name for name in DEAD_ENDS if name in asked)

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """All task ids, sorted."""
        spread = self.family.longest - self.family.shortest + 1
        numbers = range(self.family.tasks_per_type)
        moves = [self.family.shortest + number % spread for number in numbers]
        return tuple(sorted(f"{self.split}/{kind}/{moves[n]:02d}-{n:04d}" for kind in self.task_types for n in numbers))

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.ids)

    def type_of(self, task_id: str) -> str:
        """A task's type.

        Raises:
            UnknownNameError: There is no such task.
        """
        if task_id not in self._known:
            raise unknown_name("task id", task_id, self.ids, "env.unwrapped.task_ids lists them.")
        return task_id.split("/")[1]

    def maze(self, task_id: str) -> Maze:
        """The maze of one of the tasks; the same on every machine."""
        return _maze(self.family.seed, task_id)


@lru_cache(maxsize=4096)
def _maze(seed: int, task_id: str) -> Maze:
    _, kind, name = task_id.split("/")
    digest = hashlib.sha256(f"{seed}/{task_id}".encode()).digest()
    rng = np.random.Generator(np.random.PCG64(int.from_bytes(digest[:16], "big")))
    return build_maze(int(name.split("-")[0]), DEAD_ENDS[kind], rng)
