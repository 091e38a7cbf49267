"""Skill1's memory (arXiv 2605.06130): retrieve a few skills, select one, and distil a new one from what worked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from skillc_gym.episodes import Episode
from trainers.advantages import RolloutBatch
from trainers.memory.banked import BankMemory, BankOptions, shown_entries
from trainers.memory.base import MemoryTools
from trainers.memory.credit import moving_utility, upper_confidence
from trainers.memory.entries import Draft, Entry

__all__ = ["Skill1Memory"]


@dataclass(frozen=True)
class Skill1Memory(BankOptions):
    """Options of Skill1's memory.

    In the paper one policy writes the query, ranks the candidates and distils, and is rewarded for each; the exact form
    of its ranking reward is unsure. Here the query is the goal, the ranking is by utility with a bonus for trying, and
    a distilled skill is kept if its episode did better than the best candidate's utility promised.

    Attributes:
        candidates: Entries that are retrieved, of which one is selected; all if None.
        utility_rate: Weight of an episode's success in the utility of what it was shown.
    """

    name: ClassVar[str] = "skill1"
    bank_capacity: int = 5000
    candidates: int | None = 3
    utility_rate: float = 0.05

    def start(self, tools: MemoryTools) -> _Skill1:
        """With an empty bank unless the options say otherwise."""
        return _Skill1(self, tools)


class _Skill1(BankMemory):
    options: Skill1Memory

    def score(self, similarity: float, entry: Entry, *, training: bool) -> float:
        return upper_confidence(entry, self.bank.total_uses, 0.05 if training else 0.0)

    def credit(self, batch: RolloutBatch) -> None:
        for trajectory in batch.trajectories:
            for name in shown_entries(trajectory.episode):
                if name in self.bank:
                    worth = float(trajectory.episode.won)
                    self.bank.rate(name, moving_utility(self.bank[name].utility, worth, self.options.utility_rate))

    def write(self, batch: RolloutBatch, episodes: Sequence[Episode]) -> list[Draft]:
        """Distils won episodes of the types in which no entry promises success yet."""
        best: dict[str, float] = {}
        for entry in self.bank:
            best[entry.task_type] = max(best.get(entry.task_type, 0.0), entry.utility)
        lessons = (self.writer.write_lesson(e) for e in episodes if float(e.won) > best.get(e.task_type, 0.0))
        return [lesson for lesson in lessons if lesson is not None]
