"""Who sees the skill: how many members of each group, by a rule or by what training rollouts show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from skillc_gym.curricula.skills import InternalizationCurriculum
from skillc_gym.errors import ConfigError
from trainers.advantages import RolloutBatch
from trainers.advantages.group_baselines import usual_success
from trainers.allocation import (
    DifficultyRouter,
    Trials,
    annealed_allocation,
    fading_allocation,
    signal_allocation,
    skill_needed,
    value_allocation,
)
from trainers.base import Level, NotNegative, Options, Positive, Share


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


class Allocation(Options):
    """Base of an allocation: a frozen dataclass of its options.

    One without memory says :meth:`n_plus`; one with memory has an :class:`Allocator` of its own ``at_work``.
    """

    name: ClassVar[str]
    at_work: ClassVar[type[Allocator]] = Allocator
    """Plays it in a run."""
    pairs: ClassVar[bool] = True
    """Whether a group may hold both conditions, so that a task can be compared with itself."""
    uses_skills: ClassVar[bool] = True
    """Whether any training rollout sees a skill."""
    plays_skill_free: ClassVar[bool] = True
    """Whether any training rollout sees none."""
    compares: ClassVar[bool] = True
    """Whether a task or a type is played in both conditions, so that an update shows what its skill is worth."""
    follows_curriculum: ClassVar[bool] = False
    """Whether it asks a curriculum how many see the skill."""
    needs_curriculum: ClassVar[bool] = False
    """Whether it asks the curriculum something else, such as which types still have their skill."""
    replaceable: ClassVar[bool] = False
    """Whether an addition may take its place, as that of a plain rule that makes no method."""
    needs_memory: ClassVar[str] = ""
    """The name of the one memory that it goes with, if any."""

    def n_plus(self, curriculum: InternalizationCurriculum, task_type: str, group_size: int) -> int:
        """How many rollouts of a group of this type see the skill."""
        raise NotImplementedError

    def start(self, curriculum: InternalizationCurriculum) -> Allocator:
        """The allocation at work in a run."""
        return self.at_work(self, curriculum)


@dataclass(frozen=True)
class Paired(Allocation):
    """``n_plus`` of each group by the curriculum; a retired type's groups are skill-free."""

    name: ClassVar[str] = "paired"
    replaceable: ClassVar[bool] = True
    follows_curriculum: ClassVar[bool] = True

    def n_plus(self, curriculum: InternalizationCurriculum, task_type: str, group_size: int) -> int:
        """The curriculum's number."""
        return curriculum.n_plus(task_type, group_size)


@dataclass(frozen=True)
class Half(Allocation):
    """Half of each group of an active type, rounded up."""

    name: ClassVar[str] = "half"
    replaceable: ClassVar[bool] = True

    def n_plus(self, curriculum: InternalizationCurriculum, task_type: str, group_size: int) -> int:
        """Half; a ConfigError for a group of one."""
        if group_size < 2:
            raise ConfigError(f"allocation=half needs groups of at least 2 rollouts, got group_size={group_size}")
        return (group_size + 1) // 2 if curriculum.is_active(task_type) else 0


@dataclass(frozen=True)
class Whole(Allocation):
    """Every group of an active type, as a whole."""

    name: ClassVar[str] = "whole"
    compares: ClassVar[bool] = False
    needs_curriculum: ClassVar[bool] = True

    def n_plus(self, curriculum: InternalizationCurriculum, task_type: str, group_size: int) -> int:
        """All or none."""
        return group_size if curriculum.is_active(task_type) else 0


@dataclass(frozen=True)
class Always(Allocation):
    """Every rollout."""

    name: ClassVar[str] = "always"
    replaceable: ClassVar[bool] = True
    plays_skill_free: ClassVar[bool] = False
    compares: ClassVar[bool] = False

    def n_plus(self, curriculum: InternalizationCurriculum, task_type: str, group_size: int) -> int:
        """All."""
        return group_size


@dataclass(frozen=True)
class Never(Allocation):
    """No rollout."""

    name: ClassVar[str] = "never"
    replaceable: ClassVar[bool] = True
    compares: ClassVar[bool] = False
    uses_skills: ClassVar[bool] = False

    def n_plus(self, curriculum: InternalizationCurriculum, task_type: str, group_size: int) -> int:
        """None."""
        return 0


class _SharingAllocator(Allocator):
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


@dataclass(frozen=True)
class WholeShare(Allocation):
    """Whole groups, in the share of a type's groups that the curriculum asks for."""

    name: ClassVar[str] = "drawn"
    follows_curriculum: ClassVar[bool] = True
    pairs: ClassVar[bool] = False
    at_work: ClassVar[type[Allocator]] = _SharingAllocator


def trials_by_type(batch: RolloutBatch, shown: bool) -> dict[str, Trials]:
    """The rollouts that were shown the skill, or that were not, and how many of them were won, per task type."""
    own = [i for i, condition in enumerate(batch.condition) if condition == shown]
    tries = Counter(batch.task_type[i] for i in own)
    wins = Counter(batch.task_type[i] for i in own if batch.success[i])
    return {kind: Trials(wins[kind], count) for kind, count in tries.items()}


