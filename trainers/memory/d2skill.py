"""D2Skill's memory (arXiv 2603.28716): skills with a utility that is measured against skill-free siblings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import ClassVar, Literal

import numpy as np

from skillc_gym.episodes import Episode
from trainers.advantages import FloatArray, RolloutBatch
from trainers.memory.banked import BankMemory, BankOptions, shown_entries
from trainers.memory.base import MemoryTools
from trainers.memory.credit import d2skill_score, hindsight_bonus, moving_utility, upper_confidence
from trainers.memory.entries import Draft, Entry

__all__ = ["D2SkillMemory"]


@dataclass(frozen=True)
class D2SkillMemory(BankOptions):
    """Options of D2Skill's memory.

    The released code also wants a likeness of 0.7 by its own encoder; BM25's likeness has another scale, so the ten
    most alike come into question here whatever their likeness.

    Attributes:
        utility_rate: Weight of an update's credit in an entry's utility.
        written_below: A group is reflected on if the success of its skill-injected rollouts lies below this.
        most_written: Most groups that are reflected on per update.
        protected_updates: Entries this young are not evicted.
        hindsight_weight: Weight of the hindsight bonus in the return.
        hindsight_for: Whose return it is added to: every rollout's, as in the released code, or only the
            skill-injected ones', as the bonus is also described.
    """

    name: ClassVar[str] = "d2skill"
    candidates: int | None = 10
    utility_rate: float = 0.5
    written_below: float = 0.5
    most_written: int = 10
    protected_updates: int = 10
    hindsight_weight: float = 1.0
    hindsight_for: Literal["all", "injected"] = "all"

    def start(self, tools: MemoryTools) -> _D2Skill:
        """With a bank that is empty unless the options say otherwise."""
        return _D2Skill(self, tools)


class _D2Skill(BankMemory):
    options: D2SkillMemory

    def score(self, similarity: float, entry: Entry, *, training: bool) -> float:
        if training:
            return d2skill_score(similarity, entry, self.bank.total_uses)
        return 0.1 * similarity + 0.9 * entry.utility

    def returns(self, batch: RolloutBatch) -> FloatArray:
        """Adds the hindsight bonus."""
        bonus = hindsight_bonus(batch.success, batch.task, batch.condition)
        whose = batch.condition if self.options.hindsight_for == "injected" else np.ones(len(bonus), dtype=bool)
        return batch.returns + self.options.hindsight_weight * bonus * whose

    def credit(self, batch: RolloutBatch) -> None:
        """``u <- (1 - rate) u + rate (mean success with - mean success without)``, per task in which it was shown."""
        for own in _groups(batch):
            plain = [e.won for e in own if not e.condition]
            for name in sorted({name for e in own for name in shown_entries(e)} if plain else ()):
                shown = [e.won for e in own if name in shown_entries(e)]
                if name in self.bank:
                    worth = fmean(shown) - fmean(plain)
                    self.bank.rate(name, moving_utility(self.bank[name].utility, worth, self.options.utility_rate))

    def write(self, batch: RolloutBatch, episodes: Sequence[Episode]) -> list[Draft]:
        """Reflects on groups whose skill-injected branch mostly failed, beside a sibling that succeeded."""
        poor = [own for own in _groups(batch) if self._is_poor(own)]
        drafts = []
        for own in poor[: self.options.most_written]:
            lost = [e for e in own if e.condition and not e.won]
            drafts += self.writer.write([*[e for e in own if e.won], *lost])
        return drafts

    def _is_poor(self, own: Sequence[Episode]) -> bool:
        injected = [e.won for e in own if e.condition]
        return bool(injected) and fmean(injected) < self.options.written_below

    def evict(self) -> list[str]:
        return self.bank.keep_best(
            self.options.bank_capacity,
            lambda entry: upper_confidence(entry, self.bank.total_uses),
            protect=lambda entry: self.update - entry.created < self.options.protected_updates,
        )


def _groups(batch: RolloutBatch) -> list[list[Episode]]:
    """The episodes of each task, in order of first appearance."""
    groups: dict[str, list[Episode]] = {}
    for trajectory in batch.trajectories:
        groups.setdefault(trajectory.episode.task_id, []).append(trajectory.episode)
    return list(groups.values())
