"""EvolveR's memory (arXiv 2510.16079): principles with a score of how often they helped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from skillc_gym.episodes import Episode
from trainers.advantages import RolloutBatch
from trainers.memory.banked import BankMemory, BankOptions
from trainers.memory.base import MemoryTools
from trainers.memory.credit import principle_score
from trainers.memory.entries import Draft, Entry

__all__ = ["EvolveRMemory"]


@dataclass(frozen=True)
class EvolveRMemory(BankOptions):
    """Options of EvolveR's memory.

    The paper's agent asks for principles when it wants them and its code is for question answering alone; here an
    episode is shown the best of them from the start.

    Attributes:
        merge_above: A new principle this like an old one of its task type is taken for the same.
        purge_below: Principles with a lower score are dropped.
    """

    name: ClassVar[str] = "evolver"
    show: int = 3
    merge_above: float = 0.85
    purge_below: float = 0.3

    def start(self, tools: MemoryTools) -> _EvolveR:
        """With an empty bank unless the options say otherwise."""
        return _EvolveR(self, tools)


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
        for episode in episodes:
            lesson = self.writer.write_lesson(episode)
            if lesson is not None and not self._is_known(lesson, drafts):
                drafts.append(replace(lesson, kind="principle"))
        return drafts

    def _is_known(self, lesson: Draft, drafts: Sequence[Draft]) -> bool:
        same = [entry.text for entry in (*self.bank, *drafts) if entry.task_type == lesson.task_type]
        return bool(same) and float(self.similarity(lesson.text, same).max()) >= self.options.merge_above

    def evict(self) -> list[str]:
        weak = [entry.name for entry in self.bank if principle_score(entry) < self.options.purge_below]
        for name in weak:
            self.bank.remove(name)
        return [*weak, *self.bank.keep_best(self.options.bank_capacity, principle_score)]
