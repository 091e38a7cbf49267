"""Panels to evaluate on: which tasks, and what the environment knows of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from skillc_gym.errors import ConfigError
from trainers.config import TrainConfig
from trainers.rollout.opening import open_env, tasks_of
from trainers.rollout.task_sampling import panel_of

__all__ = ["Panel", "open_panel"]


@dataclass(frozen=True)
class Panel:
    """A fixed choice of tasks.

    Attributes:
        tasks: Their ids, sorted.
        identity: What identifies them beside their names; empty where the environment does not say.
        best_scores: Score within reach of each; empty where the environment does not say.
    """

    tasks: tuple[str, ...]
    identity: Mapping[str, Any] = field(default_factory=dict)
    best_scores: Mapping[str, float] = field(default_factory=dict)


def open_panel(config: TrainConfig, per_type: int | None = None) -> Panel:
    """Chooses a panel of the configured split.

    Args:
        config: The environment, the split, and the panel's seed.
        per_type: So many tasks of each type; the whole split by default.

    Raises:
        ConfigError: ``per_type`` is below 1, or the environment has no named tasks.
    """
    if per_type is not None and per_type < 1:
        raise ConfigError(f"per_type, the tasks per type of a panel, must be at least 1, got {per_type}.")
    types = tasks_of(config)
    tasks = tuple(sorted(types)) if per_type is None else panel_of(types, per_type, config.panel_seed)
    with open_env(config) as env:
        identify, best_score = getattr(env, "identify", None), getattr(env, "best_score", None)
        return Panel(
            tasks,
            identify(tasks) if identify else {},
            {task: float(best_score(task)) for task in tasks} if best_score else {},
        )
