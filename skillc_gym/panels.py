"""Panels: fixed, balanced choices of tasks to evaluate on, the same on every machine."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence

from skillc_gym.errors import ConfigError
from skillc_gym.values import require_whole

__all__ = ["choose_panel", "panel_hash", "ranked", "tasks_by_type"]


def tasks_by_type(type_of: Mapping[str, str]) -> dict[str, list[str]]:
    """Returns the task ids of every type; types and ids sorted."""
    kinds = sorted(set(type_of.values()))
    return {kind: sorted(task for task in type_of if type_of[task] == kind) for kind in kinds}


def ranked(task_ids: Iterable[str], seed: int) -> list[str]:
    """Returns the ids ordered by a hash of seed and id: a set that grew keeps the order of those it had."""
    return sorted(task_ids, key=lambda task: hashlib.sha256(f"{seed}:{task}".encode()).hexdigest())


def choose_panel(type_of: Mapping[str, str], per_type: int, seed: int = 0) -> tuple[str, ...]:
    """Picks the same number of tasks of every type; a smaller panel of the same seed is part of a larger one.

    Args:
        type_of: Task type of every task id to pick from.
        per_type: Tasks per type.
        seed: Another seed, another panel.

    Returns:
        Task ids, sorted; ConfigError if a type has too few of them.
    """
    by_type = tasks_by_type(type_of)
    require_whole("per_type", per_type, 1)
    if not by_type:
        raise ConfigError("A panel needs tasks, and there are none")
    for kind, ids in by_type.items():
        if len(ids) < per_type:
            raise ConfigError(
                f"A balanced panel of {per_type} per type needs more tasks of {kind!r}: there are {len(ids)}. "
                f"Ask for per_type <= {min(map(len, by_type.values()))}, or evaluate the whole split"
            )
    return tuple(sorted(task for ids in by_type.values() for task in ranked(ids, seed)[:per_type]))


def panel_hash(task_ids: Sequence[str]) -> str:
    """Returns the sha256 of the ids in their order, by which a report names its panel."""
    return hashlib.sha256("\n".join(task_ids).encode()).hexdigest()
