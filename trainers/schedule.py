"""Which tasks an update trains on, and which are held back to steer the curriculum."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from skillc_gym.errors import ConfigError

__all__ = ["Draw", "TaskSplit", "draw_tasks", "split_tasks"]

Draw = Literal["uniform", "balanced"]


@dataclass(frozen=True)
class TaskSplit:
    """A split's tasks, dealt to training and to the curriculum's fixed panel; both sorted."""

    training: tuple[str, ...]
    panel: tuple[str, ...]
    type_of: Mapping[str, str]

    @property
    def digest(self) -> str:
        """Hash over both lists, recorded with every run."""
        lines = "\n".join([*self.training, "", *self.panel])
        return hashlib.sha256(lines.encode()).hexdigest()


def split_tasks(type_of: Mapping[str, str], per_type: int, seed: int) -> TaskSplit:
    """Holds back a panel of each type, chosen by hash, so that adding a task moves no other.

    Args:
        type_of: Task type of every task id.
        per_type: Panel size per type; at most half of a type's tasks are taken.
        seed: Another seed holds back other tasks.

    Raises:
        ConfigError: If a type has too few tasks for both sides.
    """
    panel: list[str] = []
    for kind in sorted(set(type_of.values())):
        ids = sorted(task for task in type_of if type_of[task] == kind)
        if len(ids) < 2:
            raise ConfigError(
                f"Task type {kind!r} has {len(ids)} task; training and the held-back panel need at least one each. "
                "Leave the type out (task_types=...) or use more games."
            )
        ranked = sorted(ids, key=lambda task: hashlib.sha256(f"{seed}:{task}".encode()).hexdigest())
        panel += ranked[: min(per_type, len(ids) // 2)]
    held_back = set(panel)
    training = tuple(sorted(task for task in type_of if task not in held_back))
    return TaskSplit(training, tuple(sorted(panel)), dict(type_of))


def draw_tasks(split: TaskSplit, count: int, draw: Draw, *, seed: int, step: int) -> list[str]:
    """Draws an update's tasks; depends on nothing but its arguments.

    Args:
        split: Where to draw from.
        count: How many; different ones, unless there are too few.
        draw: "uniform" over all training tasks, or "balanced": types in turn, then uniform within the type.
        seed: The run's seed.
        step: The update's number.
    """
    rng = np.random.default_rng([seed, step])
    if draw == "uniform":
        return _some(split.training, count, rng)
    kinds = sorted(set(split.type_of.values()))
    wanted = [kinds[(step * count + i) % len(kinds)] for i in range(count)]
    drawn: list[str] = []
    for kind in kinds:
        pool = [task for task in split.training if split.type_of[task] == kind]
        drawn += _some(pool, wanted.count(kind), rng)
    return drawn


def _some(pool: Sequence[str], count: int, rng: np.random.Generator) -> list[str]:
    picked = rng.choice(len(pool), size=count, replace=count > len(pool))
    return [pool[int(i)] for i in picked]