class _CountingAllocator(Allocator):
    """Counts rollouts and successes per type and condition, the past fading."""

    options: ByTrials

    def __init__(self, options: ByTrials, curriculum: InternalizationCurriculum) -> None:
        super().__init__(options, curriculum)
        self._trials = {kind: (Trials(0.0, 0.0), Trials(0.0, 0.0)) for kind in curriculum.task_types}

    def n_plus(self, task_type: str, group_size: int) -> int:
        if group_size < 2 or not self.curriculum.is_active(task_type):
            return 0
        return self.options.from_trials(*self._trials[task_type], group_size)

    def observe(self, batch: RolloutBatch) -> None:
        with_, without = (trials_by_type(batch, shown) for shown in (True, False))
        for kind in sorted(set(batch.task_type)):
            injected, plain = self._trials[kind]
            self._trials[kind] = (self._faded(injected, with_.get(kind)), self._faded(plain, without.get(kind)))

    def _faded(self, past: Trials, new: Trials | None) -> Trials:
        fade, (wins, tries) = self.options.memory, new or Trials(0, 0)
        return Trials(fade * past.wins + wins, fade * past.tries + tries)

    def state_dict(self) -> dict[str, Any]:
        return {"trials": {kind: [list(injected), list(plain)] for kind, (injected, plain) in self._trials.items()}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._trials = {kind: (Trials(*pair[0]), Trials(*pair[1])) for kind, pair in state["trials"].items()}


@dataclass(frozen=True)
class ByTrials(Allocation):
    """Base of allocations by a type's training rollouts with and without the skill, of which past ones fade.

    None of a group of one sees the skill.
    """

    at_work: ClassVar[type[Allocator]] = _CountingAllocator
    memory: Share = 0.9
    """Weight of past rollouts per update, below 1."""

    def from_trials(self, injected: Trials, plain: Trials, group_size: int) -> int:
        """How many rollouts of a group of at least 2 see the skill, by what a type's rollouts have shown."""
        raise NotImplementedError


@dataclass(frozen=True)
class ByRates(ByTrials):
    """Base of those by the success rates of both conditions."""

    prior: Positive = 2.0
    """Rollouts of each condition, half of them won, that stand for what is not known yet."""

    def rate(self, trials: Trials) -> float:
        """Their success rate, the prior included."""
        return (trials.wins + self.prior / 2) / (trials.tries + self.prior)


@dataclass(frozen=True)
class BySignal(ByRates):
    """:func:`trainers.allocation.signal_allocation` from each type's training rollouts."""

    name: ClassVar[str] = "signal"
    kappa: Positive = 1.0
    """How much practice with the skill is worth to the policy without it."""

    def from_trials(self, injected: Trials, plain: Trials, group_size: int) -> int:
        """More where the outcome varies more."""
        return signal_allocation(self.rate(injected), self.rate(plain), group_size, self.kappa)


@dataclass(frozen=True)
class ByValue(ByRates):
    """:func:`trainers.allocation.value_allocation` from each type's training rollouts: fewer as the gap closes."""

    name: ClassVar[str] = "value"

    def from_trials(self, injected: Trials, plain: Trials, group_size: int) -> int:
        """More while there is what only the skill makes possible."""
        return value_allocation(self.rate(injected), self.rate(plain), group_size)


@dataclass(frozen=True)
class ByNeed(ByTrials):
    """:func:`trainers.allocation.skill_needed`: half of a group where the skill is needed, else none.

    Where a type has had fewer than ``probes`` skill-free rollouts lately, or hardly any that was won, one rollout of
    its groups sees the skill until ``probes`` have, so that there is something to judge by.
    """

    name: ClassVar[str] = "need"
    level: Level = 0.95
    """Confidence level of the intervals."""
    probes: NotNegative = 4.0
    """Rollouts with the skill, past ones weighed, below which a type is probed where success without it is rare or
    little known."""

    def from_trials(self, injected: Trials, plain: Trials, group_size: int) -> int:
        """Half, one to probe, or none."""
        if skill_needed(injected, plain, group_size, self.level):
            return group_size // 2
        # A group without the skill would, by its type's rate, most likely see no success.
        rare = plain.tries > 0 and plain.wins / plain.tries < 1.0 / group_size
        blind = plain.tries < self.probes or rare
        return 1 if blind and injected.tries < self.probes else 0


@dataclass(frozen=True)
class ByGap(ByTrials):
    """Base of those that show the skill until it is known not to matter."""

    prior: Positive = 1.0
    """Rollouts of each condition, won with the skill and lost without, that stand for what is not known yet."""

    def rates(self, injected: Trials, plain: Trials) -> tuple[float, float]:
        """Success with the skill and without, the prior included."""
        return (injected.wins + self.prior) / (injected.tries + self.prior), plain.wins / (plain.tries + self.prior)


@dataclass(frozen=True)
class ByContrast(ByGap):
    """:func:`trainers.allocation.fading_allocation` from each type's training rollouts: half, then ever fewer."""

    name: ClassVar[str] = "contrast"
    full_gap: Positive = 0.2
    """Gap of success rates from which on half of a group sees the skill."""

    def from_trials(self, injected: Trials, plain: Trials, group_size: int) -> int:
        """Half while the skill matters."""
        p_with, p_without = self.rates(injected, plain)
        return fading_allocation(p_with - p_without, group_size, self.full_gap)


@dataclass(frozen=True)
class Annealed(ByGap):
    """:func:`trainers.allocation.annealed_allocation` from a type's training rollouts: nearly all, then ever fewer."""

    name: ClassVar[str] = "annealed"

    def from_trials(self, injected: Trials, plain: Trials, group_size: int) -> int:
        """All but one at first."""
        return annealed_allocation(*self.rates(injected, plain), group_size)


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


@dataclass(frozen=True)
class ByDifficulty(Allocation):
    """Every rollout sees a skill, but for half of an easy type's groups: those are probes."""

    name: ClassVar[str] = "difficulty"
    at_work: ClassVar[type[Allocator]] = _DifficultyAllocator
    needs_memory: ClassVar[str] = "guided_library"


ALLOCATIONS = (
    *(Paired, WholeShare, Half, Whole, Always, Never),
    *(BySignal, ByValue, ByNeed, ByContrast, Annealed, ByDifficulty),
)
