"""Panels of ALFWorld's splits."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from skillc_gym.envs.alfworld.data.games import open_games
from skillc_gym.panels import choose_panel

__all__ = ["panel"]


def panel(
    split: str,
    *,
    per_type: int,
    seed: int = 0,
    data: str | os.PathLike[str] | None = None,
    task_types: Iterable[str] | str | None = None,
    generator: Mapping[str, Any] | None = None,
) -> tuple[str, ...]:
    """Picks the same number of tasks of every type from a split: the same list everywhere.

    Args:
        split: "train", "valid_seen", "valid_unseen" or "valid_train".
        per_type: Tasks per type.
        seed: Another seed, another panel.
        data: As in `open_games`.
        task_types: As in `open_games`.
        generator: As in `open_games`.

    Returns:
        Task ids, sorted; `skillc_gym.panels.panel_hash` names them in a report.

    Raises:
        ConfigError: If a type has fewer than ``per_type`` tasks.
        SkillCError: As `open_games`.
    """
    games = open_games(data, split=split, task_types=task_types, generator=generator)
    return choose_panel({task_id: games.task_type(task_id) for task_id in games.task_ids}, per_type, seed)
