"""Who sees the skill: how many members of each group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from skillc_gym.curricula.skills import InternalizationCurriculum
from skillc_gym.errors import ConfigError
from trainers.advantages import RolloutBatch
from trainers.base import Options

__all__ = ["ALLOCATIONS", "Allocation", "Allocator", "Always", "Drawn", "Half", "Never", "Paired", "Whole"]


class Allocation(Options):
    """Base of an allocation: a frozen dataclass of its options.

    One without memory says :meth:`n_plus`; one with memory has an :class:`Allocator` of its own and says :meth:`start`.
    """

    name: ClassVar[str]
    pairs: ClassVar[bool] = True
    """Whether a group may hold both conditions, so that a task can be compared with itself."""
    uses_skills: ClassVar[bool] = True
    """Whether any training rollout sees a skill."""
    compares: ClassVar[bool] = True
    """Whether a task or a type is played in both conditions, so that an update shows what its skill is worth."""
    follows_curriculum: ClassVar[bool] = False
    """Whether it asks a curriculum how many see the skill."""

    def n_plus(self, curriculum: InternalizationCurriculum, task_type: str, group_size: int) -> int:
        """How many rollouts of a group of this type see the skill."""
        raise NotImplementedError

    def start(self, curriculum: InternalizationCurriculum) -> Allocator:
        """The allocation at work in a run."""
        return Allocator(self, curriculum)


class Allocator:
    """An allocation at work; subclasses remember what they have seen."""

    def __init__(self, options: Allocation, curriculum: InternalizationCurriculum) -> None:
        self.options = options
        self.curriculum = curriculum

    def n_plus(self, task_type: str, group_size: int) -> int:
        """How many rollouts of the next group see the skill. Asked once per group, in the groups' order."""
        return self.options.n_plus(self.curriculum, task_type, group_size)

    def observe(self, batch: RolloutBatch) -> None:
        """Takes in an update's rollouts."""

    def state_dict(self) -> dict[str, Any]:
        """What it remembers, as JSON-able values."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores what it remembered."""


@dataclass(frozen=True)
class Paired(Allocation):
    """``n_plus`` of each group by the curriculum; a retired type's groups are skill-free."""

    name: ClassVar[str] = "paired"
    follows_curriculum: ClassVar[bool] = True

    def n_plus(self, curriculum: InternalizationCurriculum, task_type: str, group_size: int) -> int:
        """The curriculum's number."""
        return curriculum.n_plus(task_type, group_size)


@dataclass(frozen=True)
class Half(Allocation):
    """Half of each group, rounded up."""

    name: ClassVar[str] = "half"

    def n_plus(self, curriculum: InternalizationCurriculum, task_type: str, group_size: int) -> int:
        """Half.

        Raises:
            ConfigError: A group of one has no halves.
        """
        if group_size < 2:
            raise ConfigError(f"allocation=half needs groups of at least 2 rollouts, got group_size={group_size}")
        return (group_size + 1) // 2


@dataclass(frozen=True)
class Whole(Allocation):
    """Every group of an active type, as a whole."""

    name: ClassVar[str] = "whole"
    compares: ClassVar[bool] = False

    def n_plus(self, curriculum: InternalizationCurriculum, task_type: str, group_size: int) -> int:
        """All or none."""
        return group_size if curriculum.is_active(task_type) else 0


@dataclass(frozen=True)
class Always(Allocation):
    """Every rollout."""

    name: ClassVar[str] = "always"
    compares: ClassVar[bool] = False

    def n_plus(self, curriculum: InternalizationCurriculum, task_type: str, group_size: int) -> int:
        """All."""
        return group_size


@dataclass(frozen=True)
class Never(Allocation):
    """No rollout."""

    name: ClassVar[str] = "never"
    compares: ClassVar[bool] = False
    uses_skills: ClassVar[bool] = False

    def n_plus(self, curriculum: InternalizationCurriculum, task_type: str, group_size: int) -> int:
        """None."""
        return 0


@dataclass(frozen=True)
class Drawn(Allocation):
    """Whole groups, in the share of a type's groups that the curriculum asks for."""

    name: ClassVar[str] = "drawn"
    follows_curriculum: ClassVar[bool] = True
    pairs: ClassVar[bool] = False

    def start(self, curriculum: InternalizationCurriculum) -> Allocator:
        """With nothing carried over."""
        return _DrawnAllocator(self, curriculum)


class _DrawnAllocator(Allocator):
    """Keeps the share exact by carrying the remainder over, without a random stream of its own."""

    def __init__(self, options: Allocation, curriculum: InternalizationCurriculum) -> None:
        super().__init__(options, curriculum)
        self._carry = dict.fromkeys(curriculum.task_types, 0.0)

    def n_plus(self, task_type: str, group_size: int) -> int:
        if not self.curriculum.is_active(task_type):
            return 0
        self._carry[task_type] += self.curriculum.rho_with(task_type)
        if self._carry[task_type] < 0.5:
            return 0
        self._carry[task_type] -= 1.0
        return group_size

    def state_dict(self) -> dict[str, Any]:
        return {"carry": dict(self._carry)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._carry = {kind: float(state["carry"][kind]) for kind in self.curriculum.task_types}


ALLOCATIONS = (Paired, Drawn, Half, Whole, Always, Never)
