"""The six task types of ALFWorld, the splits, and the names of tasks.

A task is one game file. Its id is ``<split>/<task folder>/<trial folder>``, exactly as upstream's folders are named,
and the task folder starts with the task type: ``pick_and_place_simple-Mug-None-Desk-308``.
"""

from __future__ import annotations

from collections.abc import Iterable

from skillc_gym.errors import require_name, unknown_name
from skillc_gym.values import listed

TASK_TYPES: tuple[str, ...] = (
    "pick_and_place_simple",
    "look_at_obj_in_light",
    "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_two_obj_and_place",
)
"""Upstream's full names, in upstream's order."""

SHORT_NAMES: dict[str, str] = dict(zip(TASK_TYPES, ("pick", "look", "clean", "heat", "cool", "pick2"), strict=True))
"""Full name -> the short name used in tables and arguments."""

SPLITS: tuple[str, ...] = ("train", "valid_seen", "valid_unseen", "valid_train")

FULL_NAMES = {short: full for full, short in SHORT_NAMES.items()} | {full: full for full in TASK_TYPES}
"""Short or full name -> the full name."""


def resolve_task_types(names: Iterable[str] | str | None) -> tuple[str, ...]:
    """Returns the full task types behind full or short names, in upstream's order; None stands for all six.

    Raises:
        UnknownNameError: If a name is neither a full nor a short one, or if there is none at all.
    """
    if names is None:
        return TASK_TYPES
    asked = listed(names)
    for name in asked:
        require_name("task type", name, [*TASK_TYPES, *SHORT_NAMES.values()])
    if not asked:
        raise unknown_name("task type", asked, TASK_TYPES, "Leave task_types out (None) for all of them.")
    wanted = {FULL_NAMES[name] for name in asked}
    return tuple(task_type for task_type in TASK_TYPES if task_type in wanted)


def task_type_of(task_id: str) -> str:
    """Returns the full task type that a task id (or a task folder's name) begins with; UnknownNameError for none."""
    return require_name("task type", _parts(task_id)[0], TASK_TYPES, f"It was read from {task_id!r}.")


def named_kinds(task_id: str) -> tuple[str, str] | None:
    """The kinds of thing and place (or lamp) that a task folder names, in lower case; None where it names none."""
    parts = _parts(task_id)
    return (parts[1].lower(), parts[3].lower()) if len(parts) == 5 else None


def _parts(task_id: str) -> list[str]:
    """Of the task folder's name: type, thing, movable receptacle, place, scene."""
    folders = task_id.split("/")
    return (folders[1] if len(folders) == 3 else folders[0]).split("-")
