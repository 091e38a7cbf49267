"""What a skill memory is: it says which skill text an episode sees, and learns from what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

from skill_library import SkillLibrary, SkillText
from skill_library.controls import control_library
from skillc_gym.chat import Message
from trainers.advantages import FloatArray, RolloutBatch
from trainers.advantages.group_baselines import usual_success
from trainers.allocation import DifficultyRouter
from trainers.base import Options, Share

SkillSelector = Callable[[Mapping[str, Any]], SkillText | None]
"""From an episode's first info to what it sees; None for the library's text."""


@dataclass(frozen=True)
class MemoryTools:
    """What a memory may use: the run's folder, the environment's library if any, and the policy as a greedy writer."""

    folder: Path
    library: SkillLibrary | None
    write: Callable[[Sequence[Sequence[Message]]], list[str]]


class Memory(Options):
    """Base of a recipe's memory part: a frozen dataclass of its options."""

    name: ClassVar[str]
    is_fixed: ClassVar[bool] = False
    """Whether every rollout with the skill sees the library's text, from the first update to the last."""
    shows_library: ClassVar[bool] = False
    """Whether outside of training it shows the library alone, so that a policy needs nothing of it."""
    misleads: ClassVar[bool] = False
    """Whether some of those with the skill are shown a text that does not fit."""
    reads_library: ClassVar[bool] = False
    """Whether it looks into the library itself, which an environment with a switch of its own keeps to itself."""
    adds_to_returns: ClassVar[bool] = False
    """Whether it has rewards of its own, which leave the success scale."""

    def start(self, tools: MemoryTools) -> SkillMemory:
        """The memory at the beginning of a run."""
        raise NotImplementedError


class SkillMemory:
    """A memory at work."""

    shared_draws: bool = True
    """Whether pairs of the two conditions share their draws in training; not where a memory may have nothing to show,
    and a rollout with the skill would be the copy of one without."""

    def choose(self, task_id: str, task_type: str, goal: str, member: int, *, training: bool) -> SkillText | None:
        """Which skill text a skill-injected episode sees; None for the environment's own library.

        The goal is "" where it is not known before the episode; ``member`` is the episode's number among the
        skill-injected ones of its group; in a validation (not ``training``) nothing is explored.
        """
        return None

    def returns(self, batch: RolloutBatch) -> FloatArray:
        """What the learner maximises, with rewards of the memory's own; moves nothing. float64[N]."""
        return batch.returns

    def observe(self, batch: RolloutBatch) -> dict[str, Any]:
        """Takes in an update's rollouts (credits, writes, evicts); gives figures for the log."""
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
    is_fixed: ClassVar[bool] = True
    shows_library: ClassVar[bool] = True

    def start(self, tools: MemoryTools) -> SkillMemory:
        """A memory that chooses nothing itself."""
        return SkillMemory()


def skill_selectors(
    memory: SkillMemory, n_plus: Sequence[int], group_size: int, *, training: bool
) -> list[list[SkillSelector | None]] | None:
    """Per group and member, of which the first ``n_plus`` see a skill, what chooses it; None for the library's only."""
    if type(memory).choose is SkillMemory.choose:
        return None

    def select(info: Mapping[str, Any], member: int) -> SkillText | None:
        return memory.choose(info["task_id"], info["task_type"], info.get("goal", ""), member, training=training)

    return [
        [partial(select, member=member) if member < count else None for member in range(group_size)] for count in n_plus
    ]


@dataclass(frozen=True)
class DistractedLibrary(Memory):
    """The environment's library, and for some members texts that do not fit, so that a policy learns to doubt them."""

    name: ClassVar[str] = "distracted_library"
    shows_library: ClassVar[bool] = True
    misleads: ClassVar[bool] = True
    reads_library: ClassVar[bool] = True
    distracted_share: Share = 0.25
    """Share of the members with the skill that are shown such a text, in training alone: every so many-th one."""
    distracted_by: Literal["wrong", "shuffled", "blank", "general"] = "wrong"
    """What they are shown: another type's skills, the words in another order, words that say nothing, or the general
    skills alone; see :func:`skill_library.controls.control_library`."""

    def start(self, tools: MemoryTools) -> SkillMemory:
        """A memory of two libraries; a SkillFileError where the library has no such text."""
        return _Distracted(self, tools)


class _Distracted(SkillMemory):
    def __init__(self, options: DistractedLibrary, tools: MemoryTools) -> None:
        library = tools.library
        self._other = None if library is None else control_library(library, options.distracted_by)
        self._share = options.distracted_share

    def choose(self, task_id: str, task_type: str, goal: str, member: int, *, training: bool) -> SkillText | None:
        """The other library's text for every so many-th member in training; else the library's own."""
        misled = training and _has_turn(member, self._share)
        return self._other.for_task(task_type) if self._other is not None and misled else None

    def observe(self, batch: RolloutBatch) -> dict[str, Any]:
        """How many rollouts with a text were shown one that does not fit, and how many of those succeeded."""
        shown = [each.episode for each in batch.trajectories if each.episode.condition]
        misled = [each for each in shown if self._other and each.skill == self._other.for_task(each.task_type).name]
        won = sum(episode.won for episode in misled) / len(misled) if misled else None
        return {"distracted_share": len(misled) / max(len(shown), 1), "distracted_success": won}


def _has_turn(member: int, share: float) -> bool:
    """Whether a member is one of a share of its group: shares add up, and who completes a whole one has its turn."""
    return int((member + 1) * share) > int(member * share)


# Skill0.5's prompts --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GuidedLibrary(Memory):
    """The environment's library, its general skills held back for guidance."""

    name: ClassVar[str] = "guided_library"
    reads_library: ClassVar[bool] = True
    guided_share: Share = 0.5
    """Share of a hard type's groups that is guided, rounded down; below 1, since the others say when it is no more."""

    def start(self, tools: MemoryTools) -> SkillMemory:
        """With no type known to be hard."""
        return _Guided(self, tools)


class _Guided(SkillMemory):
    def __init__(self, options: GuidedLibrary, tools: MemoryTools) -> None:
        self._library = tools.library
        self.shared_draws = self._library is None or bool(self._library.task_types)  # general skills are held back
        self._router = DifficultyRouter()
        self._share = options.guided_share

    def choose(self, task_id: str, task_type: str, goal: str, member: int, *, training: bool) -> SkillText | None:
        """The specific skill; with the general ones in front for a share of a hard type's group."""
        if self._library is None:
            return None
        usual, guided = specific_text(self._library, task_type), self._library.for_task(task_type)
        turn = training and self._router.level(task_type) == "hard" and _has_turn(member, self._share)
        if not turn or guided.text == usual.text:
            return usual
        # A plus sign tells what is guided, also where no specific skill stands behind the general ones.
        return guided if "+" in guided.name else replace(guided, name=f"{guided.name}+")

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
    return SkillText("&".join(skill.name for skill in own), "\n\n".join(skill.text for skill in own))
