"""Skill0.5's prompts (arXiv 2605.28424): specific skills always, general ones only to guide where nothing succeeds."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from skill_library import SkillLibrary, SkillText
from trainers.advantages import RolloutBatch
from trainers.advantages.group_baselines import usual_success
from trainers.allocation import DifficultyRouter
from trainers.memory.base import Memory, MemoryTools, SkillMemory

__all__ = ["GuidedLibrary", "specific_text"]


@dataclass(frozen=True)
class GuidedLibrary(Memory):
    """The environment's library, its general skills held back for guidance.

    Attributes:
        guided_share: Share of a hard type's groups that is guided, rounded down.
    """

    name: ClassVar[str] = "guided_library"
    guided_share: float = 0.5

    def start(self, tools: MemoryTools) -> SkillMemory:
        """With no type known to be hard."""
        return _Guided(self, tools)


class _Guided(SkillMemory):
    def __init__(self, options: GuidedLibrary, tools: MemoryTools) -> None:
        self._library = tools.library
        self._router = DifficultyRouter()
        self._every = max(2, round(1 / options.guided_share)) if options.guided_share > 0 else 0

    def choose(self, task_id: str, task_type: str, goal: str, member: int, *, training: bool) -> SkillText | None:
        """The specific skill; with the general ones in front for every other member of a hard type's group."""
        if self._library is None:
            return None
        guided = training and self._every and self._router.level(task_type) == "hard"
        if guided and member % self._every == self._every - 1:
            return self._library.for_task(task_type)
        return specific_text(self._library, task_type)

    def observe(self, batch: RolloutBatch) -> dict[str, Any]:
        self._router.observe(usual_success(batch))
        return {"difficulty": {kind: self._router.level(kind) for kind in sorted(set(batch.task_type))}}

    def state_dict(self) -> dict[str, Any]:
        return self._router.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._router.load_state_dict(state)


def specific_text(library: SkillLibrary, task_type: str) -> SkillText:
    """What the skills of a task type alone say, without the general ones."""
    own = [skill for skill in library.skills if task_type in skill.task_types and not skill.is_general]
    text = "\n\n".join(skill.text for skill in own)
    return SkillText("&".join(skill.name for skill in own), text, hashlib.sha256(text.encode("utf-8")).hexdigest())
