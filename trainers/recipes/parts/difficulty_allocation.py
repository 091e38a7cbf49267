"""Skill0.5's allocation: skill-free probes beside the rollouts of easy types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from skillc_gym.curricula.skills import InternalizationCurriculum
from trainers.advantages import RolloutBatch
from trainers.advantages.group_baselines import usual_success
from trainers.allocation.difficulty import DifficultyRouter
from trainers.recipes.parts.allocation import Allocation, Allocator

__all__ = ["ByDifficulty"]


@dataclass(frozen=True)
class ByDifficulty(Allocation):
    """Every rollout sees a skill, but for half of an easy type's groups: those are probes."""

    name: ClassVar[str] = "difficulty"

    def start(self, curriculum: InternalizationCurriculum) -> Allocator:
        """With no type known to be easy."""
        return _DifficultyAllocator(self, curriculum)


class _DifficultyAllocator(Allocator):
    def __init__(self, options: Allocation, curriculum: InternalizationCurriculum) -> None:
        super().__init__(options, curriculum)
        self._router = DifficultyRouter()

    def n_plus(self, task_type: str, group_size: int) -> int:
        return group_size - group_size // 2 if self._router.level(task_type) == "easy" else group_size

    def observe(self, batch: RolloutBatch) -> None:
        self._router.observe(usual_success(batch))

    def state_dict(self) -> dict[str, Any]:
        return self._router.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._router.load_state_dict(state)
