"""Which tasks an update trains on, and which are held back to steer the curriculum."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from skillc_gym.errors import ConfigError
from skillc_gym.panels import ranked, tasks_by_type
from trainers.base import TaskSampling


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
    for kind, ids in tasks_by_type(type_of).items():
        if len(ids) < 2:
            raise ConfigError(
                f"Task type {kind!r} has {len(ids)} task; training and the held-back panel need at least one each. "
                "Leave the type out (task_types=...) or use more games."
            )
    held_back = panel_of(type_of, per_type, seed, share=0.5)
    training = tuple(sorted(set(type_of).difference(held_back)))
    return TaskSplit(training, held_back, dict(type_of))


def panel_of(type_of: Mapping[str, str], per_type: int, seed: int, *, share: float = 1.0) -> tuple[str, ...]:
    """Chooses so many tasks of each type by hash, at most the given share of a type's tasks; sorted."""
    chosen: list[str] = []
    for ids in tasks_by_type(type_of).values():
        chosen += ranked(ids, seed)[: min(per_type, int(len(ids) * share))]
    return tuple(sorted(chosen))


def sample_tasks(split: TaskSplit, count: int, how: TaskSampling, *, seed: int, step: int) -> list[str]:
    """Samples an update's tasks, different ones unless there are too few; depends on nothing but its arguments.

    ``how`` is "uniform" over all training tasks, or "types": task types in turn, then uniform within the type.
    """
    rng = np.random.default_rng([seed, step])
    if how == "uniform":
        return _some(split.training, count, rng)
    pools = list(tasks_by_type({task: split.type_of[task] for task in split.training}).values())
    wanted = [(step * count + i) % len(pools) for i in range(count)]
    return [task for i, pool in enumerate(pools) for task in _some(pool, wanted.count(i), rng)]


def _some(pool: Sequence[str], count: int, rng: np.random.Generator) -> list[str]:
    picked = rng.choice(len(pool), size=count, replace=count > len(pool))
    return [pool[int(i)] for i in picked]
