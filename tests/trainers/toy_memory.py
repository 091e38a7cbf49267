"""A method in one file: a memory that shows what it has written of earlier episodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from skill_library import Skill, SkillText
from trainers.advantages import RolloutBatch
from trainers.memory import Memory, MemoryTools, SkillMemory
from trainers.recipes import Half, Recipe


@dataclass(frozen=True)
class Diary(Memory):
    """One line per update and task type, the newest ``keep`` of them are shown."""

    name: ClassVar[str] = "diary"
    keep: int = 2

    def start(self, tools: MemoryTools) -> SkillMemory:
        return DiaryAtWork(self.keep)


class DiaryAtWork(SkillMemory):
    def __init__(self, keep: int) -> None:
        self.keep = keep
        self.lines: dict[str, list[str]] = {}

    def choose(self, task_id: str, task_type: str, goal: str, member: int, *, training: bool) -> SkillText | None:
        lines = self.lines.get(task_type)
        if not lines:
            return None
        words = "\n".join([f"goal was {goal}", *lines[-self.keep :]])
        skill = Skill(f"diary-{len(lines)}", "What was noted.", (task_type,), words)
        return SkillText(skill.name, skill.text, skill.sha256)

    def observe(self, batch: RolloutBatch) -> dict[str, Any]:
        for kind in sorted(set(batch.task_type)):
            won = sum(int(w) for w, k in zip(batch.success, batch.task_type, strict=True) if k == kind)
            self.lines.setdefault(kind, []).append(f"done {won} of {kind}")
        return {"diary_lines": sum(map(len, self.lines.values()))}

    def state_dict(self) -> dict[str, Any]:
        return {"lines": self.lines}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.lines = {kind: list(lines) for kind, lines in state["lines"].items()}


RECIPE = Recipe(name="diary", summary="Shows what it wrote down.", allocation=Half(), memory=Diary())
