"""What a skill memory is: it says which skill text an episode sees, and learns from what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from skill_library import SkillLibrary, SkillText
from skillc_gym.chat import Message
from trainers.advantages import FloatArray, RolloutBatch
from trainers.base import Options

__all__ = ["FixedLibrary", "Memory", "MemoryTools", "SkillMemory", "SkillSelector", "has_own_choice", "skill_selectors"]

SkillSelector = Callable[[Mapping[str, Any]], SkillText | None]
"""From an episode's first info to what it sees; None for the library's text."""


@dataclass(frozen=True)
class MemoryTools:
    """What a memory may use.

    Attributes:
        folder: The run's folder, for files that a person may read.
        library: The environment's skill library, None without one.
        write: Prompts in, replies of the policy out, greedily; for memories that let the policy write.
    """

    folder: Path
    library: SkillLibrary | None
    write: Callable[[Sequence[Sequence[Message]]], list[str]]


class Memory(Options):
    """Base of a recipe's memory part: a frozen dataclass of its options."""

    name: ClassVar[str]

    def start(self, tools: MemoryTools) -> SkillMemory:
        """The memory at the beginning of a run."""
        raise NotImplementedError


class SkillMemory:
    """A memory at work; this one leaves the choice to the environment's own library."""

    shared_draws: ClassVar[bool] = True
    """Whether pairs of the two conditions share their draws in training; not where a memory may have nothing to show,
    and a rollout with the skill would be the copy of one without."""

    def choose(self, task_id: str, task_type: str, goal: str, member: int, *, training: bool) -> SkillText | None:
        """Which skill text a skill-injected episode sees; None for the environment's own library.

        Args:
            task_id: The task.
            task_type: Its type.
            goal: Its sentence, "" where it is not known before the episode.
            member: The episode's number among the skill-injected ones of its group.
            training: False in a validation, where nothing is explored.
        """
        return None

    def returns(self, batch: RolloutBatch) -> FloatArray:
        """What the learner maximises, with rewards of the memory's own; moves nothing. float64[N]."""
        return batch.returns

    def observe(self, batch: RolloutBatch) -> dict[str, Any]:
        """Takes in an update's rollouts: credits, writes, evicts.

        Returns:
            Figures for the log.
        """
        return {}

    def state_dict(self) -> dict[str, Any]:
        """What it knows, as JSON-able values."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores what it knew."""


@dataclass(frozen=True)
class FixedLibrary(Memory):
    """The environment's skill library, unchanged throughout."""

    name: ClassVar[str] = "library"

    def start(self, tools: MemoryTools) -> SkillMemory:
        """A memory that chooses nothing itself."""
        return SkillMemory()


def has_own_choice(memory: SkillMemory) -> bool:
    """Whether a memory ever shows another text than the library's."""
    return type(memory).choose is not SkillMemory.choose


def skill_selectors(
    memory: SkillMemory, n_plus: Sequence[int], group_size: int, *, training: bool
) -> list[list[SkillSelector | None]] | None:
    """Per group and member, what chooses the text when the episode begins; None for the library's everywhere.

    Args:
        memory: Chooses.
        n_plus: How many members of each group see a skill: the first ones.
        group_size: Members per group.
        training: Whether it may explore.
    """
    if not has_own_choice(memory):
        return None
    return [
        [_selector(memory, member, training) if member < count else None for member in range(group_size)]
        for count in n_plus
    ]


def _selector(memory: SkillMemory, member: int, training: bool) -> SkillSelector:
    def select(info: Mapping[str, Any]) -> SkillText | None:
        return memory.choose(info["task_id"], info["task_type"], info.get("goal", ""), member, training=training)

    return select
