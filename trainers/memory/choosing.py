"""Who chooses what the skill-injected members of groups are shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from skill_library import SkillText
from trainers.memory.base import SkillMemory

__all__ = ["Chooser", "choosers", "has_own_choice"]

Chooser = Callable[[Mapping[str, Any]], SkillText | None]
"""From an episode's first info to what it sees; None for the library's text."""


def has_own_choice(memory: SkillMemory) -> bool:
    """Whether a memory ever shows another text than the library's."""
    return type(memory).choose is not SkillMemory.choose


def choosers(
    memory: SkillMemory, n_plus: Sequence[int], group_size: int, *, training: bool
) -> list[list[Chooser | None]] | None:
    """Per group and member, who chooses the text when the episode begins; None for the library's everywhere.

    Args:
        memory: Chooses.
        n_plus: How many members of each group see a skill: the first ones.
        group_size: Members per group.
        training: Whether it may explore.
    """
    if not has_own_choice(memory):
        return None
    return [
        [_chooser(memory, member, training) if member < count else None for member in range(group_size)]
        for count in n_plus
    ]


def _chooser(memory: SkillMemory, member: int, training: bool) -> Chooser:
    def choose(info: Mapping[str, Any]) -> SkillText | None:
        return memory.choose(info["task_id"], info["task_type"], info.get("goal", ""), member, training=training)

    return choose
