"""Memories that judge their texts by success alone: EvolveR's principles and SkillRL's skills."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from skillc_gym.episodes import Episode
from trainers.advantages import RolloutBatch
from trainers.base import Count, Natural, NotNegative
from trainers.memory.bank import Entry, principle_score
from trainers.memory.banked import BankMemory, BankOptions
from trainers.memory.base import MemoryTools
from trainers.writers import Draft


class _EvolveR(BankMemory):
    options: EvolveRMemory

    def score(self, similarity: float, entry: Entry, *, training: bool) -> float:
        return principle_score(entry) * similarity

    def credit(self, batch: RolloutBatch) -> None:
        """Writes the score where others look for the utility."""
        for entry in self.bank:
            self.bank.rate(entry.name, principle_score(entry))

    def write(self, batch: RolloutBatch, episodes: Sequence[Episode]) -> list[Draft]:
        """One principle per episode, unless the bank says the same already."""
        drafts: list[Draft] = []
        for lesson in self.writer.write_lessons(episodes):
            same = [entry.text for entry in (*self.bank, *drafts) if entry.task_type == lesson.task_type]
            if not same or float(self.similarity(lesson.text, same).max()) < self.options.merge_above:
                drafts.append(replace(lesson, kind="principle"))
        return drafts

    def worth(self, entry: Entry) -> float:
        return principle_score(entry)

    def evict(self) -> list[str]:
        due = self.update % self.options.purge_every == 0
        weak = [entry.name for entry in self.bank if due and principle_score(entry) < self.options.purge_below]
        for name in weak:
            self.bank.remove(name)
        return [*weak, *super().evict()]


@dataclass(frozen=True)
class EvolveRMemory(BankOptions):
    """Options of EvolveR's memory (arXiv 2510.16079): principles with a score of how often they helped.

    The paper's agent asks for principles when it wants them and its code is for question answering alone; here an
    episode is shown the best of them from the start.
    """

    memory: ClassVar[type[BankMemory]] = _EvolveR
    name: ClassVar[str] = "evolver"
    show: Natural = 3
    merge_above: NotNegative = 0.85
    """A new principle this like an old one of its task type is taken for the same."""
    purge_below: NotNegative = 0.3
    """Principles with a lower score are dropped."""
    purge_every: Count = 10
    """Updates between two looks at the scores, as in the released script: one group must not decide alone."""


class _SkillRL(BankMemory):
    options: SkillRLMemory

    def __init__(self, options: SkillRLMemory, tools: MemoryTools) -> None:
        super().__init__(options, tools)
        self._seen: dict[str, list[Episode]] = {}

    def score(self, similarity: float, entry: Entry, *, training: bool) -> float:
        """General skills first, then the library's for the type: what is written later stands beside them."""
        return 2.0 * ((entry.kind == "general") + (entry.writer == "library")) + similarity

    def write(self, batch: RolloutBatch, episodes: Sequence[Episode]) -> list[Draft]:
        for episode in episodes:
            self._seen.setdefault(episode.task_type, []).append(episode)
        if self.update % self.options.review_every:
            return []
        seen, self._seen = self._seen, {}
        return [draft for kind in sorted(seen) for draft in self._review(seen[kind])]

    def _review(self, episodes: Sequence[Episode]) -> list[Draft]:
        won, lost = [e for e in episodes if e.won], [e for e in episodes if not e.won]
        if len(won) >= self.options.reviewed_below * len(episodes):
            return []
        most = self.options.most_episodes
        return self.writer.write([*won[:most], *lost[:most]])[: self.options.most_added]

    def worth(self, entry: Entry) -> float:
        return entry.created

    def protects(self, entry: Entry) -> bool:
        return entry.writer == "library"

    def state_dict(self) -> dict[str, Any]:
        seen = {kind: [episode.to_dict() for episode in episodes] for kind, episodes in self._seen.items()}
        return {**super().state_dict(), "seen": seen}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        self._seen = {kind: [Episode.from_dict(e) for e in episodes] for kind, episodes in state["seen"].items()}


@dataclass(frozen=True)
class SkillRLMemory(BankOptions):
    """Options of SkillRL's memory (arXiv 2602.08234): a bank that grows where agents keep failing.

    The paper sends failures of *validation* tasks to its language model; here only training tasks teach.
    """

    memory: ClassVar[type[BankMemory]] = _SkillRL
    name: ClassVar[str] = "skillrl"
    start_with: Literal["nothing", "library"] = "library"
    show: Natural = 3
    review_every: Count = 5
    """Updates between two looks at the failures."""
    reviewed_below: NotNegative = 0.4
    """A task type is looked at if its success since the last look lies below this."""
    most_episodes: Natural = 5
    """Most failed episodes of a type that are looked at; as many won ones stand beside them."""
    most_added: Natural = 3
    """Most new skills per type and look."""
