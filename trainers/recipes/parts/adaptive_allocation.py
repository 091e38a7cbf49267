"""Allocations that follow what training rollouts show: the study's ``allocation`` and ``gate``, and by contrast."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from skillc_gym.curricula.skills import InternalizationCurriculum
from trainers.advantages import RolloutBatch
from trainers.allocation.fading import fading_allocation
from trainers.allocation.need import Trials, skill_needed
from trainers.allocation.signal import signal_allocation
from trainers.recipes.parts.allocation import Allocation, Allocator

__all__ = ["ByContrast", "ByNeed", "BySignal"]


@dataclass(frozen=True)
class BySignal(Allocation):
    """:func:`trainers.allocation.signal.signal_allocation` from each type's training rollouts.

    Attributes:
        kappa: How much practice with the skill is worth to the policy without it.
        memory: Weight of past rollouts per update, below 1.
        prior: Rollouts of each condition, half of them won, that stand for what is not known yet.
    """

    name: ClassVar[str] = "signal"
    kappa: float = 1.0
    memory: float = 0.9
    prior: float = 2.0

    def start(self, curriculum: InternalizationCurriculum) -> Allocator:
        """With nothing seen yet."""
        return _SignalAllocator(self, curriculum)


@dataclass(frozen=True)
class ByNeed(Allocation):
    """:func:`trainers.allocation.need.skill_needed`: half of a group where the skill is needed, else none.

    Until a type has had ``probes`` rollouts of each condition lately, one rollout of its groups sees the skill, so that
    there is something to judge by.

    Attributes:
        level: Confidence level of the intervals.
        memory: Weight of past rollouts per update, below 1.
        probes: Rollouts with the skill, past ones weighed, below which a type is probed.
    """

    name: ClassVar[str] = "need"
    level: float = 0.95
    memory: float = 0.9
    probes: float = 4.0

    def start(self, curriculum: InternalizationCurriculum) -> Allocator:
        """With nothing seen yet."""
        return _NeedAllocator(self, curriculum)


@dataclass(frozen=True)
class ByContrast(Allocation):
    """:func:`trainers.allocation.fading.fading_allocation` from each type's training rollouts: half, then ever fewer.

    Attributes:
        full_gap: Gap of success rates from which on half of a group sees the skill.
        memory: Weight of past rollouts per update, below 1.
        prior: Rollouts of each condition, won with the skill and lost without, that stand for what is not known yet.
    """

    name: ClassVar[str] = "contrast"
    full_gap: float = 0.2
    memory: float = 0.9
    prior: float = 1.0

    def start(self, curriculum: InternalizationCurriculum) -> Allocator:
        """With nothing seen yet."""
        return _ContrastAllocator(self, curriculum)


class _CountingAllocator(Allocator):
    """Counts rollouts and successes per type and condition, the past fading."""

    def __init__(self, options: BySignal | ByNeed | ByContrast, curriculum: InternalizationCurriculum) -> None:
        super().__init__(options, curriculum)
        self._fade = options.memory
        self._trials = {kind: (Trials(0.0, 0.0), Trials(0.0, 0.0)) for kind in curriculum.task_types}

    def observe(self, batch: RolloutBatch) -> None:
        for kind in sorted(set(batch.task_type)):
            own = [i for i, other in enumerate(batch.task_type) if other == kind]
            seen = [[bool(batch.success[i]) for i in own if bool(batch.condition[i]) is z] for z in (True, False)]
            injected, plain = self._trials[kind]
            self._trials[kind] = (self._faded(injected, seen[0]), self._faded(plain, seen[1]))

    def _faded(self, trials: Trials, outcomes: list[bool]) -> Trials:
        return Trials(self._fade * trials.wins + sum(outcomes), self._fade * trials.tries + len(outcomes))

    def state_dict(self) -> dict[str, Any]:
        return {"trials": {kind: [list(injected), list(plain)] for kind, (injected, plain) in self._trials.items()}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._trials = {kind: (Trials(*pair[0]), Trials(*pair[1])) for kind, pair in state["trials"].items()}


class _SignalAllocator(_CountingAllocator):
    def __init__(self, options: BySignal, curriculum: InternalizationCurriculum) -> None:
        super().__init__(options, curriculum)
        self._signal = options

    def n_plus(self, task_type: str, group_size: int) -> int:
        if not self.curriculum.is_active(task_type):
            return 0
        injected, plain = (self._rate(trials) for trials in self._trials[task_type])
        return signal_allocation(injected, plain, group_size, self._signal.kappa)

    def _rate(self, trials: Trials) -> float:
        prior = self._signal.prior
        return (trials.wins + prior / 2) / (trials.tries + prior)


class _ContrastAllocator(_CountingAllocator):
    def __init__(self, options: ByContrast, curriculum: InternalizationCurriculum) -> None:
        super().__init__(options, curriculum)
        self._fading = options

    def n_plus(self, task_type: str, group_size: int) -> int:
        if not self.curriculum.is_active(task_type) or group_size < 2:
            return 0
        injected, plain = self._trials[task_type]
        prior = self._fading.prior
        gap = (injected.wins + prior) / (injected.tries + prior) - plain.wins / (plain.tries + prior)
        return fading_allocation(gap, group_size, self._fading.full_gap)


class _NeedAllocator(_CountingAllocator):
    def __init__(self, options: ByNeed, curriculum: InternalizationCurriculum) -> None:
        super().__init__(options, curriculum)
        self._need = options

    def n_plus(self, task_type: str, group_size: int) -> int:
        if not self.curriculum.is_active(task_type) or group_size < 2:
            return 0
        injected, plain = self._trials[task_type]
        if skill_needed(injected, plain, group_size, self._need.level):
            return group_size // 2
        blind = plain.tries < self._need.probes or skill_free_success_is_rare(plain, group_size)
        return 1 if blind and injected.tries < self._need.probes else 0


def skill_free_success_is_rare(plain: Trials, group_size: int) -> bool:
    """Whether a group without the skill would, by its rate, most likely see no success."""
    return plain.tries > 0 and plain.wins / plain.tries < 1.0 / group_size
